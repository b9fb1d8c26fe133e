// One character of UTF-8 at a time, for messages and JSON.
#ifndef ATTEND_TOOLS_UTF8_H_
#define ATTEND_TOOLS_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attend::tools {

struct Utf8Char {
  uint32_t code_point = 0xFFFD;
  size_t size = 1;  // bytes; 1 where invalid
  bool valid = false;
};

// The first character of `text`, which is not empty.
Utf8Char DecodeUtf8(std::string_view text);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_UTF8_H_
