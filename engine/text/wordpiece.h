// WordPiece: a word becomes the longest entries that cover it from left to right, or one unknown
// token.
#ifndef ATTEND_ENGINE_TEXT_WORDPIECE_H_
#define ATTEND_ENGINE_TEXT_WORDPIECE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attend/text.h"
#include "engine/text/inline_vector.h"
#include "engine/text/tokenizer_data.h"

namespace attend {

// Where tokens go. `offsets` may be nullptr.
struct TokenSink {
  std::vector<int32_t>* ids;
  std::vector<TextRange>* offsets;

  void Add(int32_t id, TextRange range) const {
    ids->push_back(id);
    if (offsets != nullptr) offsets->push_back(range);
  }
  // Takes back all but the first `count`.
  void Shrink(size_t count) const {
    ids->resize(count);
    if (offsets != nullptr) offsets->resize(count);
  }
};

// A normalised word with the place in the text of each of its bytes. Of a word with more than
// `max_chars` characters only the place is kept: it is unknown whatever it says.
class Word {
 public:
  explicit Word(int32_t max_chars) : max_chars_(static_cast<size_t>(max_chars)) {}

  void Append(char32_t c, TextRange range);
  void Clear();

  bool empty() const { return num_chars_ == 0; }
  bool too_long() const { return num_chars_ > max_chars_; }
  size_t size() const { return bytes_.size(); }
  const char* bytes() const { return bytes_.data(); }
  TextRange range() const { return range_; }  // of the whole
  // Of the bytes [begin, end).
  TextRange RangeOf(size_t begin, size_t end) const {
    return {places_[begin].begin, places_[end - 1].end};
  }

 private:
  static constexpr size_t kInlineBytes = 512;  // BERT's longest word: 100 characters
  size_t max_chars_;
  size_t num_chars_ = 0;
  TextRange range_;
  InlineVector<char, kInlineBytes> bytes_;
  InlineVector<TextRange, kInlineBytes> places_;
};

// The tokens of a normalised word, which is not empty.
void TokenizeWord(const TokenizerData& data, const Word& word, const TokenSink& sink);

// The tokens of the ASCII word text[begin, end), which is normalised on the way: BERT's normaliser
// does nothing to such a word but lower its case.
void TokenizeAsciiWord(const TokenizerData& data, const char* text, uint32_t begin, uint32_t end,
                       const TokenSink& sink);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_WORDPIECE_H_
