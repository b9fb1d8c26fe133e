#include "tools/convert_tokenizer.h"

#include "engine/text/tokenizer_data.h"
#include "tools/tokenizer_json.h"

namespace attend {
namespace {

CompiledTokenizer Compile(const TokenizerSpec& spec) {
  CompiledTokenizer compiled;
  compiled.kind = Name(spec.kind);
  compiled.vocab_size = static_cast<int64_t>(spec.vocabulary.size());
  compiled.lowercase = spec.normalizer == NormalizerKind::kBert && spec.lowercase;
  compiled.bytes = SerializeTokenizer(spec);
  return compiled;
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
  return Compile(*spec);
}

Result<CompiledTokenizer> CompileTargetTokenizer(const FolderReader& folder) {
  const Result<InputFile> file = folder.OpenFile(kTargetTokenizerFile);
  if (!file.ok()) return file.status();
  const Result<TokenizerSpec> spec = ReadTokenizerJson(folder.PathOf(kTargetTokenizerFile));
  if (!spec.ok()) return spec.status();
  return Compile(*spec);
}

}  // namespace attend
