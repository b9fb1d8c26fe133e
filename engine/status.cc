#include "attend/status.h"

namespace attend {

const char* ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "OK";
    case ErrorCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case ErrorCode::kNotFound:
      return "NOT_FOUND";
    case ErrorCode::kCorrupt:
      return "CORRUPT";
    case ErrorCode::kUnsupported:
      return "UNSUPPORTED";
    case ErrorCode::kCapacity:
      return "CAPACITY";
    case ErrorCode::kIo:
      return "IO";
    case ErrorCode::kDeadline:
      return "DEADLINE";
    case ErrorCode::kCancelled:
      return "CANCELLED";
    case ErrorCode::kBusy:
      return "BUSY";
    case ErrorCode::kInternal:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string text;
  if (!where_.empty()) text = where_ + ": ";
  text += what_;
  if (!hint_.empty()) text += " (" + hint_ + ")";
  return text;
}

}  // namespace attend
