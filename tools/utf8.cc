#include "tools/utf8.h"

namespace attend::tools {

Utf8Char DecodeUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  size_t size = 0;
  uint32_t smallest = 0;
  uint32_t value = 0;
  if ((first & 0xE0) == 0xC0) {
    size = 2, smallest = 0x80, value = first & 0x1Fu;
  } else if ((first & 0xF0) == 0xE0) {
    size = 3, smallest = 0x800, value = first & 0x0Fu;
  } else if ((first & 0xF8) == 0xF0) {
    size = 4, smallest = 0x10000, value = first & 0x07u;
  }
  if (size == 0 || text.size() < size) return {};
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < smallest || value > 0x10FFFF || surrogate) return {};
  return {value, size, true};
}

}  // namespace attend::tools
