// A folder that was downloaded, read with care: files are opened relative to the folder's own
// descriptor, by plain names only, and nothing but regular files is read.
#ifndef ATTEND_TOOLS_FOLDER_H_
#define ATTEND_TOOLS_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/status.h"

namespace attend {

// A regular file open for reading; closed with the object.
class InputFile {
 public:
  // Errors: kNotFound, kIo (a folder, a device, no permission: says which).
  static Result<InputFile> Open(const std::string& path);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Reads exactly `out.size()` bytes from `offset`; safe from several threads.
  // Errors: kIo; kCorrupt if the file ends before (it was cut after it was opened).
  Status Read(uint64_t offset, std::span<std::byte> out) const;

  // All of it. Errors: kCapacity if it is larger than `max_bytes`.
  Result<std::string> ReadAll(size_t max_bytes) const;

 private:
  friend class FolderReader;
  InputFile() = default;
  // Takes over `descriptor` (or the error in errno, if it is -1).
  static Result<InputFile> Adopt(int descriptor, std::string path);

  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::string path_;
};

// Opens what lies in one folder.
class FolderReader {
 public:
  // Errors: kNotFound, kIo (not a folder: says what it is).
  static Result<FolderReader> Open(const std::string& path);

  FolderReader(FolderReader&& other) noexcept;
  FolderReader& operator=(FolderReader&& other) noexcept;
  ~FolderReader();

  const std::string& path() const { return path_; }

  // `name`'s path, for messages.
  std::string PathOf(std::string_view name) const;

  // Whether there is anything called `name` here.
  bool Has(std::string_view name) const;

  // Opens the file `name`. A name is plain: no '/', no "..", not empty. Links are not followed,
  // but for those of the Hugging Face cache, which point to ../../blobs/HASH.
  // Errors: kCorrupt (not a plain name), kNotFound, kIo (a link, a folder, a device).
  Result<InputFile> OpenFile(std::string_view name) const;

  // Opens the folder `name`; the same rules.
  Result<FolderReader> OpenFolder(std::string_view name) const;

  Result<nlohmann::json> ReadJson(std::string_view name, size_t max_bytes) const;

 private:
  FolderReader() = default;
  int descriptor_ = -1;
  std::string path_;
};

// Whether `name` is one component of a path and nothing else: not "", ".", "..", and without '/',
// '\\' and control characters.
bool IsPlainName(std::string_view name);

}  // namespace attend

#endif  // ATTEND_TOOLS_FOLDER_H_
