// Writes JSON in one pass. Numbers of 32 bits are written so that reading them gives the same 32
// bits again, as short as that allows.
#ifndef ATTEND_TOOLS_JSON_WRITER_H_
#define ATTEND_TOOLS_JSON_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace attend::tools {

// Appends to a string that the caller may take or clear between documents.
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key);
  // Bytes that are not UTF-8 become U+FFFD.
  JsonWriter& String(std::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Float(float value);  // null for what JSON has no number for
  JsonWriter& Bool(bool value);
  JsonWriter& Floats(std::span<const float> values);  // one array

  // Ends the document with a line end.
  void EndLine() { text_ += '\n', comma_ = false; }
  const std::string& text() const { return text_; }
  void Clear() { text_.clear(), comma_ = false; }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();

  std::string text_;
  bool comma_ = false;  // a value was written at this place, so that the next needs a comma
};

// `value` as it is printed everywhere: the shortest text that reads back as the same float.
std::string FormatFloat(float value);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_JSON_WRITER_H_
