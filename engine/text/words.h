#ifndef ATTEND_ENGINE_TEXT_WORDS_H_
#define ATTEND_ENGINE_TEXT_WORDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace attend {

// Bytes [begin, end) of a text.
struct WordSpan {
  uint32_t begin;
  uint32_t end;
};

// Appends the words of `text` to `words`, in order, cut as the English Web Treebank cuts them:
// "do|n't", "it|'s", "can|not", "well|-|known", but "e-mail", "Mr.", "7:30" and URLs whole.
// `text` is UTF-8; bytes that are not count as letters. White space belongs to no word, every other
// byte to exactly one; no word is empty. Takes time linear in `text`, which is below 4 GiB.
void CutWords(std::string_view text, std::vector<WordSpan>* words);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_WORDS_H_
