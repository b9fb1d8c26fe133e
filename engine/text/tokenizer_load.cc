// Tokenizers out of model files.
#include "attend/text.h"
#include "engine/format.h"
#include "engine/text/tokenizer_data.h"

namespace attend {

Result<Tokenizer> Tokenizer::Load(const std::string& path) {
  Result<FileBytes> file = FileBytes::Open(path, FileBytes::Mode::kMap);
  if (!file.ok()) return file.status();
  Result<FileView> view = FileView::Open(file->bytes(), VerifyLevel::kStructure, path);
  if (!view.ok()) return view.status();
  const std::optional<TensorView> tensor = view->FindTensor("tokenizer");
  if (!tensor.has_value()) {
    return Status(ErrorCode::kNotFound, "the model has no tokenizer: it takes token ids only", path,
                  "convert it again with its tokenizer.json or vocab.txt beside it");
  }
  if (tensor->dtype != DType::kU8 || tensor->shape.size() != 1) {
    return Status(ErrorCode::kCorrupt,
                  std::string("the tensor must be U8 of one axis, got ") + DTypeName(tensor->dtype) +
                      " of " + std::to_string(tensor->shape.size()),
                  path + ": tokenizer");
  }
  Result<Tokenizer> tokenizer = FromBytes(tensor->bytes);
  if (tokenizer.ok()) return tokenizer;
  const Status& status = tokenizer.status();
  return Status(status.code(), status.what(), path + ": " + status.where(), status.hint());
}

}  // namespace attend
