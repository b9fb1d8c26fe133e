#include "engine/text/letter_case.h"

#include <algorithm>
#include <iterator>

#include "engine/text/utf8.h"

namespace attend {
namespace {

enum RunKind : uint8_t { kUpper, kLower, kTurnUpper, kTurnLower };  // in turn, beginning with

struct Run {
  uint32_t first;
  uint32_t last;
  RunKind kind;
};

constexpr Run kRuns[] = {
#include "engine/text/letter_case.inc"
};

}  // namespace

LetterCase LetterCaseOf(char32_t c) {
  if (c < 0x80) {
    if (c >= 'a' && c <= 'z') return LetterCase::kLower;
    return c >= 'A' && c <= 'Z' ? LetterCase::kUpper : LetterCase::kNone;
  }
  const Run* run = std::lower_bound(std::begin(kRuns), std::end(kRuns), uint32_t{c},
                                    [](const Run& r, uint32_t value) { return r.last < value; });
  if (run == std::end(kRuns) || c < run->first) return LetterCase::kNone;
  const bool even = (c - run->first) % 2 == 0;
  switch (run->kind) {
    case kUpper:
      return LetterCase::kUpper;
    case kLower:
      return LetterCase::kLower;
    case kTurnUpper:
      return even ? LetterCase::kUpper : LetterCase::kLower;
    case kTurnLower:
      return even ? LetterCase::kLower : LetterCase::kUpper;
  }
  return LetterCase::kNone;
}

int32_t WordShape(std::string_view word) {
  int cased = 0;
  int upper = 0;
  bool first_is_upper = false;
  uint32_t length = 0;
  for (size_t at = 0; at < word.size(); at += length) {
    const LetterCase letter = LetterCaseOf(DecodeUtf8(word.data() + at, &length));
    if (letter == LetterCase::kNone) continue;
    if (letter == LetterCase::kUpper) {
      if (cased == 0) first_is_upper = true;
      ++upper;
    }
    ++cased;
  }
  if (upper == 0) return 0;
  if (first_is_upper && upper == 1) return 1;
  return upper == cased ? 2 : 3;
}

}  // namespace attend
