#ifndef ATTEND_TOOLS_WHOLE_FILE_H_
#define ATTEND_TOOLS_WHOLE_FILE_H_

#include <span>
#include <string>

#include "attend/status.h"
#include "engine/atomic_file.h"

namespace attend::tools {

// Writes `path`, whole or not at all. Errors: kIo.
inline Status WriteWholeFile(const std::string& path, const std::string& text) {
  AtomicFile file;
  ATTEND_RETURN_IF_ERROR(file.Create(path));
  ATTEND_RETURN_IF_ERROR(file.Put(0, std::as_bytes(std::span(text))));
  return file.Commit();
}

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_WHOLE_FILE_H_
