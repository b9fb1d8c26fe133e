// What the tokenizers need to know of a code point. The tables are made by tools/unicode from
// utf8proc, with the exceptions that published vocabularies rest on.
#ifndef ATTEND_ENGINE_TEXT_UNICODE_H_
#define ATTEND_ENGINE_TEXT_UNICODE_H_

#include <cstdint>
#include <span>

namespace attend {

enum CodePointFlag : uint8_t {
  kMarkFlag = 1,           // a non-spacing mark (Mn): an accent that is stripped
  kPunctuationFlag = 2,    // P*, and ASCII's symbols
  kRemovedFlag = 4,        // control, format, private use, NUL, U+FFFD: clean_text drops it
  kSpaceFlag = 8,          // White_Space
  kWordFlag = 16,          // letter, mark, number, connector: \w of regular expressions
  kUpperFlag = 32,         // has another lower case
  kDecomposableFlag = 64,  // has a canonical decomposition
  kCombiningFlag = 128,    // has a combining class other than 0
};

// The flags of any value below 0x110000.
uint8_t FlagsOf(char32_t c);

// Whether BERT puts blanks around it: ideographs, by the ranges that BERT uses.
bool IsChinese(char32_t c);

// The lower case of a code point with kUpperFlag: one or two code points.
std::span<const uint32_t> LowerOf(char32_t c);

// The full canonical decomposition of a code point with kDecomposableFlag; `hangul` is where that
// of a Hangul syllable is put. The parts are in canonical order.
std::span<const uint32_t> DecompositionOf(char32_t c, uint32_t (&hangul)[3]);

// The canonical combining class.
uint8_t CombiningClassOf(char32_t c);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_UNICODE_H_
