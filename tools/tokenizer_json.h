// Reads the tokenizers of Hugging Face folders: tokenizer.json, or vocab.txt with
// tokenizer_config.json.
#ifndef ATTEND_TOOLS_TOKENIZER_JSON_H_
#define ATTEND_TOOLS_TOKENIZER_JSON_H_

#include <optional>
#include <string>

#include "attend/status.h"
#include "engine/text/tokenizer_data.h"

namespace attend {

// The tokenizer of a tokenizer.json. Its `truncation` becomes advice, its `padding` is ignored:
// nothing is padded here.
// Errors: kUnsupported naming the node that this version does not run (an encoder may still be
// converted for ids); kCorrupt naming what is wrong; kNotFound, kIo, kCapacity.
Result<TokenizerSpec> ReadTokenizerJson(const std::string& path);

// What tokenizer_config.json says of a vocab.txt.
struct VocabTextOptions {
  bool lowercase = true;
  std::optional<bool> strip_accents = std::nullopt;  // unset: as `lowercase`
  bool handle_chinese_chars = true;
  std::string pad_token = "[PAD]";
  std::string unk_token = "[UNK]";
  std::string cls_token = "[CLS]";
  std::string sep_token = "[SEP]";
  std::string mask_token = "[MASK]";
};

// BERT's tokenizer over a vocab.txt: one entry a line, the first has the id 0.
// Errors: kCorrupt (a line twice, naming both; no unknown, first or last token); as above.
Result<TokenizerSpec> ReadVocabText(const std::string& path, const VocabTextOptions& options);

// The options in a tokenizer_config.json. Errors: as above.
Result<VocabTextOptions> ReadTokenizerConfig(const std::string& path);

// The tokenizer of a folder: tokenizer.json if it is there, else vocab.txt.
// Errors: kNotFound (neither is there); as above.
Result<TokenizerSpec> ReadTokenizerFolder(const std::string& folder);

}  // namespace attend

#endif  // ATTEND_TOOLS_TOKENIZER_JSON_H_
