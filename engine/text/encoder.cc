#include "engine/text/encoder.h"

#include <string>
#include <vector>

#include "engine/text/added_tokens.h"
#include "engine/text/characters.h"
#include "engine/text/normalizer.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/utf8.h"

namespace attend {
namespace {

// A normalised text that is kept: its bytes and the place in the text of each.
struct NormalizedText {
  std::string bytes;
  std::vector<TextRange> places;

  void Push(char32_t c, TextRange range) {
    char utf8[4];
    const uint32_t length = EncodeUtf8(c, utf8);
    bytes.append(utf8, length);
    places.insert(places.end(), length, range);
  }
};

template <typename Sink>
void Normalize(const TokenizerSpec& spec, std::string_view text, size_t begin, size_t end,
               Sink* sink) {
  BertNormalizer<Sink> normalizer(spec, sink);
  uint32_t length = 0;
  for (size_t i = begin; i < end; i += length) {
    const char32_t c = DecodeUtf8(text.data() + i, &length);
    normalizer.Feed(c, {static_cast<uint32_t>(i), static_cast<uint32_t>(i + length)});
  }
  normalizer.Finish();
}

// Takes ASCII words from `begin` on for as long as the table of ASCII says all of them; returns
// where the first word begins that needs the whole normaliser, or `end`.
size_t EncodeAsciiWords(const TokenizerData& data, std::string_view text, size_t begin, size_t end,
                        const TokenSink& sink) {
  const auto class_at = [&](size_t i) {
    return data.ascii_class[static_cast<unsigned char>(text[i])];
  };
  size_t i = begin;
  while (i < end) {
    switch (class_at(i)) {
      case AsciiClass::kSpace:
        ++i;
        break;
      case AsciiClass::kPunctuation:
        sink.Add(data.ascii_id[static_cast<unsigned char>(text[i])],
                 {static_cast<uint32_t>(i), static_cast<uint32_t>(i + 1)});
        ++i;
        break;
      case AsciiClass::kWord: {
        size_t k = i + 1;
        while (k < end && class_at(k) == AsciiClass::kWord) ++k;
        if (k < end && class_at(k) == AsciiClass::kOther) return i;
        TokenizeAsciiWord(data, text.data(), static_cast<uint32_t>(i), static_cast<uint32_t>(k),
                          sink);
        i = k;
        break;
      }
      case AsciiClass::kOther:
        return i;
    }
  }
  return end;
}

// text[begin, end), which holds no added token of any kind.
void EncodeWords(const TokenizerData& data, std::string_view text, size_t begin, size_t end,
                 const TokenSink& sink) {
  if (data.spec.kind == TokenizerKind::kCharacters) {
    CharacterModel characters(data, sink);
    return Normalize(data.spec, text, begin, end, &characters);
  }
  size_t i = EncodeAsciiWords(data, text, begin, end, sink);
  if (i == end) return;
  BertPreTokenizer words(data, sink);
  BertNormalizer<BertPreTokenizer> normalizer(data.spec, &words);
  while (i < end) {
    uint32_t length = 0;
    const char32_t c = DecodeUtf8(text.data() + i, &length);
    normalizer.Feed(c, {static_cast<uint32_t>(i), static_cast<uint32_t>(i + length)});
    i += length;
    if (words.idle() && normalizer.idle()) i = EncodeAsciiWords(data, text, i, end, sink);
  }
  normalizer.Finish();
  words.Finish();
}

// The characters [begin, end) of a normalised text.
template <typename Sink>
void PushAll(const NormalizedText& text, size_t begin, size_t end, Sink* sink) {
  uint32_t length = 0;
  for (size_t i = begin; i < end; i += length) {
    sink->Push(DecodeUtf8(text.bytes.data() + i, &length), text.places[i]);
  }
}

// text[begin, end), in which the tokens of the normalised text are still to be found.
void EncodeNormalized(const TokenizerData& data, std::string_view text, size_t begin, size_t end,
                      bool parse_special, const TokenSink& sink) {
  NormalizedText normalized;
  Normalize(data.spec, text, begin, end, &normalized);
  AddedTokenCutter cutter(data.norm_tokens, normalized.bytes, parse_special);
  AddedTokenCutter::Cut cut;
  while (cutter.Next(&cut)) {
    if (cut.token != nullptr) {
      sink.Add(cut.token->id,
               {normalized.places[cut.begin].begin, normalized.places[cut.end - 1].end});
      continue;
    }
    if (data.spec.kind == TokenizerKind::kCharacters) {
      CharacterModel characters(data, sink);
      PushAll(normalized, cut.begin, cut.end, &characters);
      continue;
    }
    BertPreTokenizer words(data, sink);
    PushAll(normalized, cut.begin, cut.end, &words);
    words.Finish();
  }
}

}  // namespace

void EncodeText(const TokenizerData& data, std::string_view text, bool parse_special,
                const TokenSink& sink) {
  AddedTokenCutter cutter(data.raw_tokens, text, parse_special);
  AddedTokenCutter::Cut cut;
  while (cutter.Next(&cut)) {
    if (cut.token != nullptr) {
      sink.Add(cut.token->id, {static_cast<uint32_t>(cut.begin), static_cast<uint32_t>(cut.end)});
    } else if (data.norm_tokens.empty()) {
      EncodeWords(data, text, cut.begin, cut.end, sink);
    } else {
      EncodeNormalized(data, text, cut.begin, cut.end, parse_special, sink);
    }
  }
}

void EncodePlainText(const TokenizerData& data, std::string_view text, const TokenSink& sink) {
  EncodeWords(data, text, 0, text.size(), sink);
}

std::string NormalizeText(const TokenizerSpec& spec, std::string_view text) {
  NormalizedText normalized;
  Normalize(spec, text, 0, text.size(), &normalized);
  return std::move(normalized.bytes);
}

}  // namespace attend
