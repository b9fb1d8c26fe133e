#include "tools/json_writer.h"

#include <charconv>
#include <cmath>

#include "tools/utf8.h"

namespace attend::tools {
namespace {

template <typename T>
void AppendNumber(T value, std::string* out) {
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  out->append(buffer, result.ptr);
}

void AppendControl(uint32_t c, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  switch (c) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    default:
      break;
  }
  *out += "\\u00";
  *out += kDigits[c >> 4];
  *out += kDigits[c & 15];
}

}  // namespace

void JsonWriter::Separate() {
  if (comma_) text_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  text_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  text_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  String(key);
  text_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  Separate();
  text_ += '"';
  for (size_t i = 0; i < value.size();) {
    const Utf8Char c = DecodeUtf8(value.substr(i));
    if (!c.valid) {
      text_ += "\xEF\xBF\xBD";
    } else if (c.code_point == '"' || c.code_point == '\\') {
      text_ += '\\';
      text_ += static_cast<char>(c.code_point);
    } else if (c.code_point < 0x20 || c.code_point == 0x7F) {
      AppendControl(c.code_point, &text_);
    } else {
      text_ += value.substr(i, c.size);
    }
    i += c.size;
  }
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  AppendNumber(value, &text_);
  return *this;
}

JsonWriter& JsonWriter::Float(float value) {
  Separate();
  if (std::isfinite(value)) {
    AppendNumber(value, &text_);
  } else {
    text_ += "null";
  }
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  text_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Floats(std::span<const float> values) {
  BeginArray();
  for (float value : values) Float(value);
  return EndArray();
}

std::string FormatFloat(float value) {
  std::string text;
  AppendNumber(value, &text);
  return text;
}

}  // namespace attend::tools
