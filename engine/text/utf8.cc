#include "engine/text/utf8.h"

namespace attend {
namespace {

// The length of the valid sequence at the front of `text`, which is not empty, or 0.
size_t SequenceLength(std::string_view text) {
  const auto byte = [text](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return follows(1) ? 2 : 0;
  if (lead < 0xF0) {
    // E0 80..9F would be overlong, ED A0..BF a surrogate.
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (lead > 0xF4) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return follows(1) && follows(2) && follows(3) ? 4 : 0;
}

// A place in the text, counted in bytes and in the unit asked for.
class Cursor {
 public:
  Cursor(std::string_view text, OffsetUnit unit)
      : text_(text), utf16_(unit == OffsetUnit::kUtf16) {}

  // Moves to the character that holds `byte`, or begins there.
  uint32_t MoveTo(uint32_t byte) {
    while (byte_ > byte) {
      do {
        --byte_;
      } while (!IsUtf8Lead(text_[byte_]));
      count_ -= Width(text_[byte_]);
    }
    while (byte_ < byte) {
      const uint32_t next = Next();
      if (next > byte) break;
      count_ += Width(text_[byte_]);
      byte_ = next;
    }
    return count_;
  }

  // The same, but to the end of a character that holds `byte` inside.
  uint32_t MoveToEnd(uint32_t byte) {
    MoveTo(byte);
    if (byte_ == byte) return count_;
    return count_ + Width(text_[byte_]);
  }

 private:
  uint32_t Next() const {
    uint32_t next = byte_ + 1;
    while (next < text_.size() && !IsUtf8Lead(text_[next])) ++next;
    return next;
  }
  // Only what takes four bytes takes two UTF-16 units.
  uint32_t Width(char lead) const {
    return utf16_ && static_cast<unsigned char>(lead) >= 0xF0 ? 2 : 1;
  }

  std::string_view text_;
  bool utf16_;
  uint32_t byte_ = 0;
  uint32_t count_ = 0;
};

}  // namespace

size_t FindInvalidUtf8(std::string_view text) {
  size_t i = 0;
  while (true) {
    i += AsciiPrefix(text.substr(i));
    if (i == text.size()) return kValidUtf8;
    // Stay here while the text is not ASCII: the test of eight bytes would cost more than it saves.
    while (i < text.size() && static_cast<unsigned char>(text[i]) >= 0x80) {
      const size_t length = SequenceLength(text.substr(i));
      if (length == 0) return i;
      i += length;
    }
  }
}

void ConvertOffsets(std::string_view text, OffsetUnit unit, TextRange* ranges, size_t count) {
  if (unit == OffsetUnit::kBytes || count == 0 || AsciiPrefix(text) == text.size()) return;
  Cursor cursor(text, unit);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t begin = cursor.MoveTo(ranges[i].begin);
    ranges[i] = {begin, cursor.MoveToEnd(ranges[i].end)};
  }
}

}  // namespace attend
