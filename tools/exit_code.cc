#include "tools/exit_code.h"

namespace attend::tools {

ExitCode ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return kExitOk;
    case ErrorCode::kInvalidArgument:
      return kExitInvalid;
    case ErrorCode::kNotFound:
      return kExitIo;
    case ErrorCode::kCorrupt:
      return kExitInvalid;
    case ErrorCode::kUnsupported:
      return kExitInvalid;
    case ErrorCode::kCapacity:
      return kExitLimit;
    case ErrorCode::kIo:
      return kExitIo;
    case ErrorCode::kDeadline:
      return kExitDeadline;
    case ErrorCode::kCancelled:
      return kExitInterrupted;
    case ErrorCode::kBusy:
      return kExitInternal;
    case ErrorCode::kInternal:
      return kExitInternal;
  }
  return kExitInternal;
}

}  // namespace attend::tools
