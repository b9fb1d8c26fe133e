// BERT's older layout: vocab.txt and tokenizer_config.json.
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tools/folder.h"
#include "tools/json.h"
#include "tools/tokenizer_json.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr size_t kMaxVocabTextBytes = kMaxVocabularyBytes + 2 * kMaxVocabulary;
constexpr size_t kMaxConfigBytes = size_t{16} << 20;

Status CorruptVocabulary(std::string what, std::string where) {
  return Status(ErrorCode::kCorrupt, std::move(what), std::move(where));
}

using IdsByToken = std::unordered_map<std::string, int32_t>;

// One entry a line; a line may end with \r\n.
Status ReadEntries(std::string_view text, const std::string& path, TokenizerSpec* spec,
                   IdsByToken* ids) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t id = spec->vocabulary.size();
    if (id >= kMaxVocabulary) {
      return Status(ErrorCode::kCapacity,
                    "at most " + std::to_string(kMaxVocabulary) + " lines are allowed", path);
    }
    const auto [it, is_new] = ids->emplace(line, static_cast<int32_t>(id));
    if (!is_new) {
      return CorruptVocabulary(Printable(line) + " is there in line " +
                                   std::to_string(it->second + 1) +
                                   " too: an entry must be there once",
                               path + ", line " + std::to_string(id + 1));
    }
    spec->vocabulary.emplace_back(line);
  }
  return Status();
}

// A special token is written as text or, by newer versions, as an object.
Status ReadTokenName(const json& config, const char* key, const std::string& path,
                     std::string* name) {
  const json* value = JsonFind(config, key);
  if (value == nullptr) return Status();
  const json* content = value->is_object() ? JsonFind(*value, "content") : value;
  if (content == nullptr || !content->is_string()) {
    return JsonFieldError(key, *value, "a token's text", path);
  }
  *name = content->get<std::string>();
  return Status();
}

}  // namespace

Result<TokenizerSpec> ReadVocabText(const std::string& path, const VocabTextOptions& options) {
  const Result<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  const Result<std::string> text = file->ReadAll(kMaxVocabTextBytes);
  if (!text.ok()) return text.status();
  TokenizerSpec spec;
  IdsByToken ids;
  const Status read = ReadEntries(*text, path, &spec, &ids);
  // A vocabulary may begin with "<s>"; one that begins like a page and has no such token is a page.
  const std::string_view guess = GuessContent(*text);
  if (!guess.empty() && (!read.ok() || !ids.contains(options.unk_token))) {
    return Status(ErrorCode::kCorrupt, "expected a vocabulary, got " + std::string(guess), path,
                  std::string(GuessHint(guess)));
  }
  ATTEND_RETURN_IF_ERROR(read);
  for (const std::string* name : {&options.pad_token, &options.unk_token, &options.cls_token,
                                  &options.sep_token, &options.mask_token}) {
    const auto found = ids.find(*name);
    const bool is_needed = name != &options.pad_token && name != &options.mask_token;
    if (found != ids.end() && !name->empty()) {
      spec.added_tokens.push_back({.content = *name, .id = found->second, .special = true});
    } else if (is_needed) {
      return CorruptVocabulary(Printable(*name) + " is not in the vocabulary", path);
    }
  }
  spec.lowercase = options.lowercase;
  spec.strip_accents = options.strip_accents.value_or(options.lowercase);
  spec.handle_chinese_chars = options.handle_chinese_chars;
  spec.unk_id = ids[options.unk_token];
  const int32_t cls = ids[options.cls_token], sep = ids[options.sep_token];
  spec.single = {
      {PartKind::kToken, cls, 0}, {PartKind::kSequenceA, 0, 0}, {PartKind::kToken, sep, 0}};
  spec.pair = spec.single;
  spec.pair.push_back({PartKind::kSequenceB, 0, 1});
  spec.pair.push_back({PartKind::kToken, sep, 1});
  const Status status = CheckTokenizer(spec);
  if (!status.ok()) {
    return Status(status.code(), status.what(), path + ": " + status.where(), status.hint());
  }
  return spec;
}

Result<VocabTextOptions> ReadTokenizerConfig(const std::string& path) {
  const Result<json> config = ParseJsonFile(path, kMaxConfigBytes);
  if (!config.ok()) return config.status();
  if (!config->is_object()) {
    return CorruptVocabulary("expected an object, got " + JsonExcerpt(*config), path);
  }
  VocabTextOptions options;
  const Result<bool> lowercase = JsonBool(*config, "do_lower_case", path, true);
  if (!lowercase.ok()) return lowercase.status();
  options.lowercase = *lowercase;
  const Result<bool> chinese = JsonBool(*config, "tokenize_chinese_chars", path, true);
  if (!chinese.ok()) return chinese.status();
  options.handle_chinese_chars = *chinese;
  if (JsonFind(*config, "strip_accents") != nullptr) {
    const Result<bool> strip = JsonBool(*config, "strip_accents", path);
    if (!strip.ok()) return strip.status();
    options.strip_accents = *strip;
  }
  const std::pair<const char*, std::string*> names[] = {{"pad_token", &options.pad_token},
                                                        {"unk_token", &options.unk_token},
                                                        {"cls_token", &options.cls_token},
                                                        {"sep_token", &options.sep_token},
                                                        {"mask_token", &options.mask_token}};
  for (const auto& [key, name] : names) {
    ATTEND_RETURN_IF_ERROR(ReadTokenName(*config, key, path, name));
  }
  return options;
}

Result<TokenizerSpec> ReadTokenizerFolder(const std::string& folder) {
  const auto path = [&](const char* name) { return folder + "/" + name; };
  Result<TokenizerSpec> spec = ReadTokenizerJson(path("tokenizer.json"));
  if (spec.ok() || spec.status().code() != ErrorCode::kNotFound) return spec;
  const Result<InputFile> vocabulary = InputFile::Open(path("vocab.txt"));
  if (!vocabulary.ok()) {
    if (vocabulary.status().code() != ErrorCode::kNotFound) return vocabulary.status();
    return Status(ErrorCode::kNotFound, "there is neither tokenizer.json nor vocab.txt", folder);
  }
  // Entries beside the vocabulary would silently be missing.
  if (InputFile::Open(path("added_tokens.json")).ok()) {
    return Status(ErrorCode::kUnsupported,
                  "a vocab.txt with added_tokens.json needs its tokenizer.json", folder,
                  "save it again with the fast tokenizer of Hugging Face");
  }
  VocabTextOptions options;
  Result<VocabTextOptions> config = ReadTokenizerConfig(path("tokenizer_config.json"));
  if (config.ok()) {
    options = *std::move(config);
  } else if (config.status().code() != ErrorCode::kNotFound) {
    return config.status();
  }
  return ReadVocabText(path("vocab.txt"), options);
}

}  // namespace attend
