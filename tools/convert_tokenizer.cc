#include "tools/convert_tokenizer.h"

#include "engine/text/tokenizer_data.h"
#include "tools/tokenizer_json.h"

namespace attend {
namespace {

const char* KindName(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::kWordPiece:
      return "wordpiece";
  }
  return "unknown";
}

}  // namespace

Result<CompiledTokenizer> CompileTokenizer(const FolderReader& folder) {
  CompiledTokenizer compiled;
  // What follows reads by path; nothing but regular files of this folder may be read.
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "vocab.txt"}) {
    if (!folder.Has(name)) continue;
    const Result<InputFile> file = folder.OpenFile(name);
    if (!file.ok()) return file.status();
  }
  const Result<TokenizerSpec> spec = ReadTokenizerFolder(folder.path());
  if (!spec.ok()) {
    const ErrorCode code = spec.status().code();
    if (code != ErrorCode::kNotFound && code != ErrorCode::kUnsupported) return spec.status();
    compiled.note = "the file takes token ids only: " + spec.status().ToString();
    return compiled;
  }
  compiled.kind = KindName(spec->kind);
  compiled.vocab_size = static_cast<int64_t>(spec->vocabulary.size());
  compiled.lowercase = spec->normalizer == NormalizerKind::kBert && spec->lowercase;
  compiled.bytes = SerializeTokenizer(*spec);
  return compiled;
}

}  // namespace attend
