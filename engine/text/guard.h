// No exception leaves the library: where there is too little memory, callers get an error.
#ifndef ATTEND_ENGINE_TEXT_GUARD_H_
#define ATTEND_ENGINE_TEXT_GUARD_H_

#include <new>
#include <stdexcept>

#include "attend/status.h"

namespace attend {

// What `function` returns, a Status or a Result; kCapacity if it runs out of memory. `where` has at
// most 15 characters: with them, the error itself allocates nothing.
template <typename Function>
auto WithoutExceptions(const char* where, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "out of memory", where);
  } catch (const std::length_error&) {  // more than a container could ever hold
    return Status(ErrorCode::kCapacity, "out of memory", where);
  }
}

// The error of an object whose contents were moved into another.
inline Status MovedFrom(const char* where) {
  return Status(ErrorCode::kInvalidArgument, "the object was moved from", where,
                "use the one that it was moved to");
}

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_GUARD_H_
