// What the files of the C interface share: handles, errors, and structs that grow. The functions
// check pointers and numbers, call the C++ interface, and keep what it gives until the next call.
#ifndef ATTEND_ENGINE_C_API_H_
#define ATTEND_ENGINE_C_API_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/attend_c.h"
#include "attend/text.h"
#include "attend/trace.h"
#include "engine/check.h"

// The handles that several files look into; the others are where they are used.
struct attend_model {
  attend::Model model;
  std::vector<const char*> labels;  // of model.info()
};

struct attend_tokenizer {
  attend::Tokenizer tokenizer;
  std::string kind;
};

struct attend_buffer {
  attend::Encoding encoding;
  std::vector<attend_text> tokens;
  std::string text;
  std::vector<std::string> strings;
  std::vector<const char*> pointers;  // to strings
};

struct attend_trace {
  attend::Trace trace;
};

namespace attend::c {

// Fills `error`, if there is one, as far as it goes. Allocates nothing.
attend_status Report(ErrorCode code, std::string_view message, std::string_view where,
                     std::string_view hint, attend_error* error) noexcept;

inline attend_status Report(const Status& status, attend_error* error) noexcept {
  return Report(status.code(), status.what(), status.where(), status.hint(), error);
}

// The status of `function` (a Status), reported; no exception of its gets any further.
template <typename Function>
attend_status Guarded(const char* where, attend_error* error, const Function& function) noexcept {
  try {
    return Report(function(), error);
  } catch (const std::bad_alloc&) {
    return Report(ErrorCode::kCapacity, "out of memory", where, {}, error);
  } catch (const std::length_error&) {
    return Report(ErrorCode::kCapacity, "out of memory", where, {}, error);
  } catch (...) {
    return Report(ErrorCode::kInternal, "an exception came out of a call that throws none", where,
                  {}, error);
  }
}

inline Status RequirePointer(const void* pointer, const char* name) {
  return pointer != nullptr ? Status() : Invalid("the pointer is NULL", name);
}

// `size` is a caller's struct_size, `known` the library's.
Status CheckStructSize(size_t size, size_t known, const char* name);
// Errors: kUnsupported (a byte of `bytes` is not 0).
Status CheckUnknown(std::span<const unsigned char> bytes, const char* name);

// What the caller's struct says, over the defaults that are in *out; NULL says nothing.
// Errors: kInvalidArgument (struct_size cannot be right); kUnsupported (a field that is not known
// here is not 0).
template <typename Struct>
Status ReadStruct(const Struct* given, const char* name, Struct* out) {
  if (given == nullptr) return Status();
  const size_t size = given->struct_size;
  ATTEND_RETURN_IF_ERROR(CheckStructSize(size, sizeof(Struct), name));
  std::memcpy(out, given, std::min(size, sizeof(Struct)));
  if (size <= sizeof(Struct)) return Status();
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  return CheckUnknown({bytes + sizeof(Struct), size - sizeof(Struct)}, name);
}

// Whether `out` is a struct that WriteStruct can fill.
template <typename Struct>
Status CheckResult(const Struct* out, const char* name) {
  ATTEND_RETURN_IF_ERROR(RequirePointer(out, name));
  return CheckStructSize(out->struct_size, sizeof(Struct), name);
}

// Fills as much of *out as its struct_size says; what is beyond what the library knows is 0.
template <typename Struct>
void WriteStruct(Struct values, Struct* out) noexcept {
  const size_t size = out->struct_size;
  values.struct_size = size;
  std::memcpy(out, &values, std::min(size, sizeof(Struct)));
  if (size <= sizeof(Struct)) return;
  std::memset(reinterpret_cast<unsigned char*>(out) + sizeof(Struct), 0, size - sizeof(Struct));
}

// A caller's count or number as an int32_t of the C++ interface.
Status Narrow(int64_t value, const char* owner, const char* name, int32_t* out);
// The same of a count that must not be negative, for an array that must then be there.
Status CheckArray(const void* array, int64_t count, const char* name);
// Of one of the caller's enums: 0 .. last.
Status CheckEnum(int64_t value, int64_t last, const char* owner, const char* name);

// `text` as a view. Errors: kInvalidArgument (NULL with a size).
Status ReadText(const attend_text& text, const char* name, std::string_view* out);
// The same of an array.
Status ReadTexts(const attend_text* texts, int64_t count, const char* name,
                 std::vector<std::string_view>* out);

// The caller's threads.
class CallbackExecutor final : public Executor {
 public:
  explicit CallbackExecutor(const attend_executor& callbacks) : callbacks_(callbacks) {}
  void Run(int n, void (*task)(void* argument, int index), void* argument) override {
    callbacks_.run(callbacks_.user, n, task, argument);
  }
  int concurrency() const override { return callbacks_.concurrency(callbacks_.user); }

 private:
  attend_executor callbacks_;
};

// Whom the caller wants to be told.
class CallbackLogger final : public Logger {
 public:
  explicit CallbackLogger(const attend_logger& callback) : callback_(callback) {}
  void Log(const LogEntry& entry) override {
    callback_.log(callback_.user, static_cast<int32_t>(entry.level),
                  static_cast<int32_t>(entry.code), entry.message.data(), entry.message.size());
  }
  LogLevel least() const override { return static_cast<LogLevel>(callback_.least); }

 private:
  attend_logger callback_;
};

// The caller's logger; null if none is given. Errors: kInvalidArgument.
Status ReadLogger(const attend_logger* given, std::unique_ptr<CallbackLogger>* out);

// LoadOptions, and the logger that they point to.
struct LoadSetup {
  LoadOptions options;
  std::unique_ptr<CallbackLogger> logger;
};
Status ReadLoadOptions(const attend_load_options* given, LoadSetup* out);

// What SessionOptions point to, and must outlive what is made with them: the first member of every
// handle.
struct Callbacks {
  std::unique_ptr<CallbackExecutor> executor;
  std::unique_ptr<CallbackLogger> logger;
};

struct SessionSetup {
  SessionOptions options;
  Callbacks callbacks;
};
Status ReadSessionOptions(const attend_session_options* given, SessionSetup* out);
Status ReadPipelineOptions(const attend_pipeline_options* given, SessionSetup* setup,
                           PipelineOptions* out);

// *kept, filled from *from, whose segments must stay where they are; NULL if there is none.
const attend_telemetry* KeepTelemetry(const Telemetry* from, attend_telemetry* kept);

// The caller's batch: a TokenBatch if `tokens`, else a VectorBatch. Allocates nothing unless there
// is an error.
struct BatchViews {
  bool tokens = true;
  TokenBatch token_batch;
  VectorBatch vector_batch;
};
Status ReadBatch(const attend_batch* given, int64_t input_size, BatchViews* out);

// The C strings of `strings`, which must stay where they are.
inline std::vector<const char*> Pointers(std::span<const std::string> strings) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size());
  for (const std::string& string : strings) pointers.push_back(string.c_str());
  return pointers;
}

}  // namespace attend::c

#endif  // ATTEND_ENGINE_C_API_H_
