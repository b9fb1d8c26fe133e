#include "tools/tokenizer_json.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr size_t kMaxTokenizerJsonBytes = size_t{256} << 20;
constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

Status Corrupt(std::string what, std::string where) {
  return Status(ErrorCode::kCorrupt, std::move(what), std::move(where));
}

Status UnsupportedNode(const json& node, std::string_view known, const std::string& where) {
  const json* type = JsonFind(node, "type");
  return Status(ErrorCode::kUnsupported,
                "expected " + std::string(known) + ", got " +
                    (type != nullptr ? JsonExcerpt(*type) : JsonExcerpt(node)),
                where, "the model can be converted for token ids, without its tokenizer");
}

bool HasType(const json& node, std::string_view type) {
  const json* found = JsonFind(node, "type");
  return found != nullptr && found->is_string() && found->get_ref<const std::string&>() == type;
}

// A Sequence of one is that one.
const json& Unwrap(const json& node, std::string_view type, std::string_view list) {
  if (!HasType(node, type)) return node;
  const json* items = JsonFind(node, list);
  return items != nullptr && items->is_array() && items->size() == 1 ? items->front() : node;
}

// One tokenizer.json on its way to a spec.
class JsonReader {
 public:
  JsonReader(const json& root, std::string path) : root_(root), path_(std::move(path)) {}

  Result<TokenizerSpec> Read() {
    if (!root_.is_object()) return Corrupt("expected an object, got " + JsonExcerpt(root_), path_);
    const json* version = JsonFind(root_, "version");
    if (version != nullptr && *version != "1.0") {
      return Status(ErrorCode::kUnsupported,
                    "expected version \"1.0\", got " + JsonExcerpt(*version), Where("version"));
    }
    ATTEND_RETURN_IF_ERROR(ReadModel());
    ATTEND_RETURN_IF_ERROR(ReadAddedTokens());
    ATTEND_RETURN_IF_ERROR(CheckIds());
    ATTEND_RETURN_IF_ERROR(ReadUnknown());
    ATTEND_RETURN_IF_ERROR(ReadNormalizer());
    ATTEND_RETURN_IF_ERROR(ReadPreTokenizer());
    ATTEND_RETURN_IF_ERROR(ReadPostProcessor());
    ATTEND_RETURN_IF_ERROR(ReadDecoder());
    ATTEND_RETURN_IF_ERROR(ReadTruncation());
    const Status status = CheckTokenizer(spec_);
    if (!status.ok()) {
      return Status(status.code(), status.what(), path_ + ": " + status.where(), status.hint());
    }
    return std::move(spec_);
  }

 private:
  std::string Where(std::string_view node) const { return path_ + ": " + std::string(node); }
  const json& Node(std::string_view name) const {
    static const json kNull;
    const json* node = JsonFind(root_, name);
    return node != nullptr ? *node : kNull;
  }

  // Puts an entry under its id. A second entry there, or a second id of it, is an error.
  Status Put(const std::string& entry, int32_t id, const std::string& where) {
    const auto index = static_cast<size_t>(id);
    if (index >= spec_.vocabulary.size()) {
      spec_.vocabulary.resize(index + 1);
      is_used_.resize(index + 1);
    }
    if (is_used_[index] && spec_.vocabulary[index] != entry) {
      return Corrupt("the id " + std::to_string(id) + " belongs to " +
                         Printable(spec_.vocabulary[index]) + " and to " + Printable(entry),
                     where);
    }
    const auto [it, is_new] = ids_.emplace(entry, id);
    if (!is_new && it->second != id) {
      return Corrupt(Printable(entry) + " has the ids " + std::to_string(it->second) + " and " +
                         std::to_string(id),
                     where);
    }
    is_used_[index] = true;
    spec_.vocabulary[index] = entry;
    return Status();
  }

  Status ReadModel() {
    const json& model = Node("model");
    if (HasType(model, "WordLevel")) return ReadCharacterModel(model);
    // Files of old versions do not say the type; only WordPiece has this field.
    const bool is_wordpiece =
        HasType(model, "WordPiece") || (JsonFind(model, "type") == nullptr &&
                                        JsonFind(model, "max_input_chars_per_word") != nullptr);
    if (!is_wordpiece) {
      return UnsupportedNode(model, "a model of type \"WordPiece\", or \"WordLevel\" of characters",
                             Where("model"));
    }
    ATTEND_RETURN_IF_ERROR(ReadVocabulary(model));
    const Result<std::string> prefix =
        JsonString(model, "continuing_subword_prefix", Where("model"), "##");
    if (!prefix.ok()) return prefix.status();
    spec_.continuing_prefix = *prefix;
    const Result<int64_t> most =
        JsonInt(model, "max_input_chars_per_word", 1, kMaxInt32, Where("model"), 100);
    if (!most.ok()) return most.status();
    spec_.max_input_chars_per_word = static_cast<int32_t>(*most);
    return Status();
  }

  // A WordLevel model over single characters; ReadPreTokenizer sees to it that they are single.
  Status ReadCharacterModel(const json& model) {
    spec_.kind = TokenizerKind::kCharacters;
    spec_.pre_tokenizer = PreTokenizerKind::kCharacters;
    spec_.continuing_prefix.clear();
    spec_.max_input_chars_per_word = 1;
    return ReadVocabulary(model);
  }

  Status ReadVocabulary(const json& model) {
    const json* vocabulary = JsonFind(model, "vocab");
    if (vocabulary == nullptr || !vocabulary->is_object()) {
      return Corrupt("expected an object of entries and ids, got " +
                         (vocabulary != nullptr ? JsonExcerpt(*vocabulary) : "nothing"),
                     Where("model.vocab"));
    }
    for (const auto& [entry, value] : vocabulary->items()) {
      const Result<int64_t> id =
          JsonInt(*vocabulary, entry, 0, int64_t{kMaxVocabulary} - 1, Where("model.vocab"));
      if (!id.ok()) return id.status();
      ATTEND_RETURN_IF_ERROR(Put(entry, static_cast<int32_t>(*id), Where("model.vocab")));
    }
    num_model_entries_ = ids_.size();
    return Status();
  }

  Status ReadUnknown() {
    const Result<std::string> unknown =
        JsonString(Node("model"), "unk_token", Where("model"), "[UNK]");
    if (!unknown.ok()) return unknown.status();
    const auto found = ids_.find(*unknown);
    if (found == ids_.end() && spec_.kind == TokenizerKind::kCharacters) {
      spec_.unk_id = kNoUnknown;  // then an unknown character is an error, as in their library
      return Status();
    }
    if (found == ids_.end()) {
      return Corrupt(Printable(*unknown) + " is not in the vocabulary", Where("model.unk_token"));
    }
    spec_.unk_id = found->second;
    return Status();
  }

  Status ReadAddedTokens() {
    const json& list = Node("added_tokens");
    if (list.is_null()) return Status();
    if (!list.is_array()) {
      return Corrupt("expected a list, got " + JsonExcerpt(list), Where("added_tokens"));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      ATTEND_RETURN_IF_ERROR(
          ReadAddedToken(list[i], Where("added_tokens[" + std::to_string(i) + "]")));
    }
    return Status();
  }

  Status ReadAddedToken(const json& node, const std::string& where) {
    AddedToken token;
    const Result<std::string> content = JsonString(node, "content", where);
    if (!content.ok()) return content.status();
    const Result<int64_t> id = JsonInt(node, "id", 0, int64_t{kMaxVocabulary} - 1, where);
    if (!id.ok()) return id.status();
    token.content = *content;
    token.id = static_cast<int32_t>(*id);
    if (token.content.empty()) return Corrupt("the content is empty", where);
    const std::pair<const char*, bool*> flags[] = {{"special", &token.special},
                                                   {"normalized", &token.normalized},
                                                   {"lstrip", &token.lstrip},
                                                   {"rstrip", &token.rstrip},
                                                   {"single_word", &token.single_word}};
    for (const auto& [name, flag] : flags) {
      const Result<bool> value = JsonBool(node, name, where, false);
      if (!value.ok()) return value.status();
      *flag = *value;
    }
    token.in_model = ids_.contains(token.content);
    if (!added_ids_.insert(token.id).second) {
      return Corrupt("the id " + std::to_string(token.id) + " comes twice", where);
    }
    ATTEND_RETURN_IF_ERROR(Put(token.content, token.id, where));
    spec_.added_tokens.push_back(std::move(token));
    return Status();
  }

  Status CheckIds() const {
    if (num_model_entries_ == 0) return Corrupt("there are no entries", Where("model.vocab"));
    const auto gap = std::find(is_used_.begin(), is_used_.end(), false);
    if (gap == is_used_.end()) return Status();
    return Corrupt("the ids must be 0 to " + std::to_string(is_used_.size() - 1) +
                       " without gaps, but nothing has the id " +
                       std::to_string(gap - is_used_.begin()),
                   Where("model.vocab"));
  }

  Status ReadNormalizer() {
    const json& node = Unwrap(Node("normalizer"), "Sequence", "normalizers");
    if (node.is_null()) {
      spec_.normalizer = NormalizerKind::kNone;
      spec_.clean_text = spec_.handle_chinese_chars = false;
      spec_.strip_accents = spec_.lowercase = false;
      return Status();
    }
    if (!HasType(node, "BertNormalizer")) {
      return UnsupportedNode(node, "a normaliser of type \"BertNormalizer\" or none",
                             Where("normalizer"));
    }
    const auto read = [&](const char* key, bool fallback, bool* out) -> Status {
      const Result<bool> value = JsonBool(node, key, Where("normalizer"), fallback);
      if (!value.ok()) return value.status();
      *out = *value;
      return Status();
    };
    ATTEND_RETURN_IF_ERROR(read("clean_text", true, &spec_.clean_text));
    ATTEND_RETURN_IF_ERROR(read("handle_chinese_chars", true, &spec_.handle_chinese_chars));
    ATTEND_RETURN_IF_ERROR(read("lowercase", true, &spec_.lowercase));
    return read("strip_accents", spec_.lowercase, &spec_.strip_accents);
  }

  Status ReadPreTokenizer() const {
    const json& node = Unwrap(Node("pre_tokenizer"), "Sequence", "pretokenizers");
    if (spec_.kind == TokenizerKind::kCharacters) return ReadSplit(node);
    if (HasType(node, "BertPreTokenizer")) return Status();
    return UnsupportedNode(node, "a pre-tokeniser of type \"BertPreTokenizer\"",
                           Where("pre_tokenizer"));
  }

  // What makes every character a piece of its own.
  Status ReadSplit(const json& node) const {
    const json* pattern = JsonFind(node, "pattern");
    const json* regex = pattern != nullptr ? JsonFind(*pattern, "Regex") : nullptr;
    const json* behavior = JsonFind(node, "behavior");
    const json* invert = JsonFind(node, "invert");
    const bool is_isolated = behavior != nullptr && *behavior == "Isolated";
    const bool is_inverted = invert != nullptr && *invert != false;
    // "." leaves out line ends, of which clean_text leaves none.
    const bool is_all =
        regex != nullptr && (*regex == "[\\s\\S]" || (*regex == "." && spec_.clean_text));
    if (HasType(node, "Split") && is_all && is_isolated && !is_inverted) return Status();
    return UnsupportedNode(node,
                           "for a WordLevel model, Split with the Regex \"[\\s\\S]\" and Isolated",
                           Where("pre_tokenizer"));
  }

  Status ReadPostProcessor() {
    const json& node = Unwrap(Node("post_processor"), "Sequence", "processors");
    if (node.is_null()) return Status();
    if (HasType(node, "BertProcessing")) return ReadBertProcessing(node);
    if (!HasType(node, "TemplateProcessing")) {
      return UnsupportedNode(
          node, "a post-processor of type \"TemplateProcessing\" or \"BertProcessing\"",
          Where("post_processor"));
    }
    ATTEND_RETURN_IF_ERROR(ReadTemplate(node, "single", &spec_.single));
    return ReadTemplate(node, "pair", &spec_.pair);
  }

  // {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}
  Status ReadBertProcessing(const json& node) {
    int32_t ids[2] = {0, 0};
    const char* const names[2] = {"cls", "sep"};
    for (int i = 0; i < 2; ++i) {
      const std::string where = Where("post_processor." + std::string(names[i]));
      const json* value = JsonFind(node, names[i]);
      if (value == nullptr || !value->is_array() || value->size() != 2 ||
          !value->front().is_string()) {
        return Corrupt("expected a list of a token and its id", where);
      }
      ATTEND_RETURN_IF_ERROR(
          CheckToken(value->front().get<std::string>(), value->back(), where, &ids[i]));
    }
    spec_.single = {
        {PartKind::kToken, ids[0], 0}, {PartKind::kSequenceA, 0, 0}, {PartKind::kToken, ids[1], 0}};
    spec_.pair = spec_.single;
    spec_.pair.push_back({PartKind::kSequenceB, 0, 1});
    spec_.pair.push_back({PartKind::kToken, ids[1], 1});
    return Status();
  }

  // Whether the vocabulary has `token` under the id `value`.
  Status CheckToken(const std::string& token, const json& value, const std::string& where,
                    int32_t* id) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) return Corrupt(Printable(token) + " is not in the vocabulary", where);
    if (!value.is_number_integer() || value != found->second) {
      return Corrupt(Printable(token) + " has the id " + std::to_string(found->second) +
                         " in the vocabulary, got " + JsonExcerpt(value),
                     where);
    }
    *id = found->second;
    return Status();
  }

  Status ReadTemplate(const json& node, std::string_view name, std::vector<TemplatePart>* parts) {
    const std::string where = Where("post_processor." + std::string(name));
    const json* list = JsonFind(node, name);
    if (list == nullptr || !list->is_array() || list->empty()) {
      return Corrupt("expected a list of parts", where);
    }
    for (const json& item : *list) {
      const json* sequence = JsonFind(item, "Sequence");
      const json* special = JsonFind(item, "SpecialToken");
      if ((sequence != nullptr) == (special != nullptr)) {
        return Corrupt("a part must be a Sequence or a SpecialToken, got " + JsonExcerpt(item),
                       where);
      }
      const json& part = sequence != nullptr ? *sequence : *special;
      const Result<std::string> id = JsonString(part, "id", where);
      if (!id.ok()) return id.status();
      const Result<int64_t> type_id = JsonInt(part, "type_id", 0, 65535, where, 0);
      if (!type_id.ok()) return type_id.status();
      const auto type = static_cast<int32_t>(*type_id);
      if (special != nullptr) {
        ATTEND_RETURN_IF_ERROR(ReadSpecialToken(node, *id, type, where, parts));
      } else if (*id == "A" || *id == "B") {
        parts->push_back({*id == "A" ? PartKind::kSequenceA : PartKind::kSequenceB, 0, type});
      } else {
        return Corrupt("a Sequence must be \"A\" or \"B\", got " + Printable(*id), where);
      }
    }
    return Status();
  }

  // The tokens that the template knows under `name`: mostly one.
  Status ReadSpecialToken(const json& node, const std::string& name, int32_t type_id,
                          const std::string& where, std::vector<TemplatePart>* parts) {
    const json* known = JsonFind(node, "special_tokens");
    const json* special = known != nullptr ? JsonFind(*known, name) : nullptr;
    const json* ids = special != nullptr ? JsonFind(*special, "ids") : nullptr;
    const json* tokens = special != nullptr ? JsonFind(*special, "tokens") : nullptr;
    if (ids == nullptr || tokens == nullptr || !ids->is_array() || !tokens->is_array() ||
        ids->size() != tokens->size() || ids->empty()) {
      return Corrupt("special_tokens must say ids and tokens of " + Printable(name), where);
    }
    for (size_t i = 0; i < ids->size(); ++i) {
      if (!(*tokens)[i].is_string()) {
        return Corrupt("expected a token, got " + JsonExcerpt((*tokens)[i]), where);
      }
      int32_t id = 0;
      ATTEND_RETURN_IF_ERROR(CheckToken((*tokens)[i].get<std::string>(), (*ids)[i], where, &id));
      parts->push_back({PartKind::kToken, id, type_id});
    }
    return Status();
  }

  Status ReadDecoder() {
    const json& node = Unwrap(Node("decoder"), "Sequence", "decoders");
    if (node.is_null()) {
      spec_.decoder = DecoderKind::kJoin;
      return Status();
    }
    if (!HasType(node, "WordPiece")) {
      return UnsupportedNode(node, "a decoder of type \"WordPiece\" or none", Where("decoder"));
    }
    const Result<std::string> prefix = JsonString(node, "prefix", Where("decoder"), "##");
    if (!prefix.ok()) return prefix.status();
    const Result<bool> cleanup = JsonBool(node, "cleanup", Where("decoder"), true);
    if (!cleanup.ok()) return cleanup.status();
    spec_.decoder_prefix = *prefix;
    spec_.decoder_cleanup = *cleanup;
    return Status();
  }

  Status ReadTruncation() {
    const json& node = Node("truncation");
    if (node.is_null()) return Status();
    const Result<int64_t> length = JsonInt(node, "max_length", 0, kMaxInt32, Where("truncation"));
    if (!length.ok()) return length.status();
    spec_.truncation = static_cast<int32_t>(*length);
    return Status();
  }

  const json& root_;
  std::string path_;
  TokenizerSpec spec_;
  std::vector<bool> is_used_;  // by id
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_set<int32_t> added_ids_;
  size_t num_model_entries_ = 0;
};

}  // namespace

Result<TokenizerSpec> ReadTokenizerJson(const std::string& path) {
  const Result<json> root = ParseJsonFile(path, kMaxTokenizerJsonBytes);
  if (!root.ok()) return root.status();
  return JsonReader(*root, path).Read();
}

}  // namespace attend
