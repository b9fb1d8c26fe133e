// The BERT pre-tokeniser as a stream: cuts normalised characters into words at blanks, and makes
// every punctuation character a word.
#ifndef ATTEND_ENGINE_TEXT_PRE_TOKENIZER_H_
#define ATTEND_ENGINE_TEXT_PRE_TOKENIZER_H_

#include "attend/text.h"
#include "engine/text/tokenizer_data.h"
#include "engine/text/unicode.h"
#include "engine/text/wordpiece.h"

namespace attend {

// A sink of BertNormalizer; hands each word to the model.
class BertPreTokenizer {
 public:
  BertPreTokenizer(const TokenizerData& data, const TokenSink& tokens)
      : data_(data), tokens_(tokens), word_(data.spec.max_input_chars_per_word) {}

  // Whether no word is begun.
  bool idle() const { return word_.empty(); }

  void Push(char32_t c, TextRange range) {
    const uint8_t flags = FlagsOf(c);
    if ((flags & (kSpaceFlag | kPunctuationFlag)) == 0) return word_.Append(c, range);
    Finish();
    if ((flags & kSpaceFlag) != 0) return;
    word_.Append(c, range);
    Finish();
  }

  // After the last character.
  void Finish() {
    if (word_.empty()) return;
    TokenizeWord(data_, word_, tokens_);
    word_.Clear();
  }

 private:
  const TokenizerData& data_;
  const TokenSink& tokens_;
  Word word_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_PRE_TOKENIZER_H_
