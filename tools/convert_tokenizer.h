// The tokenizer of a folder, compiled for the file.
#ifndef ATTEND_TOOLS_CONVERT_TOKENIZER_H_
#define ATTEND_TOOLS_CONVERT_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attend/status.h"
#include "tools/folder.h"

namespace attend {

struct CompiledTokenizer {
  std::string kind;              // "wordpiece"; empty: the folder has none that is supported
  std::vector<std::byte> bytes;  // the serialised form
  int64_t vocab_size = 0;
  bool lowercase = false;
  std::string note;  // why there is none
};

// Errors: kCorrupt, kIo. A tokenizer that is well-formed but not supported is no error: the model
// still runs on ids.
Result<CompiledTokenizer> CompileTokenizer(const FolderReader& folder);

// The vocabulary of what comes out, where it is not that of what goes in.
inline constexpr const char* kTargetTokenizerFile = "target_tokenizer.json";
// Errors: kUnsupported, kCorrupt, kIo.
Result<CompiledTokenizer> CompileTargetTokenizer(const FolderReader& folder);

}  // namespace attend

#endif  // ATTEND_TOOLS_CONVERT_TOKENIZER_H_
