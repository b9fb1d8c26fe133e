// UTF-8: checking, reading and writing.
#ifndef ATTEND_ENGINE_TEXT_UTF8_H_
#define ATTEND_ENGINE_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "attend/text.h"

namespace attend {

inline constexpr size_t kValidUtf8 = SIZE_MAX;

// The byte where the first sequence that is not UTF-8 begins (overlong forms, surrogates and what
// lies beyond U+10FFFF are not), or kValidUtf8.
size_t FindInvalidUtf8(std::string_view text);

// The number of leading ASCII bytes.
inline size_t AsciiPrefix(std::string_view text) {
  size_t i = 0;
  for (uint64_t word; i + 8 <= text.size(); i += 8) {
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

// Whether a sequence begins at this byte of valid UTF-8.
inline bool IsUtf8Lead(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// The code point at `at` of valid UTF-8, and its length.
inline char32_t DecodeUtf8(const char* at, uint32_t* length) {
  const auto byte = [at](int i) {
    return static_cast<char32_t>(static_cast<unsigned char>(at[i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) {
    *length = 1;
    return lead;
  }
  if (lead < 0xE0) {
    *length = 2;
    return (lead & 0x1F) << 6 | (byte(1) & 0x3F);
  }
  if (lead < 0xF0) {
    *length = 3;
    return (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  }
  *length = 4;
  return (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

// Writes a code point; returns its length, 1 to 4.
inline uint32_t EncodeUtf8(char32_t c, char* out) {
  const auto put = [out](int i, char32_t byte) { out[i] = static_cast<char>(byte); };
  if (c < 0x80) {
    put(0, c);
    return 1;
  }
  if (c < 0x800) {
    put(0, 0xC0 | c >> 6);
    put(1, 0x80 | (c & 0x3F));
    return 2;
  }
  if (c < 0x10000) {
    put(0, 0xE0 | c >> 12);
    put(1, 0x80 | (c >> 6 & 0x3F));
    put(2, 0x80 | (c & 0x3F));
    return 3;
  }
  put(0, 0xF0 | c >> 18);
  put(1, 0x80 | (c >> 12 & 0x3F));
  put(2, 0x80 | (c >> 6 & 0x3F));
  put(3, 0x80 | (c & 0x3F));
  return 4;
}

// Rewrites ranges of bytes of valid `text` to `unit`; a range that cuts a character is widened to
// the whole of it. Cost: linear, if the ranges come in the order of the text.
void ConvertOffsets(std::string_view text, OffsetUnit unit, TextRange* ranges, size_t count);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_UTF8_H_
