// The C interface: errors, structs and texts. Nothing here knows a model, so that it is in
// libattend_text too.
#include "engine/c_api.h"

#include <limits>

namespace attend::c {
namespace {

// No field may lie in what an older header has as padding, which holds anything.
template <typename Struct, typename Field>
constexpr bool EndsWith(Field Struct::*, size_t offset) {
  return offset + sizeof(Field) == sizeof(Struct);
}
#define ATTEND_ENDS_WITH(Struct, field)                            \
  static_assert(EndsWith(&Struct::field, offsetof(Struct, field)), \
                #Struct " has padding at its end")
ATTEND_ENDS_WITH(attend_error, hint);
ATTEND_ENDS_WITH(attend_machine, libraries);
ATTEND_ENDS_WITH(attend_logger, reserved);
ATTEND_ENDS_WITH(attend_trace_info, num_dropped);
ATTEND_ENDS_WITH(attend_load_options, logger);
ATTEND_ENDS_WITH(attend_model_info, file_bytes);
ATTEND_ENDS_WITH(attend_executor, concurrency);
ATTEND_ENDS_WITH(attend_session_options, reserved);
ATTEND_ENDS_WITH(attend_batch, edge_offsets);
ATTEND_ENDS_WITH(attend_telemetry, encode_ns);
ATTEND_ENDS_WITH(attend_output, telemetry);
ATTEND_ENDS_WITH(attend_session_info, description);
ATTEND_ENDS_WITH(attend_encode_options, max_tokens);
ATTEND_ENDS_WITH(attend_tokens, reserved);
ATTEND_ENDS_WITH(attend_tokenizer_info, num_added_to_pair);
ATTEND_ENDS_WITH(attend_pipeline_options, max_length);
ATTEND_ENDS_WITH(attend_tags, telemetry);
ATTEND_ENDS_WITH(attend_classes, telemetry);
ATTEND_ENDS_WITH(attend_embeddings, telemetry);
ATTEND_ENDS_WITH(attend_ranking, telemetry);
ATTEND_ENDS_WITH(attend_generation_settings, bad_words_ids);
ATTEND_ENDS_WITH(attend_generator_options, reserved);
ATTEND_ENDS_WITH(attend_generations, telemetry);
ATTEND_ENDS_WITH(attend_attention_options, trace);
ATTEND_ENDS_WITH(attend_attention, cross);
ATTEND_ENDS_WITH(attend_batcher_options, no_threads);
ATTEND_ENDS_WITH(attend_answer, telemetry);
ATTEND_ENDS_WITH(attend_request, user);
ATTEND_ENDS_WITH(attend_batcher_statistics, queued_p99_us);

// Larger than any struct will ever be: what is above was never set.
constexpr size_t kMaxStructSize = 16384;

// Copies `text` with a NUL behind it; what does not fit is cut between characters, and "..." says
// so.
void CopyText(std::string_view text, char* out, size_t capacity) {
  size_t size = text.size();
  const bool cut = size >= capacity;
  if (cut) {
    size = capacity - 4;
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  }
  std::memcpy(out, text.data(), size);
  if (cut) {
    std::memcpy(out + size, "...", 3);
    size += 3;
  }
  out[size] = '\0';
}

template <size_t kSize>
void FillText(std::string_view text, char (&field)[kSize], const attend_error* error) {
  const size_t offset = static_cast<size_t>(field - reinterpret_cast<const char*>(error));
  if (error->struct_size >= offset + kSize) CopyText(text, field, kSize);
}

}  // namespace

Status ReadLogger(const attend_logger* given, std::unique_ptr<CallbackLogger>* out) {
  if (given == nullptr) return Status();
  constexpr const char* kName = "attend_logger";
  attend_logger logger = ATTEND_LOGGER_INIT;
  ATTEND_RETURN_IF_ERROR(ReadStruct(given, kName, &logger));
  ATTEND_RETURN_IF_ERROR(CheckOption(kName, "least", logger.least, -1, 1));
  ATTEND_RETURN_IF_ERROR(CheckEnum(logger.reserved, 0, kName, "reserved"));
  if (logger.log == nullptr) return Invalid("log is NULL", kName);
  *out = std::make_unique<CallbackLogger>(logger);
  return Status();
}

Status ReadLoadOptions(const attend_load_options* given, LoadSetup* out) {
  constexpr const char* kName = "attend_load_options";
  attend_load_options read = ATTEND_LOAD_OPTIONS_INIT;
  ATTEND_RETURN_IF_ERROR(ReadStruct(given, kName, &read));
  ATTEND_RETURN_IF_ERROR(CheckEnum(read.reserved, 0, kName, "reserved"));
  ATTEND_RETURN_IF_ERROR(ReadLogger(read.logger, &out->logger));
  out->options = {.mode = static_cast<LoadMode>(read.mode), .logger = out->logger.get()};
  return Status();
}

attend_status Report(ErrorCode code, std::string_view message, std::string_view where,
                     std::string_view hint, attend_error* error) noexcept {
  const auto status = static_cast<attend_status>(code);
  if (error == nullptr || error->struct_size < offsetof(attend_error, message)) return status;
  if (error->struct_size > kMaxStructSize) return status;
  error->code = status;
  FillText(message, error->message, error);
  FillText(where, error->where, error);
  FillText(hint, error->hint, error);
  return status;
}

Status CheckStructSize(size_t size, size_t known, const char* name) {
  if (size >= sizeof(size_t) && size <= kMaxStructSize) return Status();
  return Invalid("struct_size is " + std::to_string(size) + ", expected " + std::to_string(known),
                 name, "begin with the _INIT of the struct");
}

Status CheckUnknown(std::span<const unsigned char> bytes, const char* name) {
  if (std::all_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b == 0; })) {
    return Status();
  }
  return Status(ErrorCode::kUnsupported,
                "a field is set that this version of attend, " ATTEND_VERSION ", does not know",
                name, "link the version whose header the program was compiled with");
}

Status Narrow(int64_t value, const char* owner, const char* name, int32_t* out) {
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int32_t>::max();
  ATTEND_RETURN_IF_ERROR(CheckOption(owner, name, value, kLow, kHigh));
  *out = static_cast<int32_t>(value);
  return Status();
}

Status CheckArray(const void* array, int64_t count, const char* name) {
  if (count < 0)
    return Invalid("the count is " + std::to_string(count) + ", expected 0 or more", name);
  // No array that is larger could be cut by int32_t offsets.
  if (count > std::numeric_limits<int32_t>::max()) {
    return Status(ErrorCode::kCapacity,
                  "the count is " + std::to_string(count) + ", at most 2147483647 are allowed",
                  name, "split it");
  }
  return count == 0 ? Status() : RequirePointer(array, name);
}

Status CheckEnum(int64_t value, int64_t last, const char* owner, const char* name) {
  return CheckOption(owner, name, value, 0, last);
}

Status ReadText(const attend_text& text, const char* name, std::string_view* out) {
  if (text.data == nullptr && text.size > 0) return RequirePointer(nullptr, name);
  *out = text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
  return Status();
}

Status ReadTexts(const attend_text* texts, int64_t count, const char* name,
                 std::vector<std::string_view>* out) {
  ATTEND_RETURN_IF_ERROR(CheckArray(texts, count, name));
  out->resize(static_cast<size_t>(count));
  for (size_t i = 0; i < out->size(); ++i) {
    if (ReadText(texts[i], name, &(*out)[i]).ok()) continue;
    return Invalid("the text is NULL and its size " + std::to_string(texts[i].size), At(name, i));
  }
  return Status();
}

}  // namespace attend::c

const char* attend_status_name(attend_status status) {
  return attend::ErrorCodeName(static_cast<attend::ErrorCode>(status));
}

const char* attend_version(void) { return ATTEND_VERSION; }

attend_status attend_buffer_create(attend_buffer** out, attend_error* error) {
  return attend::c::Guarded("buffer", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    *out = new attend_buffer;
    return {};
  });
}

void attend_buffer_free(attend_buffer* buffer) { delete buffer; }
