// The BERT normaliser as a stream: characters of the text go in, characters with the place in the
// text that they come from go out. Nothing is stored but runs of combining marks.
#ifndef ATTEND_ENGINE_TEXT_NORMALIZER_H_
#define ATTEND_ENGINE_TEXT_NORMALIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attend/text.h"
#include "engine/text/inline_vector.h"
#include "engine/text/tokenizer_data.h"
#include "engine/text/unicode.h"

namespace attend {

// Steps, each for every character before the next step: clean_text, blanks around ideographs,
// canonical decomposition and removal of Mn, lower case. Sink has Push(char32_t, TextRange).
template <typename Sink>
class BertNormalizer {
 public:
  BertNormalizer(const TokenizerSpec& spec, Sink* sink) : spec_(spec), sink_(*sink) {}

  // Whether nothing waits for what comes next.
  bool idle() const { return marks_.empty(); }

  // The next character of the text and its range.
  void Feed(char32_t c, TextRange range) {
    const uint8_t flags = FlagsOf(c);
    if (spec_.clean_text) {
      if ((flags & kRemovedFlag) != 0) return;
      if ((flags & kSpaceFlag) != 0) return Decompose(U' ', 0, range);
    }
    if (spec_.handle_chinese_chars && IsChinese(c)) {
      Decompose(U' ', 0, range);
      Decompose(c, flags, range);
      return Decompose(U' ', 0, range);
    }
    Decompose(c, flags, range);
  }

  // After the last character.
  void Finish() { FlushMarks(); }

 private:
  // A character with a combining class that waits for the end of its run.
  // Small, since a run may be the whole text.
  class Mark {
   public:
    Mark() = default;
    Mark(char32_t c, uint8_t combining_class, bool is_head, bool is_kept, TextRange range)
        : bits_(uint32_t{c} | (is_head ? kHead : 0) | (is_kept ? kKept : 0) |
                uint32_t{combining_class} << 24),
          range_(range) {}
    char32_t code_point() const { return bits_ & 0x1FFFFF; }
    uint8_t combining_class() const { return static_cast<uint8_t>(bits_ >> 24); }
    // The first of a decomposition: it takes the place of a character.
    bool is_head() const { return (bits_ & kHead) != 0; }
    bool is_kept() const { return (bits_ & kKept) != 0; }
    TextRange range() const { return range_; }  // of a head

   private:
    static constexpr uint32_t kHead = 1 << 21, kKept = 1 << 22;
    uint32_t bits_ = 0;
    TextRange range_;
  };

  void Decompose(char32_t c, uint8_t flags, TextRange range) {
    if (!spec_.strip_accents) return Lower(c, flags, range);
    if ((flags & (kDecomposableFlag | kCombiningFlag)) == 0) {
      FlushMarks();
      last_head_ = range;
      if ((flags & kMarkFlag) == 0) Lower(c, flags, range);
      return;
    }
    if ((flags & kDecomposableFlag) == 0) return Place(c, true, range);
    uint32_t hangul[3];
    bool is_head = true;
    for (uint32_t part : DecompositionOf(c, hangul)) {
      Place(part, is_head, range);
      is_head = false;
    }
  }

  // A part of a decomposed character, in the order of the text.
  void Place(char32_t c, bool is_head, TextRange range) {
    const uint8_t flags = FlagsOf(c);
    if ((flags & kCombiningFlag) == 0) {
      FlushMarks();
      if (is_head) last_head_ = range;
      if ((flags & kMarkFlag) == 0) Lower(c, flags, last_head_);
      return;
    }
    const bool is_kept = (flags & kMarkFlag) == 0;
    num_kept_ += is_kept ? 1 : 0;
    marks_.push_back({c, CombiningClassOf(c), is_head, is_kept, range});
  }

  void FlushMarks() {
    if (marks_.empty()) return;
    if (num_kept_ > 0) {
      SortMarks();
    } else {
      for (size_t i = marks_.size(); i-- > 0;) {
        if (!marks_[i].is_head()) continue;
        last_head_ = marks_[i].range();
        break;
      }
    }
    marks_.clear();
    num_kept_ = 0;
  }

  // Canonical order, by counting: a run may be the whole text. The places in the text do not move
  // with the marks: the n-th head after sorting stands where the n-th stood before.
  void SortMarks() {
    std::array<uint32_t, 257> start{};  // of a class among all marks
    std::vector<TextRange> heads;
    for (const Mark& mark : marks_) {
      ++start[mark.combining_class() + 1u];
      if (mark.is_head()) heads.push_back(mark.range());
    }
    for (size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
    std::vector<Mark> sorted(marks_.size());
    for (const Mark& mark : marks_) sorted[start[mark.combining_class()]++] = mark;
    size_t head = 0;
    for (const Mark& mark : sorted) {
      if (mark.is_head()) last_head_ = heads[head++];
      if (mark.is_kept()) Lower(mark.code_point(), FlagsOf(mark.code_point()), last_head_);
    }
  }

  void Lower(char32_t c, uint8_t flags, TextRange range) {
    if (!spec_.lowercase || (flags & kUpperFlag) == 0) return sink_.Push(c, range);
    for (uint32_t lower : LowerOf(c)) sink_.Push(lower, range);
  }

  const TokenizerSpec& spec_;
  Sink& sink_;
  InlineVector<Mark, 32> marks_;
  size_t num_kept_ = 0;
  TextRange last_head_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_NORMALIZER_H_
