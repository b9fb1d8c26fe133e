#include "tools/convert_tokenizer.h"

#include <utility>

#if __has_include("tools/tokenizer_json.h")
#include "engine/text/tokenizer_data.h"
#include "tools/tokenizer_json.h"
#endif

namespace attend {

Result<CompiledTokenizer> CompileTokenizer(const FolderReader& folder) {
  CompiledTokenizer compiled;
  constexpr char kName[] = "tokenizer.json";
  if (!folder.Has(kName)) {
    compiled.note = "there is no tokenizer.json: the file takes token ids only";
    return compiled;
  }
#if __has_include("tools/tokenizer_json.h")
  const Result<TokenizerSpec> spec = ReadTokenizerJson(folder.PathOf(kName));
  if (!spec.ok() && spec.status().code() == ErrorCode::kUnsupported) {
    compiled.note = "the tokenizer is not supported, so the file takes token ids only: " +
                    spec.status().ToString();
    return compiled;
  }
  if (!spec.ok()) return spec.status();
  compiled.kind = "wordpiece";
  compiled.vocab_size = static_cast<int64_t>(spec->vocabulary.size());
  compiled.lowercase = spec->normalizer == NormalizerKind::kBert && spec->lowercase;
  compiled.bytes = SerializeTokenizer(*spec);
#endif
  return compiled;
}

}  // namespace attend
