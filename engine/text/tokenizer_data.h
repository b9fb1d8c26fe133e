// What a tokenizer is: the plain description that converters fill in and files hold, and the form
// with its indexes that encoding works on.
#ifndef ATTEND_ENGINE_TEXT_TOKENIZER_DATA_H_
#define ATTEND_ENGINE_TEXT_TOKENIZER_DATA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attend/status.h"
#include "engine/text/added_tokens.h"
#include "engine/text/trie.h"

namespace attend {

// The numbers are those of the serialised form; a new kind gets the next one.
enum class TokenizerKind : uint32_t { kWordPiece = 1, kCharacters = 2 };
enum class NormalizerKind : uint32_t { kNone = 0, kBert = 1 };
enum class PreTokenizerKind : uint32_t { kBert = 1, kCharacters = 2 };
enum class DecoderKind : uint32_t { kJoin = 0, kWordPiece = 1 };
enum class PartKind : uint32_t { kToken = 0, kSequenceA = 1, kSequenceB = 2 };

// A token that is found in the text before everything else.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;      // left out by Decode, and plain text if the caller says so
  bool normalized = false;   // looked for in the normalised text, not in the raw one
  bool lstrip = false;       // takes the blanks before it
  bool rstrip = false;       // takes the blanks behind it
  bool single_word = false;  // not inside a word
  bool in_model = true;      // whether the model's own vocabulary has it too
};

// A piece of what is made of one text, or of two.
struct TemplatePart {
  PartKind kind = PartKind::kToken;
  int32_t id = 0;  // of a kToken
  int32_t type_id = 0;
};

struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kWordPiece;
  std::vector<std::string> vocabulary;  // by id, added tokens included

  NormalizerKind normalizer = NormalizerKind::kBert;
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;  // resolved: "unset" means what `lowercase` says
  bool lowercase = true;

  PreTokenizerKind pre_tokenizer = PreTokenizerKind::kBert;

  std::string continuing_prefix = "##";
  int32_t max_input_chars_per_word = 100;
  int32_t unk_id = 0;  // or kNoUnknown, of characters

  std::vector<AddedToken> added_tokens;
  std::vector<TemplatePart> single;  // empty: the text alone
  std::vector<TemplatePart> pair;    // empty: both texts, types 0 and 1

  DecoderKind decoder = DecoderKind::kWordPiece;
  std::string decoder_prefix = "##";
  bool decoder_cleanup = true;

  int32_t truncation = 0;  // the longest encoding that its makers advise; 0: none. Advice only
};

inline constexpr size_t kMaxVocabulary = size_t{1} << 21;
inline constexpr size_t kMaxEntryBytes = size_t{1} << 16;
inline constexpr size_t kMaxVocabularyBytes = size_t{1} << 26;
inline constexpr size_t kMaxAddedTokens = size_t{1} << 16;
inline constexpr size_t kMaxAddedTokenBytes = 4096;
inline constexpr size_t kMaxTemplateParts = 64;
inline constexpr size_t kMaxTextBytes = size_t{64} << 20;

// Whether the parts of a spec are inside their limits and fit together, but for duplicate entries.
// Errors: kCorrupt, kUnsupported, kCapacity, naming the part.
Status CheckTokenizer(const TokenizerSpec& spec);

// The serialised form (FORMAT.md) of a spec that CheckTokenizer likes. The same spec always gives
// the same bytes.
std::vector<std::byte> SerializeTokenizer(const TokenizerSpec& spec);

// In place of the id of the unknown token: what is not in the vocabulary is an error.
inline constexpr int32_t kNoUnknown = -1;

// The kind's name: "wordpiece", "characters".
const char* Name(TokenizerKind kind);

// What an ASCII byte is to the pre-tokeniser.
enum class AsciiClass : uint8_t { kWord, kSpace, kPunctuation, kOther };

// Tokens that one text or a pair gets in front, between and behind, by position in ids.
struct Template {
  std::vector<TemplatePart> parts;
  int32_t num_added = 0;
};

// Read-only once made.
struct TokenizerData {
  TokenizerSpec spec;
  Trie model;                     // the entries that the model may use
  uint32_t continuation = 0;      // the trie's node after the continuing prefix; 0: there is none
  AddedTokenMatcher raw_tokens;   // of the raw text
  AddedTokenMatcher norm_tokens;  // of the normalised text
  std::vector<uint32_t> by_text;  // ids in the order of their bytes
  std::vector<bool> is_special;   // by id
  // What Decode writes for added tokens of the normalised text: Hugging Face's library writes what
  // the normaliser makes of them.
  std::unordered_map<int32_t, std::string> norm_contents;
  Template single, pair;
  std::array<AsciiClass, 256> ascii_class{};  // of raw bytes
  std::array<uint8_t, 256> ascii_lower{};     // what becomes of a raw ASCII byte
  std::array<int32_t, 128> ascii_id{};        // the token of that one byte as a word
};

// Reads a serialised form, trusting nothing, and builds the indexes.
// Errors: kCorrupt (says where and what), kUnsupported (a newer version or kind), kCapacity.
Result<std::shared_ptr<const TokenizerData>> ParseTokenizer(std::span<const std::byte> bytes);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_TOKENIZER_DATA_H_
