#include "engine/os_error.h"

#include <cerrno>
#include <cstring>

namespace attend {
namespace {

const char* HintFor(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "check the path, and the folder that it is relative to";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and its folders";
    case EMFILE:
    case ENFILE:
      return "too many files are open: close some, or raise the limit with ulimit -n";
    case ELOOP:
      return "its symbolic links go round in a circle";
    case ENAMETOOLONG:
      return "use a shorter path";
    case ENOSPC:
    case EDQUOT:
      return "make room on the disk";
    case EFBIG:
      return "the file would be larger than ulimit -f or the file system allows";
    case ENOMEM:
      return "close other programs, use a smaller model, or raise the memory limit";
    default:
      return "";
  }
}

}  // namespace

Status OsError(int error, std::string_view what, const std::string& where) {
  ErrorCode code = ErrorCode::kIo;
  if (error == ENOENT || error == ENOTDIR) code = ErrorCode::kNotFound;
  if (error == ENOMEM) code = ErrorCode::kCapacity;
  // strerror depends on the locale and is not safe between threads; this is neither.
  const char* reason = strerrordesc_np(error);
  std::string message = "Could not " + std::string(what) + ": ";
  message += reason != nullptr ? reason : "error " + std::to_string(error);
  return Status(code, std::move(message), where, HintFor(error));
}

}  // namespace attend
