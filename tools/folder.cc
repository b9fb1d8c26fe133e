#include "tools/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "tools/json.h"

namespace attend {
namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

const char* KindName(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISLNK(mode)) return "a link";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

Status OpenError(int error, const std::string& path, std::string_view expected) {
  if (error == ENOENT) return {ErrorCode::kNotFound, "no such file or folder", path};
  if (error == ELOOP) {
    return {ErrorCode::kIo,
            "expected " + std::string(expected) + ", got a link, and links are not followed", path,
            "copy the folder with: cp -rL FOLDER COPY"};
  }
  if (error == ENOTDIR) {
    return {ErrorCode::kIo, "expected " + std::string(expected) + ", got something else", path,
            "give the folder that holds config.json"};
  }
  return {ErrorCode::kIo, "cannot be opened: " + ErrnoText(error), path};
}

// The target of the link `name` if it is one that the Hugging Face cache makes: a content address
// beside the snapshots, ../../blobs/ and 40 or 64 hexadecimal digits (one ".." more for a folder
// inside). Any other link could make the converter read a file that is not the model's.
std::string CacheTarget(int folder, const std::string& name) {
  std::array<char, 256> buffer;
  const ssize_t length = readlinkat(folder, name.c_str(), buffer.data(), buffer.size());
  if (length <= 0 || static_cast<size_t>(length) >= buffer.size()) return {};
  const std::string target(buffer.data(), static_cast<size_t>(length));
  std::string_view rest = target;
  for (const std::string_view prefix : {"../../../blobs/", "../../blobs/"}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  const bool digits = std::all_of(rest.begin(), rest.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return digits && (rest.size() == 40 || rest.size() == 64) && rest.size() < target.size()
             ? target
             : std::string();
}

Status NotPlain(std::string_view name, const std::string& folder) {
  return {ErrorCode::kCorrupt,
          "expected the plain name of a file in this folder, got " + Quoted(name), folder};
}

}  // namespace

bool IsPlainName(std::string_view name) {
  if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      path_(std::move(other.path_)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<InputFile> InputFile::Adopt(int descriptor, std::string path) {
  if (descriptor < 0) return OpenError(errno, path, "a file");
  InputFile file;
  file.descriptor_ = descriptor;
  file.path_ = std::move(path);
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    return Status(ErrorCode::kIo, "cannot be examined: " + ErrnoText(errno), file.path_);
  }
  if (!S_ISREG(status.st_mode)) {
    return Status(ErrorCode::kIo, std::string("expected a file, got ") + KindName(status.st_mode),
                  file.path_);
  }
  file.size_ = static_cast<uint64_t>(status.st_size);
  return file;
}

Result<InputFile> InputFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait; it is refused just after.
  return Adopt(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), path);
}

Status InputFile::Read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    // Linux moves at most 2 GiB - 4 KiB in one call.
    const size_t want = std::min(out.size(), size_t{1} << 30);
    const ssize_t got = pread(descriptor_, out.data(), want, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {ErrorCode::kIo, "cannot be read: " + ErrnoText(errno), path_};
    if (got == 0) {
      return {ErrorCode::kCorrupt,
              "the file ends at byte " + std::to_string(offset) + ", " +
                  std::to_string(out.size()) + " bytes too early",
              path_, "it was cut while it was read"};
    }
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

Result<std::string> InputFile::ReadAll(size_t max_bytes) const {
  if (size_ > max_bytes) {
    return Status(
        ErrorCode::kCapacity,
        "expected at most " + std::to_string(max_bytes) + " bytes, got " + std::to_string(size_),
        path_);
  }
  std::string text(static_cast<size_t>(size_), '\0');
  ATTEND_RETURN_IF_ERROR(Read(0, std::as_writable_bytes(std::span<char>(text))));
  return text;
}

FolderReader::FolderReader(FolderReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

FolderReader& FolderReader::operator=(FolderReader&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

FolderReader::~FolderReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<FolderReader> FolderReader::Open(const std::string& path) {
  FolderReader folder;
  folder.path_ = path;
  folder.descriptor_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder.descriptor_ < 0) return OpenError(errno, path, "a folder");
  return folder;
}

std::string FolderReader::PathOf(std::string_view name) const {
  const bool slash = path_.empty() || path_.back() == '/';
  return path_ + (slash ? "" : "/") + Printable(name);
}

bool FolderReader::Has(std::string_view name) const {
  struct stat status;
  return IsPlainName(name) &&
         fstatat(descriptor_, std::string(name).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<InputFile> FolderReader::OpenFile(std::string_view name) const {
  if (!IsPlainName(name)) return NotPlain(name, path_);
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const std::string plain(name);
  int descriptor = openat(descriptor_, plain.c_str(), flags);
  if (descriptor < 0 && errno == ELOOP) {
    const std::string target = CacheTarget(descriptor_, plain);
    errno = ELOOP;
    if (!target.empty()) descriptor = openat(descriptor_, target.c_str(), flags);
  }
  return InputFile::Adopt(descriptor, PathOf(name));
}

Result<FolderReader> FolderReader::OpenFolder(std::string_view name) const {
  if (!IsPlainName(name)) return NotPlain(name, path_);
  FolderReader folder;
  folder.path_ = PathOf(name);
  folder.descriptor_ = openat(descriptor_, std::string(name).c_str(),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder.descriptor_ < 0) return OpenError(errno, folder.path_, "a folder");
  return folder;
}

Result<nlohmann::json> FolderReader::ReadJson(std::string_view name, size_t max_bytes) const {
  Result<InputFile> file = OpenFile(name);
  if (!file.ok()) return file.status();
  Result<std::string> text = file->ReadAll(max_bytes);
  if (!text.ok()) return text.status();
  return ParseJson(*text, file->path());
}

}  // namespace attend
