// Errors as values: Status and Result<T>. Nothing in attend throws, prints or aborts.
#ifndef ATTEND_STATUS_H_
#define ATTEND_STATUS_H_

#if __cplusplus < 202002L
#error "attend's C++ headers need C++20; from C and older C++ include attend/attend_c.h"
#endif

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#if defined(__GNUC__) || defined(__clang__)
#define ATTEND_EXPORT __attribute__((visibility("default")))
#else
#define ATTEND_EXPORT
#endif

namespace attend {

// What kind of thing went wrong. The numbers are those of attend_status in the C interface.
enum class ErrorCode : int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // the caller's ids, offsets, text or options
  kNotFound = 2,         // no such file, model or label
  kCorrupt = 3,          // a file that is damaged or is not what it claims to be
  kUnsupported = 4,      // well-formed, but not something this engine runs
  kCapacity = 5,         // more than a declared or published limit
  kIo = 6,               // the operating system said no
  kDeadline = 7,
  kCancelled = 8,
  kBusy = 9,
  kInternal = 10,  // a defect of attend
};

// The name of `code` as it is printed ("INVALID_ARGUMENT"). Never null.
ATTEND_EXPORT const char* ErrorCodeName(ErrorCode code);

// The outcome of an operation: success, or an error that says what, where and what to do.
class [[nodiscard]] Status {
 public:
  // Success.
  Status() = default;

  // An error. `what`: one sentence with what was expected and what was found. `where`: the file,
  // tensor, field, row or byte. `hint`: what to do about it, or empty.
  Status(ErrorCode code, std::string what, std::string where = {}, std::string hint = {})
      : code_(code), what_(std::move(what)), where_(std::move(where)), hint_(std::move(hint)) {}

  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  const std::string& what() const { return what_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }

  // "where: what (hint)" in one line, for people; "ok" for success.
  ATTEND_EXPORT std::string ToString() const;

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string what_;
  std::string where_;
  std::string hint_;
};

// A T, or the Status that says why there is none. Look at ok() before the value is used.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace attend

// Returns the error of `expression` (a Status) from the surrounding function, if it is one.
#define ATTEND_RETURN_IF_ERROR(expression)                     \
  do {                                                         \
    ::attend::Status attend_status_value = (expression);       \
    if (!attend_status_value.ok()) return attend_status_value; \
  } while (false)

#endif  // ATTEND_STATUS_H_
