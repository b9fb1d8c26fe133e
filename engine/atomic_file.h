// A file that is there whole or not at all.
#ifndef ATTEND_ENGINE_ATOMIC_FILE_H_
#define ATTEND_ENGINE_ATOMIC_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "attend/status.h"

namespace attend {

// Written under no name, or a temporary one beside the path where the file system cannot do that;
// Commit makes it durable and then gives it its name, replacing what had it. Destroyed before
// Commit, nothing is left and nothing was replaced. One that is killed leaves at most a temporary
// file ".NAME.PID.N.tmp".
class AtomicFile {
 public:
  AtomicFile() = default;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Errors: kInvalidArgument (no file can have that path, or a folder, device, pipe or socket has);
  // kIo, kNotFound (the folder).
  Status Create(const std::string& path);
  // Writes at `offset`. Errors: kIo.
  Status Put(uint64_t offset, std::span<const std::byte> bytes);
  // Errors: kIo. The file is not there then, or (if only the folder could not be made durable)
  // whole.
  Status Commit();

 private:
  Status CreateTemporary();
  Status LinkTemporary();

  std::string path_;       // as it was given, for messages
  std::string name_;       // in the folder
  std::string temporary_;  // the name it has for now, if it has one
  int folder_ = -1;
  int file_ = -1;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_ATOMIC_FILE_H_
