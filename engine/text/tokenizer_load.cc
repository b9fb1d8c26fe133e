#include "engine/text/tokenizer_load.h"

#include <optional>
#include <string>

#include "engine/log.h"
#include "engine/model.h"
#include "engine/text/guard.h"

namespace attend {

Result<Tokenizer> TokenizerOfFile(const FileView& file, const std::string& where,
                                  const std::string& name) {
  const std::string prefix = where.empty() ? std::string() : where + ": ";
  const std::optional<TensorView> tensor = file.FindTensor(name);
  if (!tensor.has_value()) {
    return Status(ErrorCode::kNotFound, "the model has no tokenizer: it takes token ids only",
                  where, "convert it again with its tokenizer.json or vocab.txt beside it");
  }
  if (tensor->dtype != DType::kU8 || tensor->shape.size() != 1) {
    return Status(ErrorCode::kCorrupt,
                  std::string("the tensor must be U8 with one axis, got ") +
                      DTypeName(tensor->dtype) + " with " + std::to_string(tensor->shape.size()),
                  prefix + name);
  }
  Result<Tokenizer> tokenizer = Tokenizer::FromBytes(tensor->bytes);
  if (tokenizer.ok()) return tokenizer;
  const Status& status = tokenizer.status();
  return Status(status.code(), status.what(), prefix + status.where(), status.hint());
}

std::string Summary(const Tokenizer& tokenizer) {
  return std::string(tokenizer.kind()) + " tokenizer of " + std::to_string(tokenizer.vocab_size()) +
         " tokens";
}

Result<Tokenizer> Tokenizer::Load(const std::string& path, const LoadOptions& options) {
  return WithoutExceptions("Tokenizer", [&]() -> Result<Tokenizer> {
    Result<FileBytes> bytes = FileBytes::Open(path, options);
    if (!bytes.ok()) return bytes.status();
    Result<FileView> view = FileView::Open(bytes->bytes(), VerifyLevel::kStructure, path);
    if (!view.ok()) return view.status();
    Result<Tokenizer> tokenizer = TokenizerOfFile(*view, path);
    if (tokenizer.ok() && Wants(options.logger, LogLevel::kWarning)) {
      TellLoaded(options.logger, path, *bytes, Summary(*tokenizer));
    }
    return tokenizer;
  });
}

Result<Tokenizer> Tokenizer::FromModel(const Model& model) {
  return WithoutExceptions("Tokenizer", [&] { return TokenizerOfFile(model.data().file, {}); });
}

Result<Tokenizer> Tokenizer::TargetOfModel(const Model& model) {
  return WithoutExceptions(
      "Tokenizer", [&] { return TokenizerOfFile(model.data().file, {}, "target_tokenizer"); });
}

}  // namespace attend
