// What checks of the caller's arguments share: the form of their errors.
#ifndef ATTEND_ENGINE_CHECK_H_
#define ATTEND_ENGINE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "attend/status.h"

namespace attend {

inline Status Invalid(std::string what, std::string where, std::string hint = {}) {
  return Status(ErrorCode::kInvalidArgument, std::move(what), std::move(where), std::move(hint));
}

// An entry of the caller's array.
inline std::string At(const std::string& array, size_t index) {
  return array + "[" + std::to_string(index) + "]";
}

// Whether an option is in its range; `why` follows what is allowed.
inline Status CheckOption(const char* options, const char* name, int64_t value, int64_t low,
                          int64_t high, const char* why = "") {
  if (value >= low && value <= high) return Status();
  return Invalid(std::string(name) + " is " + std::to_string(value) + ", allowed are " +
                     std::to_string(low) + " to " + std::to_string(high) + why,
                 options);
}

}  // namespace attend

#endif  // ATTEND_ENGINE_CHECK_H_
