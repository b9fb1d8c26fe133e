// The operating system's errors as Status.
#ifndef ATTEND_ENGINE_OS_ERROR_H_
#define ATTEND_ENGINE_OS_ERROR_H_

#include <string>
#include <string_view>

#include "attend/status.h"

namespace attend {

// "Could not WHAT: REASON" with errno's reason in English whatever the locale. ENOENT gives
// kNotFound, lack of memory kCapacity, everything else kIo.
Status OsError(int error, std::string_view what, const std::string& where);

}  // namespace attend

#endif  // ATTEND_ENGINE_OS_ERROR_H_
