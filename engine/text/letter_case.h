// Upper and lower case letters by their general category, and the shape of a word that taggers take
// as type ids.
#ifndef ATTEND_ENGINE_TEXT_LETTER_CASE_H_
#define ATTEND_ENGINE_TEXT_LETTER_CASE_H_

#include <cstdint>
#include <string_view>

namespace attend {

enum class LetterCase { kNone, kUpper, kLower };

// kUpper for general category Lu, kLower for Ll.
LetterCase LetterCaseOf(char32_t c);

// The shape of a word, from its original text, which is valid UTF-8:
//   0  no upper-case letter
//   1  the first letter with a case is upper, and no other is
//   2  two or more letters with a case, all upper
//   3  anything else
// Models are trained on these numbers: they never change.
int32_t WordShape(std::string_view word);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_LETTER_CASE_H_
