// The exit codes of the attend program, a contract with the scripts of others.
#ifndef ATTEND_TOOLS_EXIT_CODE_H_
#define ATTEND_TOOLS_EXIT_CODE_H_

#include "attend/status.h"

namespace attend::tools {

enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitUsage = 2,
  kExitInvalid = 3,  // an invalid or unsupported model or input
  kExitIo = 4,
  kExitLimit = 5,  // a limit, or memory
  kExitNo = 6,     // `verify` or a comparison says no
  kExitIsa = 7,    // this CPU lacks the instruction set asked for
  kExitDeadline = 8,
  kExitInterrupted = 130,
};

// The one table from errors to exit codes.
ExitCode ExitCodeOf(ErrorCode code);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_EXIT_CODE_H_
