#include "engine/text/unicode.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace attend {
namespace {

#include "engine/text/unicode_tables.inc"

constexpr char32_t kHangulFirst = 0xAC00, kHangulLast = 0xD7A3;
constexpr uint32_t kLeadFirst = 0x1100, kVowelFirst = 0x1161, kTailFirst = 0x11A7;
constexpr uint32_t kVowels = 21, kTails = 28;

template <size_t N, size_t M>
std::span<const uint32_t> Find(const uint32_t (&from)[N], const uint16_t (&begin)[N + 1],
                               const uint32_t (&to)[M], char32_t c) {
  const uint32_t* found = std::lower_bound(std::begin(from), std::end(from), uint32_t{c});
  if (found == std::end(from) || *found != c) return {};
  const auto index = static_cast<size_t>(found - from);
  return {to + begin[index], to + begin[index + 1]};
}

}  // namespace

uint8_t FlagsOf(char32_t c) { return kFlags[kFlagBlock[c >> 8] * 256 + (c & 255)]; }

bool IsChinese(char32_t c) {
  // BERT's ranges as they are in its published code: 2B820..2B91F is missing there too.
  if (c < 0x3400) return false;
  return (c >= 0x4E00 && c <= 0x9FFF) || c <= 0x4DBF || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

std::span<const uint32_t> LowerOf(char32_t c) { return Find(kLowerFrom, kLowerBegin, kLowerTo, c); }

std::span<const uint32_t> DecompositionOf(char32_t c, uint32_t (&hangul)[3]) {
  if (c < kHangulFirst || c > kHangulLast) {
    return Find(kDecomposedFrom, kDecomposedBegin, kDecomposedTo, c);
  }
  const uint32_t index = c - kHangulFirst;
  hangul[0] = kLeadFirst + index / (kVowels * kTails);
  hangul[1] = kVowelFirst + index % (kVowels * kTails) / kTails;
  hangul[2] = kTailFirst + index % kTails;
  return std::span<const uint32_t>(hangul).first(hangul[2] == kTailFirst ? 2 : 3);
}

uint8_t CombiningClassOf(char32_t c) {
  const uint32_t* found =
      std::lower_bound(std::begin(kClassLast), std::end(kClassLast), uint32_t{c});
  if (found == std::end(kClassLast)) return 0;
  const auto index = static_cast<size_t>(found - kClassLast);
  return c >= kClassFirst[index] ? kClass[index] : uint8_t{0};
}

}  // namespace attend
