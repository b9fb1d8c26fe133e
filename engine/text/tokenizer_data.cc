#include "engine/text/tokenizer_data.h"

#include <set>
#include <string>

#include "engine/text/utf8.h"

namespace attend {
namespace {

Status Bad(ErrorCode code, std::string what, std::string where) {
  return Status(code, std::move(what), "tokenizer: " + std::move(where));
}

Status CheckEntries(const TokenizerSpec& spec) {
  if (spec.vocabulary.empty())
    return Bad(ErrorCode::kCorrupt, "there are no entries", "vocabulary");
  if (spec.vocabulary.size() > kMaxVocabulary) {
    return Bad(ErrorCode::kCapacity,
               "at most " + std::to_string(kMaxVocabulary) + " entries are allowed, got " +
                   std::to_string(spec.vocabulary.size()),
               "vocabulary");
  }
  size_t total = 0;
  for (size_t id = 0; id < spec.vocabulary.size(); ++id) {
    const std::string& entry = spec.vocabulary[id];
    total += entry.size();
    if (entry.size() > kMaxEntryBytes || total > kMaxVocabularyBytes) {
      return Bad(ErrorCode::kCapacity,
                 "an entry may have " + std::to_string(kMaxEntryBytes) + " bytes, all together " +
                     std::to_string(kMaxVocabularyBytes),
                 "vocabulary entry " + std::to_string(id));
    }
    if (FindInvalidUtf8(entry) != kValidUtf8) {
      return Bad(ErrorCode::kCorrupt, "the entry is not UTF-8",
                 "vocabulary entry " + std::to_string(id));
    }
  }
  return Status();
}

Status CheckAddedTokens(const TokenizerSpec& spec) {
  if (spec.added_tokens.size() > kMaxAddedTokens) {
    return Bad(ErrorCode::kCapacity,
               "at most " + std::to_string(kMaxAddedTokens) + " are allowed, got " +
                   std::to_string(spec.added_tokens.size()),
               "added_tokens");
  }
  std::set<int32_t> ids;
  for (size_t i = 0; i < spec.added_tokens.size(); ++i) {
    const AddedToken& token = spec.added_tokens[i];
    const std::string where = "added_tokens[" + std::to_string(i) + "]";
    if (token.content.empty()) return Bad(ErrorCode::kCorrupt, "the content is empty", where);
    if (token.content.size() > kMaxAddedTokenBytes) {
      return Bad(ErrorCode::kCapacity,
                 "the content may have " + std::to_string(kMaxAddedTokenBytes) + " bytes, got " +
                     std::to_string(token.content.size()),
                 where);
    }
    if (token.id < 0 || static_cast<size_t>(token.id) >= spec.vocabulary.size()) {
      return Bad(ErrorCode::kCorrupt,
                 "the id must be less than the size of the vocabulary, " +
                     std::to_string(spec.vocabulary.size()) + ", got " + std::to_string(token.id),
                 where);
    }
    if (spec.vocabulary[static_cast<size_t>(token.id)] != token.content) {
      return Bad(ErrorCode::kCorrupt,
                 "the vocabulary has another entry under the id " + std::to_string(token.id),
                 where);
    }
    if (!ids.insert(token.id).second) {
      return Bad(ErrorCode::kCorrupt, "the id " + std::to_string(token.id) + " comes twice", where);
    }
  }
  return Status();
}

Status CheckParts(const TokenizerSpec& spec, const std::vector<TemplatePart>& parts,
                  const std::string& where) {
  if (parts.size() > kMaxTemplateParts) {
    return Bad(ErrorCode::kCapacity,
               "at most " + std::to_string(kMaxTemplateParts) + " parts are allowed, got " +
                   std::to_string(parts.size()),
               where);
  }
  for (const TemplatePart& part : parts) {
    const bool is_token = part.kind == PartKind::kToken;
    if (is_token && (part.id < 0 || static_cast<size_t>(part.id) >= spec.vocabulary.size())) {
      return Bad(ErrorCode::kCorrupt,
                 "the id " + std::to_string(part.id) + " is not in the vocabulary", where);
    }
    if (part.type_id < 0 || part.type_id > 65535) {
      return Bad(ErrorCode::kCorrupt,
                 "a type id must be 0 to 65535, got " + std::to_string(part.type_id), where);
    }
  }
  return Status();
}

}  // namespace

const char* Name(TokenizerKind kind) {
  return kind == TokenizerKind::kCharacters ? "characters" : "wordpiece";
}

Status CheckTokenizer(const TokenizerSpec& spec) {
  ATTEND_RETURN_IF_ERROR(CheckEntries(spec));
  ATTEND_RETURN_IF_ERROR(CheckAddedTokens(spec));
  ATTEND_RETURN_IF_ERROR(CheckParts(spec, spec.single, "template of one text"));
  ATTEND_RETURN_IF_ERROR(CheckParts(spec, spec.pair, "template of a pair"));
  const bool is_characters = spec.kind == TokenizerKind::kCharacters;
  if (is_characters != (spec.pre_tokenizer == PreTokenizerKind::kCharacters)) {
    return Bad(ErrorCode::kCorrupt, "characters, and only they, are cut into characters",
               "pre-tokeniser");
  }
  const bool has_no_unknown = is_characters && spec.unk_id == kNoUnknown;
  if (!has_no_unknown &&
      (spec.unk_id < 0 || static_cast<size_t>(spec.unk_id) >= spec.vocabulary.size())) {
    return Bad(
        ErrorCode::kCorrupt,
        "the unknown token's id " + std::to_string(spec.unk_id) + " is not in the vocabulary",
        "unk_id");
  }
  if (spec.max_input_chars_per_word < 1) {
    return Bad(ErrorCode::kCorrupt,
               "a word must be allowed one character at least, got " +
                   std::to_string(spec.max_input_chars_per_word),
               "max_input_chars_per_word");
  }
  if (spec.truncation < 0) {
    return Bad(ErrorCode::kCorrupt,
               "a length must not be negative, got " + std::to_string(spec.truncation),
               "truncation");
  }
  for (const std::string* prefix : {&spec.continuing_prefix, &spec.decoder_prefix}) {
    if (prefix->size() > kMaxAddedTokenBytes) {
      return Bad(ErrorCode::kCapacity,
                 "at most " + std::to_string(kMaxAddedTokenBytes) + " bytes are allowed", "prefix");
    }
    if (FindInvalidUtf8(*prefix) != kValidUtf8) {
      return Bad(ErrorCode::kCorrupt, "it is not UTF-8", "prefix");
    }
  }
  return Status();
}

}  // namespace attend
