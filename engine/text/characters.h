// The model whose tokens are characters: every normalised character is the entry that it is, or the
// unknown token. Entries of several characters are symbols of the output ("AH0"), which no text
// becomes.
#ifndef ATTEND_ENGINE_TEXT_CHARACTERS_H_
#define ATTEND_ENGINE_TEXT_CHARACTERS_H_

#include "attend/text.h"
#include "engine/text/tokenizer_data.h"
#include "engine/text/utf8.h"
#include "engine/text/wordpiece.h"

namespace attend {

// A sink of BertNormalizer. A character that is no entry becomes unk_id, which is kNoUnknown if
// there is none: the caller makes an error of it.
class CharacterModel {
 public:
  CharacterModel(const TokenizerData& data, const TokenSink& tokens)
      : data_(data), tokens_(tokens) {}

  void Push(char32_t c, TextRange range) {
    char utf8[4];
    const int32_t id = data_.model.Find({utf8, EncodeUtf8(c, utf8)});
    tokens_.Add(id >= 0 ? id : data_.spec.unk_id, range);
  }

 private:
  const TokenizerData& data_;
  const TokenSink& tokens_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_CHARACTERS_H_
