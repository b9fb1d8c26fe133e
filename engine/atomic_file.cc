#include "engine/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/os_error.h"

namespace attend {
namespace {

constexpr int kAttempts = 1000;
constexpr mode_t kMode = 0666;  // less the umask, as for any new file

// Names of temporary files: the process, and a number that is free.
std::string TemporaryName(const std::string& name, int attempt) {
  // Names have at most 255 bytes; a longer one would fail for a reason that nobody understands.
  std::string temporary = ".";
  temporary.append(name, 0, 200).append(".").append(std::to_string(getpid())).append(".");
  return temporary.append(std::to_string(attempt)).append(".tmp");
}

std::string DescriptorPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlinkat(folder_, temporary_.c_str(), 0);
  if (file_ >= 0) close(file_);
  if (folder_ >= 0) close(folder_);
}

Status AtomicFile::Create(const std::string& path) {
  path_ = path;
  const size_t slash = path.rfind('/');
  name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (path.find('\0') != std::string::npos) {
    return Status(ErrorCode::kInvalidArgument, "The path has a NUL byte in it.",
                  std::string(path.c_str()));
  }
  if (name_.empty() || name_ == "." || name_ == "..") {
    return Status(ErrorCode::kInvalidArgument, "The path names a folder, not a file.", path,
                  "add the name of the file to it");
  }
  // Everything below is relative to this folder: renaming one above it changes nothing.
  folder_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) return OsError(errno, "open the folder of the file", path);
  struct stat info;
  if (fstatat(folder_, name_.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
      return Status(ErrorCode::kInvalidArgument,
                    S_ISDIR(info.st_mode) ? "There is a folder of that name."
                                          : "There is a device, pipe or socket of that name.",
                    path, "choose another name for the file");
    }
  } else if (errno != ENOENT) {
    return OsError(errno, "look at the file that is to be replaced", path);
  }
  // A file without a name vanishes with its process, however that ends. It gets a name by way of
  // /proc, so that has to be there.
  file_ = openat(folder_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
  if (file_ >= 0 && access(DescriptorPath(file_).c_str(), F_OK) == 0) return Status();
  if (file_ >= 0) close(file_);
  return CreateTemporary();
}

Status AtomicFile::CreateTemporary() {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = TemporaryName(name_, attempt);
    file_ = openat(folder_, name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
    if (file_ >= 0) {
      temporary_ = name;
      return Status();
    }
    if (errno != EEXIST) break;
  }
  return OsError(errno, "create a file in the folder", path_);
}

Status AtomicFile::LinkTemporary() {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = TemporaryName(name_, attempt);
    if (linkat(AT_FDCWD, DescriptorPath(file_).c_str(), folder_, name.c_str(), AT_SYMLINK_FOLLOW) ==
        0) {
      temporary_ = name;
      return Status();
    }
    if (errno != EEXIST) break;
  }
  return OsError(errno, "name the file", path_);
}

Status AtomicFile::Put(uint64_t offset, std::span<const std::byte> bytes) {
  // A gigabyte at a time: Linux writes no more than 2 GiB at once.
  constexpr size_t kMost = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(file_, bytes.data(), std::min(bytes.size(), kMost), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    // Writing nothing is no error of any kind that POSIX knows; it must not become a loop.
    if (written <= 0) return OsError(written < 0 ? errno : ENOSPC, "write the file", path_);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return Status();
}

Status AtomicFile::Commit() {
  // Contents first, then the name: a power cut between the two leaves the old file.
  if (fsync(file_) != 0) return OsError(errno, "write the file to the disk", path_);
  if (temporary_.empty()) ATTEND_RETURN_IF_ERROR(LinkTemporary());
  const int fd = file_;
  file_ = -1;
  // Network file systems report here what did not get through.
  if (close(fd) != 0) return OsError(errno, "finish the file", path_);
  if (renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) != 0) {
    return OsError(errno, "give the file its name", path_);
  }
  temporary_.clear();
  // Some file systems cannot sync a folder, and say so with EINVAL.
  if (fsync(folder_) != 0 && errno != EINVAL) {
    return OsError(errno, "write the folder to the disk", path_);
  }
  return Status();
}

}  // namespace attend
