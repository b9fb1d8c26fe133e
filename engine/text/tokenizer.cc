#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "attend/text.h"
#include "engine/log.h"
#include "engine/text/decoder.h"
#include "engine/text/encoder.h"
#include "engine/text/guard.h"
#include "engine/text/post_processor.h"
#include "engine/text/tokenizer_data.h"
#include "engine/text/tokenizer_load.h"
#include "engine/text/utf8.h"

namespace attend {
namespace {

Status CheckText(std::string_view text, const char* where) {
  if (text.size() > kMaxTextBytes) {
    return Status(ErrorCode::kCapacity,
                  "a text may have " + std::to_string(kMaxTextBytes) + " bytes, got " +
                      std::to_string(text.size()),
                  where, "cut it into parts");
  }
  const size_t bad = FindInvalidUtf8(text);
  if (bad == kValidUtf8) return Status();
  constexpr char kHex[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(text[bad]);
  return Status(ErrorCode::kInvalidArgument,
                std::string("the text is not valid UTF-8: no character begins with the byte 0x") +
                    kHex[byte >> 4] + kHex[byte & 15] + " as it stands there",
                std::string(where) + ", byte " + std::to_string(bad),
                "convert it to UTF-8 (iconv -f LATIN1 -t UTF-8)");
}

Status CheckOptions(const EncodeOptions& options, const Template& form) {
  const int32_t least = options.add_special_tokens ? form.num_added : 0;
  if (options.max_tokens == 0 || options.max_tokens >= std::max(least, 1)) return Status();
  return Status(ErrorCode::kInvalidArgument,
                "expected 0 or at least " + std::to_string(std::max(least, 1)) +
                    ", which is what the special tokens need, got " +
                    std::to_string(options.max_tokens),
                "max_tokens");
}

// A character as messages show it: `U+00E9 "é"`.
std::string CharacterName(std::string_view utf8) {
  uint32_t length = 0;
  const auto c = static_cast<uint32_t>(DecodeUtf8(utf8.data(), &length));
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string name = "U+";
  for (int shift = c > 0xFFFF ? 20 : 12; shift >= 0; shift -= 4) name += kHex[c >> shift & 15];
  const bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  return is_control ? name : name + " \"" + std::string(utf8.substr(0, length)) + "\"";
}

// Whether all tokens from `first` on are known, of a tokenizer that has no unknown token.
Status CheckKnown(std::string_view text, const char* where, std::span<const int32_t> ids,
                  std::span<const TextRange> offsets, size_t first) {
  for (size_t i = first; i < ids.size(); ++i) {
    if (ids[i] != kNoUnknown) continue;
    const uint32_t at = offsets[i].begin;
    return Status(ErrorCode::kInvalidArgument,
                  "the vocabulary does not have the character " + CharacterName(text.substr(at)) +
                      ", and no unknown token",
                  std::string(where) + ", byte " + std::to_string(at),
                  "leave it out, or spell it with characters that the model knows");
  }
  return Status();
}

Status NullPointer(const char* where) {
  return Status(ErrorCode::kInvalidArgument, "the pointer is null", where);
}

// `texts` are one or two.
Status Encode(const TokenizerData& data, std::span<const std::string_view> texts,
              const EncodeOptions& options, Encoding* out) {
  const bool is_pair = texts.size() == 2;
  const Template& form = is_pair ? data.pair : data.single;
  ATTEND_RETURN_IF_ERROR(CheckOptions(options, form));
  ATTEND_RETURN_IF_ERROR(CheckText(texts[0], "text"));
  if (is_pair) ATTEND_RETURN_IF_ERROR(CheckText(texts[1], "pair"));
  out->ids.clear();
  out->offsets.clear();
  out->tokens.clear();
  const TokenSink sink{&out->ids, &out->offsets};
  size_t sizes[2] = {0, 0};
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t before = out->ids.size();
    EncodeText(data, texts[i], options.parse_special_tokens, sink);
    sizes[i] = out->ids.size() - before;
    if (data.spec.unk_id == kNoUnknown) {
      ATTEND_RETURN_IF_ERROR(
          CheckKnown(texts[i], i == 0 ? "text" : "pair", out->ids, out->offsets, before));
    }
    ConvertOffsets(texts[i], options.offset_unit, out->offsets.data() + before, sizes[i]);
  }
  KeptTokens kept{sizes[0], sizes[1]};
  if (options.max_tokens > 0) {
    const int32_t added = options.add_special_tokens ? form.num_added : 0;
    const auto limit = static_cast<size_t>(options.max_tokens - added);
    kept = is_pair ? CutLongestFirst(sizes[0], sizes[1], limit)
                   : KeptTokens{std::min(sizes[0], limit), 0};
  }
  out->truncated = kept.a < sizes[0] || kept.b < sizes[1];
  ApplyTemplate(form, options.add_special_tokens, sizes[0], kept, out);
  return Status();
}

// The same into a new Encoding, with the texts of the entries.
Result<Encoding> EncodeWithTokens(const TokenizerData& data,
                                  std::span<const std::string_view> texts,
                                  const EncodeOptions& options) {
  Encoding encoding;
  ATTEND_RETURN_IF_ERROR(Encode(data, texts, options, &encoding));
  encoding.tokens.reserve(encoding.ids.size());
  for (int32_t id : encoding.ids) {
    encoding.tokens.push_back(data.spec.vocabulary[static_cast<size_t>(id)]);
  }
  return encoding;
}

Status EncodeOneWord(const TokenizerData& data, std::string_view word, std::vector<int32_t>* ids) {
  ATTEND_RETURN_IF_ERROR(CheckText(word, "word"));
  const size_t before = ids->size();
  if (data.spec.unk_id == kNoUnknown) {
    std::vector<TextRange> offsets(before);
    EncodePlainText(data, word, {ids, &offsets});
    const Status status = CheckKnown(word, "word", *ids, offsets, before);
    if (!status.ok()) ids->resize(before);
    return status;
  }
  EncodePlainText(data, word, {ids, nullptr});
  if (ids->size() == before) ids->push_back(data.spec.unk_id);
  return Status();
}

}  // namespace

Result<Tokenizer> Tokenizer::FromBytes(std::span<const std::byte> bytes,
                                       const LoadOptions& options) {
  return WithoutExceptions("Tokenizer", [&]() -> Result<Tokenizer> {
    Result<std::shared_ptr<const TokenizerData>> data = ParseTokenizer(bytes);
    if (!data.ok()) return data.status();
    Tokenizer tokenizer(*std::move(data));
    if (Wants(options.logger, LogLevel::kInfo)) {
      TellLoaded(options.logger, bytes.size(), Summary(tokenizer));
    }
    return tokenizer;
  });
}

Result<Encoding> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  return WithoutExceptions("Tokenizer", [&] {
    return EncodeWithTokens(*data_, {&text, 1}, options);
  });
}

Result<Encoding> Tokenizer::EncodePair(std::string_view text, std::string_view pair,
                                       const EncodeOptions& options) const {
  const std::string_view texts[] = {text, pair};
  return WithoutExceptions("Tokenizer", [&] { return EncodeWithTokens(*data_, texts, options); });
}

Status Tokenizer::EncodeInto(std::string_view text, const EncodeOptions& options,
                             Encoding* out) const {
  if (out == nullptr) return NullPointer("out");
  return WithoutExceptions("Tokenizer", [&] {
    return attend::Encode(*data_, {&text, 1}, options, out);
  });
}

Status Tokenizer::EncodeWord(std::string_view word, std::vector<int32_t>* ids) const {
  if (ids == nullptr) return NullPointer("ids");
  return WithoutExceptions("Tokenizer", [&] { return EncodeOneWord(*data_, word, ids); });
}

Result<std::string> Tokenizer::Decode(std::span<const int32_t> ids,
                                      bool skip_special_tokens) const {
  return WithoutExceptions("Tokenizer", [&]() -> Result<std::string> {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= vocab_size()) {
        return Status(ErrorCode::kInvalidArgument,
                      "an id must be 0 to " + std::to_string(vocab_size() - 1) + ", got " +
                          std::to_string(ids[i]),
                      "ids[" + std::to_string(i) + "]");
      }
    }
    return DecodeIds(*data_, ids, skip_special_tokens);
  });
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(data_->spec.vocabulary.size());
}

std::string_view Tokenizer::TokenText(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  return data_->spec.vocabulary[static_cast<size_t>(id)];
}

int32_t Tokenizer::TokenId(std::string_view token) const {
  const std::vector<std::string>& vocabulary = data_->spec.vocabulary;
  const auto found =
      std::lower_bound(data_->by_text.begin(), data_->by_text.end(), token,
                       [&](uint32_t id, std::string_view text) { return vocabulary[id] < text; });
  if (found == data_->by_text.end() || vocabulary[*found] != token) return -1;
  return static_cast<int32_t>(*found);
}

std::string_view Tokenizer::kind() const { return Name(data_->spec.kind); }

int32_t Tokenizer::num_added_tokens(bool pair) const {
  return pair ? data_->pair.num_added : data_->single.num_added;
}

int32_t Tokenizer::bos_id() const {
  const TemplatePart& part = data_->single.parts.front();
  return part.kind == PartKind::kToken ? part.id : -1;
}

int32_t Tokenizer::eos_id() const {
  const TemplatePart& part = data_->single.parts.back();
  return part.kind == PartKind::kToken ? part.id : -1;
}

}  // namespace attend
