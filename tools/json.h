// JSON read strictly. The converters' input comes from the network: nesting is bounded, duplicate
// keys, invalid UTF-8, byte order marks, NaN and Infinity are refused, and numbers are checked
// before they become integers (nlohmann alone turns 1.5 into 1 and -1 into 2^64-1 in silence).
#ifndef ATTEND_TOOLS_JSON_H_
#define ATTEND_TOOLS_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "attend/status.h"

namespace attend {

inline constexpr size_t kMaxJsonDepth = 64;

// Parses the one JSON value that is all of `text`. `where` names the text in errors.
// Errors: kCorrupt naming line and column; kUnsupported for more than kMaxJsonDepth levels.
Result<nlohmann::json> ParseJson(std::string_view text, std::string_view where);

// The same for a regular file of at most `max_bytes`.
// Errors: also kNotFound, kIo (a folder, a device: says which), kCapacity.
Result<nlohmann::json> ParseJsonFile(const std::string& path, size_t max_bytes);

// The checked fields of an object. `where` names the object ("FOLDER/config.json"). The forms with
// a fallback return it when the key is absent or null; the others make that an error.
// Errors: kCorrupt naming the field, its value and what is allowed.
Result<int64_t> JsonInt(const nlohmann::json& object, std::string_view key, int64_t min,
                        int64_t max, std::string_view where);
Result<int64_t> JsonInt(const nlohmann::json& object, std::string_view key, int64_t min,
                        int64_t max, std::string_view where, int64_t fallback);
Result<double> JsonFloat(const nlohmann::json& object, std::string_view key, double min, double max,
                         std::string_view where);
Result<double> JsonFloat(const nlohmann::json& object, std::string_view key, double min, double max,
                         std::string_view where, double fallback);
Result<bool> JsonBool(const nlohmann::json& object, std::string_view key, std::string_view where);
Result<bool> JsonBool(const nlohmann::json& object, std::string_view key, std::string_view where,
                      bool fallback);
Result<std::string> JsonString(const nlohmann::json& object, std::string_view key,
                               std::string_view where);
Result<std::string> JsonString(const nlohmann::json& object, std::string_view key,
                               std::string_view where, std::string_view fallback);

// The value of `key` if `object` is an object that has it and it is not null, else null.
const nlohmann::json* JsonFind(const nlohmann::json& object, std::string_view key);

// The error of a field whose value is not one of those allowed.
Status JsonFieldError(std::string_view key, const nlohmann::json& value, std::string_view allowed,
                      std::string_view where);

// `value` as short text for messages: one line, at most 80 bytes, printable.
std::string JsonExcerpt(const nlohmann::json& value);

// `text` as it may be shown in a message: control characters and bytes that are not UTF-8 escaped,
// cut after `max_bytes`. Names in a model folder are somebody else's bytes.
std::string Printable(std::string_view text, size_t max_bytes = 200);

// The same between quotation marks.
std::string Quoted(std::string_view text, size_t max_bytes = 200);

// What `bytes`, the beginning of a file, seem to be when they are not what was expected ("a Git-LFS
// pointer", "an HTML page", ...), or "" if nothing is recognised.
std::string_view GuessContent(std::string_view bytes);

// What to do about a file that GuessContent recognised; may be "".
std::string_view GuessHint(std::string_view guess);

}  // namespace attend

#endif  // ATTEND_TOOLS_JSON_H_
