#include "engine/text/wordpiece.h"

#include "engine/text/utf8.h"

namespace attend {
namespace {

// `byte(i)` is the i-th byte of the word, `range(i, k)` the place of the bytes [i, k) in the text.
template <typename Byte, typename Range>
void Tokenize(const TokenizerData& data, size_t size, const TokenSink& sink, const Byte& byte,
              const Range& range) {
  const Trie& trie = data.model;
  const size_t before = sink.ids->size();
  uint32_t start = Trie::kRoot;
  size_t begin = 0;
  while (begin < size) {
    int32_t id = -1;
    size_t end = begin;
    uint32_t node = start;
    for (size_t i = begin; i < size; ++i) {
      node = trie.Child(node, byte(i));
      if (node == Trie::kNone) break;
      if (trie.id(node) >= 0) {
        id = trie.id(node);
        end = i + 1;
      }
    }
    const bool is_dead_end = id < 0 || (end < size && data.continuation == Trie::kNone);
    if (is_dead_end) {
      sink.Shrink(before);
      sink.Add(data.spec.unk_id, range(0, size));
      return;
    }
    sink.Add(id, range(begin, end));
    begin = end;
    start = data.continuation;
  }
}

}  // namespace

void Word::Append(char32_t c, TextRange range) {
  if (num_chars_ == 0) range_.begin = range.begin;
  range_.end = range.end;
  ++num_chars_;
  if (too_long()) return;
  char bytes[4];
  const uint32_t length = EncodeUtf8(c, bytes);
  for (uint32_t i = 0; i < length; ++i) {
    bytes_.push_back(bytes[i]);
    places_.push_back(range);
  }
}

void Word::Clear() {
  num_chars_ = 0;
  bytes_.clear();
  places_.clear();
}

void TokenizeWord(const TokenizerData& data, const Word& word, const TokenSink& sink) {
  if (word.too_long()) return sink.Add(data.spec.unk_id, word.range());
  Tokenize(
      data, word.size(), sink, [&](size_t i) { return static_cast<uint8_t>(word.bytes()[i]); },
      [&](size_t begin, size_t end) { return word.RangeOf(begin, end); });
}

void TokenizeAsciiWord(const TokenizerData& data, const char* text, uint32_t begin, uint32_t end,
                       const TokenSink& sink) {
  const size_t size = end - begin;
  if (size > static_cast<size_t>(data.spec.max_input_chars_per_word)) {
    return sink.Add(data.spec.unk_id, {begin, end});
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(text + begin);
  Tokenize(
      data, size, sink, [&](size_t i) { return data.ascii_lower[bytes[i]]; },
      [begin](size_t from, size_t to) {
        return TextRange{begin + static_cast<uint32_t>(from), begin + static_cast<uint32_t>(to)};
      });
}

}  // namespace attend
