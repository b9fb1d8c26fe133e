// Writes and reads the serialised form (FORMAT.md).
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "engine/text/encoder.h"
#include "engine/text/post_processor.h"
#include "engine/text/tokenizer_data.h"
#include "engine/text/unicode.h"

namespace attend {
namespace {

constexpr char kMagic[] = "ATTENDTK";
constexpr uint32_t kVersion = 1;
constexpr size_t kMagicBytes = 8;
constexpr size_t kHeaderFields = 18;
constexpr size_t kHeaderBytes = kMagicBytes + kHeaderFields * 4;
constexpr uint32_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr uint32_t kStoredNoUnknown = 0xFFFFFFFF;

// The order of the header.
enum Field : size_t {
  kFieldVersion,
  kFieldKind,
  kFieldNormalizer,
  kFieldNormalizerFlags,
  kFieldPreTokenizer,
  kFieldDecoder,
  kFieldDecoderFlags,
  kFieldUnk,
  kFieldMaxChars,
  kFieldTruncation,
  kFieldEntries,
  kFieldAdded,
  kFieldSingle,
  kFieldPair,
  kFieldPrefixBytes,
  kFieldDecoderPrefixBytes,
  kFieldEntryBytes,
  kFieldReserved,
};

uint32_t Flags(std::initializer_list<bool> bits) {
  uint32_t flags = 0, bit = 1;
  for (bool is_set : bits) {
    flags |= is_set ? bit : 0;
    bit <<= 1;
  }
  return flags;
}

class Writer {
 public:
  void Number(size_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes_.push_back(static_cast<std::byte>(value >> shift & 255));
    }
  }
  void Text(std::string_view text) {
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
  }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

Status Corrupt(std::string what, std::string where) {
  return Status(ErrorCode::kCorrupt, std::move(what), "tokenizer: " + std::move(where));
}

// Reads numbers and texts in order; the caller has proved that they are there.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint32_t Number() {
    uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 8) {
      value |= static_cast<uint32_t>(bytes_[at_++]) << shift;
    }
    return value;
  }
  std::string_view Text(size_t size) {
    at_ += size;
    return {reinterpret_cast<const char*>(bytes_.data()) + at_ - size, size};
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

struct Header {
  uint32_t field[kHeaderFields] = {};
  uint32_t operator[](Field name) const { return field[name]; }
};

Status CheckKinds(const Header& header) {
  const auto unsupported = [](const char* what, uint32_t got) {
    return Status(ErrorCode::kUnsupported,
                  std::string(what) + " " + std::to_string(got) + " is not known to this version",
                  "tokenizer", "convert the model again or update attend");
  };
  if (header[kFieldVersion] != kVersion) return unsupported("format", header[kFieldVersion]);
  if (header[kFieldKind] < 1 || header[kFieldKind] > 2) {
    return unsupported("kind", header[kFieldKind]);
  }
  if (header[kFieldNormalizer] > 1) return unsupported("normaliser", header[kFieldNormalizer]);
  if (header[kFieldPreTokenizer] < 1 || header[kFieldPreTokenizer] > 2) {
    return unsupported("pre-tokeniser", header[kFieldPreTokenizer]);
  }
  if (header[kFieldDecoder] > 1) return unsupported("decoder", header[kFieldDecoder]);
  return Status();
}

Status CheckHeader(const Header& header, size_t size) {
  ATTEND_RETURN_IF_ERROR(CheckKinds(header));
  struct Limit {
    Field field;
    const char* name;
    uint64_t most;
  };
  const Limit limits[] = {
      {kFieldNormalizerFlags, "normaliser flags", header[kFieldNormalizer] == 0 ? 0u : 15u},
      {kFieldDecoderFlags, "decoder flags", 1},
      {kFieldUnk, "unk_id", header[kFieldUnk] == kStoredNoUnknown ? kStoredNoUnknown : kMaxInt32},
      {kFieldMaxChars, "max_input_chars_per_word", kMaxInt32},
      {kFieldTruncation, "truncation", kMaxInt32},
      {kFieldEntries, "entries", kMaxVocabulary},
      {kFieldAdded, "added tokens", kMaxAddedTokens},
      {kFieldSingle, "parts of one text", kMaxTemplateParts},
      {kFieldPair, "parts of a pair", kMaxTemplateParts},
      {kFieldPrefixBytes, "bytes of the prefix", kMaxAddedTokenBytes},
      {kFieldDecoderPrefixBytes, "bytes of the decoder's prefix", kMaxAddedTokenBytes},
      {kFieldEntryBytes, "bytes of the entries", kMaxVocabularyBytes},
      {kFieldReserved, "reserved", 0},
  };
  for (const Limit& limit : limits) {
    if (header[limit.field] > limit.most) {
      return Corrupt("expected at most " + std::to_string(limit.most) + ", got " +
                         std::to_string(header[limit.field]),
                     limit.name);
    }
  }
  // Below their limits the numbers cannot overflow 64 bits.
  const uint64_t expected =
      kHeaderBytes + uint64_t{8} * header[kFieldEntries] + uint64_t{8} * header[kFieldAdded] +
      uint64_t{12} * (uint64_t{header[kFieldSingle]} + header[kFieldPair]) +
      header[kFieldPrefixBytes] + header[kFieldDecoderPrefixBytes] + header[kFieldEntryBytes];
  if (expected != size) {
    return Corrupt("expected " + std::to_string(expected) + " bytes, got " + std::to_string(size),
                   "length");
  }
  return Status();
}

struct Tables {
  std::vector<uint32_t> ends;
  std::vector<uint32_t> by_text;
};

Status ReadParts(Reader* reader, uint32_t count, std::vector<TemplatePart>* parts) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t kind = reader->Number(), id = reader->Number(), type = reader->Number();
    if (kind > 2 || id > kMaxInt32 || type > kMaxInt32 || (kind != 0 && id != 0)) {
      return Corrupt("part " + std::to_string(i) + " is (" + std::to_string(kind) + ", " +
                         std::to_string(id) + ", " + std::to_string(type) + ")",
                     "template");
    }
    parts->push_back(
        {static_cast<PartKind>(kind), static_cast<int32_t>(id), static_cast<int32_t>(type)});
  }
  return Status();
}

Status ReadAddedTokens(Reader* reader, uint32_t count, std::vector<AddedToken>* tokens) {
  for (uint32_t i = 0; i < count; ++i) {
    AddedToken token;
    const uint32_t id = reader->Number(), flags = reader->Number();
    if (id > kMaxInt32 || flags > 63) {
      return Corrupt("id " + std::to_string(id) + ", flags " + std::to_string(flags),
                     "added token " + std::to_string(i));
    }
    token.id = static_cast<int32_t>(id);
    token.special = (flags & 1) != 0;
    token.normalized = (flags & 2) != 0;
    token.lstrip = (flags & 4) != 0;
    token.rstrip = (flags & 8) != 0;
    token.single_word = (flags & 16) != 0;
    token.in_model = (flags & 32) != 0;
    tokens->push_back(std::move(token));
  }
  return Status();
}

Status ReadTexts(const Header& header, const Tables& tables, Reader* reader, TokenizerSpec* spec) {
  spec->continuing_prefix = reader->Text(header[kFieldPrefixBytes]);
  spec->decoder_prefix = reader->Text(header[kFieldDecoderPrefixBytes]);
  uint32_t begin = 0;
  spec->vocabulary.reserve(tables.ends.size());
  for (uint32_t end : tables.ends) {
    if (end < begin || end > header[kFieldEntryBytes]) {
      return Corrupt("an end must be " + std::to_string(begin) + " to " +
                         std::to_string(header[kFieldEntryBytes]) + ", got " + std::to_string(end),
                     "entry " + std::to_string(spec->vocabulary.size()));
    }
    spec->vocabulary.emplace_back(reader->Text(end - begin));
    begin = end;
  }
  if (begin != header[kFieldEntryBytes]) {
    return Corrupt("the last entry must end at " + std::to_string(header[kFieldEntryBytes]) +
                       ", got " + std::to_string(begin),
                   "entries");
  }
  for (AddedToken& token : spec->added_tokens) {
    if (static_cast<size_t>(token.id) < spec->vocabulary.size()) {
      token.content = spec->vocabulary[static_cast<size_t>(token.id)];
    }
  }
  return Status();
}

Status CheckOrder(const TokenizerSpec& spec, std::span<const uint32_t> by_text) {
  for (size_t i = 0; i < by_text.size(); ++i) {
    if (by_text[i] >= spec.vocabulary.size()) {
      return Corrupt("the id " + std::to_string(by_text[i]) + " is not in the vocabulary", "order");
    }
    if (i > 0 && !(spec.vocabulary[by_text[i - 1]] < spec.vocabulary[by_text[i]])) {
      return Corrupt("the entries " + std::to_string(by_text[i - 1]) + " and " +
                         std::to_string(by_text[i]) + " are the same or out of order",
                     "order");
    }
  }
  return Status();
}

Status BuildModel(TokenizerData* data) {
  const TokenizerSpec& spec = data->spec;
  std::vector<bool> in_model(spec.vocabulary.size(), true);
  for (const AddedToken& token : spec.added_tokens) {
    if (!token.in_model) in_model[static_cast<size_t>(token.id)] = false;
  }
  std::vector<Trie::Entry> entries;
  entries.reserve(spec.vocabulary.size());
  for (uint32_t id : data->by_text) {
    if (in_model[id]) entries.push_back({spec.vocabulary[id], static_cast<int32_t>(id)});
  }
  Result<Trie> trie = Trie::Build(entries);
  if (!trie.ok()) return trie.status();
  data->model = *std::move(trie);
  data->continuation = data->model.Walk(Trie::kRoot, spec.continuing_prefix);
  return Status();
}

Status BuildMatchers(TokenizerData* data) {
  data->is_special.resize(data->spec.vocabulary.size());
  std::vector<AddedTokenMatcher::Pattern> raw, normalized;
  // Of tokens that look the same special ones are found.
  for (bool special : {true, false}) {
    for (const AddedToken& token : data->spec.added_tokens) {
      if (token.special != special) continue;
      if (special) data->is_special[static_cast<size_t>(token.id)] = true;
      if (token.normalized) {
        std::string& content = data->norm_contents[token.id];
        content = NormalizeText(data->spec, token.content);
        normalized.push_back({content, &token});
      } else {
        raw.push_back({token.content, &token});
      }
    }
  }
  Result<AddedTokenMatcher> raw_tokens = AddedTokenMatcher::Build(std::move(raw));
  if (!raw_tokens.ok()) return raw_tokens.status();
  data->raw_tokens = *std::move(raw_tokens);
  Result<AddedTokenMatcher> norm_tokens = AddedTokenMatcher::Build(std::move(normalized));
  if (!norm_tokens.ok()) return norm_tokens.status();
  data->norm_tokens = *std::move(norm_tokens);
  return Status();
}

// What the pre-tokeniser and the normaliser do to ASCII, in tables.
void BuildAsciiTables(TokenizerData* data) {
  data->ascii_class.fill(AsciiClass::kOther);
  for (uint32_t c = 0; c < 128; ++c) {
    const uint8_t flags = FlagsOf(c);
    AsciiClass& its_class = data->ascii_class[c];
    if (data->spec.clean_text && (flags & kRemovedFlag) != 0) {
      its_class = AsciiClass::kOther;
    } else if ((flags & kSpaceFlag) != 0) {
      its_class = AsciiClass::kSpace;
    } else if ((flags & kPunctuationFlag) != 0) {
      its_class = AsciiClass::kPunctuation;
    } else {
      its_class = AsciiClass::kWord;
    }
    const bool is_lowered = data->spec.lowercase && c >= 'A' && c <= 'Z';
    data->ascii_lower[c] = static_cast<uint8_t>(is_lowered ? c + 32 : c);
    const uint32_t node = data->model.Child(Trie::kRoot, static_cast<uint8_t>(c));
    const int32_t id = node == Trie::kNone ? -1 : data->model.id(node);
    data->ascii_id[c] = id >= 0 ? id : data->spec.unk_id;
  }
}

Status BuildTemplates(TokenizerData* data) {
  Result<Template> single = MakeTemplate(data->spec.single, false);
  if (!single.ok()) return single.status();
  data->single = *std::move(single);
  Result<Template> pair = MakeTemplate(data->spec.pair, true);
  if (!pair.ok()) return pair.status();
  data->pair = *std::move(pair);
  return Status();
}

}  // namespace

std::vector<std::byte> SerializeTokenizer(const TokenizerSpec& spec) {
  size_t entry_bytes = 0;
  for (const std::string& entry : spec.vocabulary) entry_bytes += entry.size();
  const bool normalizes = spec.normalizer != NormalizerKind::kNone;
  Writer writer;
  writer.Text({kMagic, kMagicBytes});
  for (size_t value :
       {size_t{kVersion}, static_cast<size_t>(spec.kind), static_cast<size_t>(spec.normalizer),
        normalizes ? size_t{Flags({spec.clean_text, spec.handle_chinese_chars, spec.strip_accents,
                                   spec.lowercase})}
                   : size_t{0},
        static_cast<size_t>(spec.pre_tokenizer), static_cast<size_t>(spec.decoder),
        size_t{Flags({spec.decoder_cleanup})}, static_cast<size_t>(spec.unk_id),
        static_cast<size_t>(spec.max_input_chars_per_word), static_cast<size_t>(spec.truncation),
        spec.vocabulary.size(), spec.added_tokens.size(), spec.single.size(), spec.pair.size(),
        spec.continuing_prefix.size(), spec.decoder_prefix.size(), entry_bytes, size_t{0}}) {
    writer.Number(value);
  }
  size_t end = 0;
  for (const std::string& entry : spec.vocabulary) writer.Number(end += entry.size());
  std::vector<uint32_t> by_text(spec.vocabulary.size());
  std::iota(by_text.begin(), by_text.end(), 0u);
  std::stable_sort(by_text.begin(), by_text.end(),
                   [&](uint32_t a, uint32_t b) { return spec.vocabulary[a] < spec.vocabulary[b]; });
  for (uint32_t id : by_text) writer.Number(id);
  for (const AddedToken& token : spec.added_tokens) {
    writer.Number(static_cast<size_t>(token.id));
    writer.Number(Flags({token.special, token.normalized, token.lstrip, token.rstrip,
                         token.single_word, token.in_model}));
  }
  for (const auto* parts : {&spec.single, &spec.pair}) {
    for (const TemplatePart& part : *parts) {
      writer.Number(static_cast<size_t>(part.kind));
      writer.Number(part.kind == PartKind::kToken ? static_cast<size_t>(part.id) : 0);
      writer.Number(static_cast<size_t>(part.type_id));
    }
  }
  writer.Text(spec.continuing_prefix);
  writer.Text(spec.decoder_prefix);
  for (const std::string& entry : spec.vocabulary) writer.Text(entry);
  return writer.Take();
}

Result<std::shared_ptr<const TokenizerData>> ParseTokenizer(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, kMagicBytes) != 0) {
    return Corrupt("this is no serialised tokenizer: it does not begin with its header", "magic");
  }
  Reader reader(bytes);
  reader.Text(kMagicBytes);
  Header header;
  for (uint32_t& field : header.field) field = reader.Number();
  ATTEND_RETURN_IF_ERROR(CheckHeader(header, bytes.size()));

  auto data = std::make_shared<TokenizerData>();
  TokenizerSpec& spec = data->spec;
  spec.kind = static_cast<TokenizerKind>(header[kFieldKind]);
  spec.normalizer = static_cast<NormalizerKind>(header[kFieldNormalizer]);
  spec.clean_text = (header[kFieldNormalizerFlags] & 1) != 0;
  spec.handle_chinese_chars = (header[kFieldNormalizerFlags] & 2) != 0;
  spec.strip_accents = (header[kFieldNormalizerFlags] & 4) != 0;
  spec.lowercase = (header[kFieldNormalizerFlags] & 8) != 0;
  spec.pre_tokenizer = static_cast<PreTokenizerKind>(header[kFieldPreTokenizer]);
  spec.decoder = static_cast<DecoderKind>(header[kFieldDecoder]);
  spec.decoder_cleanup = header[kFieldDecoderFlags] != 0;
  spec.unk_id =
      header[kFieldUnk] == kStoredNoUnknown ? kNoUnknown : static_cast<int32_t>(header[kFieldUnk]);
  spec.max_input_chars_per_word = static_cast<int32_t>(header[kFieldMaxChars]);
  spec.truncation = static_cast<int32_t>(header[kFieldTruncation]);

  Tables tables;
  tables.ends.resize(header[kFieldEntries]);
  for (uint32_t& end : tables.ends) end = reader.Number();
  tables.by_text.resize(header[kFieldEntries]);
  for (uint32_t& id : tables.by_text) id = reader.Number();
  ATTEND_RETURN_IF_ERROR(ReadAddedTokens(&reader, header[kFieldAdded], &spec.added_tokens));
  ATTEND_RETURN_IF_ERROR(ReadParts(&reader, header[kFieldSingle], &spec.single));
  ATTEND_RETURN_IF_ERROR(ReadParts(&reader, header[kFieldPair], &spec.pair));
  ATTEND_RETURN_IF_ERROR(ReadTexts(header, tables, &reader, &spec));
  ATTEND_RETURN_IF_ERROR(CheckOrder(spec, tables.by_text));
  // The id of an added token is checked before its content, which an id out of range leaves empty.
  for (const AddedToken& token : spec.added_tokens) {
    if (static_cast<size_t>(token.id) >= spec.vocabulary.size()) {
      return Corrupt("the id " + std::to_string(token.id) + " is not in the vocabulary",
                     "added token");
    }
  }
  ATTEND_RETURN_IF_ERROR(CheckTokenizer(spec));
  data->by_text = std::move(tables.by_text);
  ATTEND_RETURN_IF_ERROR(BuildModel(data.get()));
  ATTEND_RETURN_IF_ERROR(BuildMatchers(data.get()));
  ATTEND_RETURN_IF_ERROR(BuildTemplates(data.get()));
  BuildAsciiTables(data.get());
  return std::shared_ptr<const TokenizerData>(std::move(data));
}

}  // namespace attend
