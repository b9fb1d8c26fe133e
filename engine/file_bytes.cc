// FileBytes: a file is opened once and asked what it is through that one descriptor, so that nobody
// can swap it in between.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "attend/attend.h"
#include "engine/check.h"
#include "engine/format.h"
#include "engine/os_error.h"

namespace attend {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

int OpenRetrying(const char* path, int flags) {
  int fd;
  do {
    fd = open(path, flags);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// What kind of thing that is not a regular file, or nullptr.
const char* SpecialKind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return S_ISREG(mode) ? nullptr : "no regular file";
}

Status NotAFile(const char* kind, const std::string& path) {
  return Status(ErrorCode::kIo, std::string("Expected a file, got ") + kind + ".", path,
                "name the .attend file itself");
}

// Files of /proc and /sys say that they are regular and have no size; /proc/self/mem even has all
// of memory in it.
bool IsKernelFileSystem(int fd) {
  struct statfs info;
  if (fstatfs(fd, &info) != 0) return false;
  return info.f_type == PROC_SUPER_MAGIC || info.f_type == SYSFS_MAGIC;
}

// Reads exactly `size` bytes.
Status ReadAll(int fd, std::byte* out, size_t size, const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = pread(fd, out + done, size - done, static_cast<off_t>(done));
    if (got < 0) {
      if (errno == EINTR) continue;
      return OsError(errno, "read the file", path);
    }
    if (got == 0) {
      return Status(ErrorCode::kIo,
                    "The file became shorter while it was read: expected " + std::to_string(size) +
                        " bytes, got " + std::to_string(done) + ".",
                    path, "let whatever writes it finish, and rename files instead of rewriting");
    }
    done += static_cast<size_t>(got);
  }
  return Status();
}

}  // namespace

Result<FileBytes> FileBytes::Open(const std::string& path, const LoadOptions& options) {
  ATTEND_RETURN_IF_ERROR(
      CheckOption("LoadOptions", "mode", static_cast<int64_t>(options.mode), 0, 1));
  return Open(path, options.mode == LoadMode::kRead ? Mode::kRead : Mode::kMap);
}

Result<FileBytes> FileBytes::Open(const std::string& path, Mode mode) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Status(ErrorCode::kInvalidArgument,
                  path.empty() ? "The path is empty." : "The path has a NUL byte in it.",
                  std::string(path.c_str()));
  }
  // O_NONBLOCK: opening a named pipe must not wait for somebody to write to it.
  const Descriptor fd(OpenRetrying(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) {
    if (errno == ENXIO) return NotAFile("a socket or a device", path);
    return OsError(errno, "open the file", path);
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return OsError(errno, "look at the file", path);
  if (const char* kind = SpecialKind(info.st_mode)) return NotAFile(kind, path);
  if (IsKernelFileSystem(fd.get())) return NotAFile("something of /proc or /sys", path);

  FileBytes file;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return file;
  if (mode == Mode::kMap) {
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (address != MAP_FAILED) {
      file.owned_ = static_cast<std::byte*>(address);
      file.mapped_ = true;
      file.bytes_ = {file.owned_, size};
      return file;
    }
    file.map_error_ = errno;
  }
  if (!file.Allocate(size)) {
    return OsError(ENOMEM, "hold the file's " + std::to_string(size) + " bytes in memory", path);
  }
  ATTEND_RETURN_IF_ERROR(ReadAll(fd.get(), file.owned_, size, path));
  return file;
}

FileBytes FileBytes::Copy(std::span<const std::byte> bytes) {
  FileBytes file;
  if (bytes.empty()) return file;
  if (!file.Allocate(bytes.size())) throw std::bad_alloc();
  std::memcpy(file.owned_, bytes.data(), bytes.size());
  return file;
}

bool FileBytes::Allocate(size_t size) {
  owned_ = static_cast<std::byte*>(operator new (size, std::align_val_t{kTensorAlignment},
                                                 std::nothrow));
  if (owned_ == nullptr) return false;
  bytes_ = {owned_, size};
  return true;
}

void FileBytes::Free() {
  if (owned_ == nullptr) return;
  if (mapped_) {
    munmap(owned_, bytes_.size());
  } else {
    operator delete (owned_, std::align_val_t{kTensorAlignment});
  }
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      mapped_(std::exchange(other.mapped_, false)),
      map_error_(other.map_error_),
      owned_(std::exchange(other.owned_, nullptr)) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  if (this != &other) {
    Free();
    bytes_ = std::exchange(other.bytes_, {});
    mapped_ = std::exchange(other.mapped_, false);
    map_error_ = other.map_error_;
    owned_ = std::exchange(other.owned_, nullptr);
  }
  return *this;
}

FileBytes::~FileBytes() { Free(); }

void FileBytes::Release(std::span<const std::byte> range) const {
  if (!mapped_ || range.empty()) return;
  // Whole pages only: the rest of the first and the last may still be wanted.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(range.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(range.data() + range.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace attend
