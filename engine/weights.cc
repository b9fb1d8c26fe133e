#include "engine/weights.h"

#include <algorithm>

namespace attend {
namespace {

TableType TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return TableType::kF16;
    case DType::kBf16:
      return TableType::kBf16;
    case DType::kI8:
      return TableType::kI8;
    default:
      return TableType::kF32;
  }
}

Status Missing(const std::string& name) {
  return Status(ErrorCode::kCorrupt, "the tensor is missing", "tensor " + name,
                "convert the model again");
}

}  // namespace

Status WeightCache::WidenRows(const std::string& name, int64_t row, int64_t count,
                              float* out) const {
  const auto tensor = file_->FindTensor(name);
  if (!tensor) return Missing(name);
  const int64_t width = tensor->shape.size() < 2 ? 1 : static_cast<int64_t>(tensor->shape[1]);
  const WidenFn widen = BindWiden();
  const size_t row_bytes = static_cast<size_t>(width) * DTypeSize(tensor->dtype);
  const std::byte* data = tensor->bytes.data() + static_cast<size_t>(row) * row_bytes;
  const TableType type = TypeOf(tensor->dtype);
  if (type != TableType::kI8) {
    widen({.data = data, .type = type, .out = out, .count = width * count});
    return Status();
  }
  const auto scale = file_->FindTensor(name + ".scale");
  if (!scale) return Missing(name + ".scale");
  const float* scales = reinterpret_cast<const float*>(scale->bytes.data());
  for (int64_t r = 0; r < count; ++r) {
    widen({.data = data + static_cast<size_t>(r) * row_bytes,
           .scale = scales[row + r],
           .type = type,
           .out = out + r * width,
           .count = width});
  }
  return Status();
}

Result<std::shared_ptr<const LinearKernel>> WeightCache::GetKernel(int64_t n, int64_t k,
                                                                   Panels panels, GemmType type) {
  std::shared_ptr<const LinearKernel>& kernel = kernels_[{n, k, panels.width, type}];
  if (kernel == nullptr) {
    Result<std::shared_ptr<const LinearKernel>> made = LinearKernel::Create(n, k, panels, type);
    if (!made.ok()) return made.status();
    kernel = *made;
  }
  return kernel;
}

Result<Linear> WeightCache::GetLinear(const std::vector<RowBlock>& blocks, int64_t panel_width,
                                      GemmType type) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string key = std::to_string(static_cast<int>(type)) + ";";
  int64_t n = 0;
  for (const RowBlock& block : blocks) {
    key += block.tensor + "/" + std::to_string(block.row) + "/" + std::to_string(block.count) +
           "/" + block.bias + "/" + std::to_string(block.scale) + ";";
    n += block.count;
  }
  const auto first = file_->FindTensor(blocks.front().tensor + ".weight");
  if (!first || first->shape.size() != 2) return Missing(blocks.front().tensor + ".weight");
  const int64_t k = static_cast<int64_t>(first->shape[1]);
  Result<std::shared_ptr<const LinearKernel>> kernel =
      GetKernel(n, k, CutPanels(n, k, panel_width), type);
  if (!kernel.ok()) return kernel.status();
  std::shared_ptr<const PackedLinear>& packed = packed_[key];
  if (packed != nullptr) return Linear{*kernel, packed};

  std::vector<float> bias(static_cast<size_t>(n), 0.0f);
  int64_t at = 0;
  for (const RowBlock& block : blocks) {
    const std::string name = block.bias.empty() ? block.tensor + ".bias" : block.bias;
    if (Has(name)) {
      ATTEND_RETURN_IF_ERROR(WidenRows(name, block.row, block.count, bias.data() + at));
    }
    at += block.count;
  }
  Status status;
  const auto fill = [&](int64_t begin, int64_t columns, float* out) {
    int64_t block_begin = 0;
    for (const RowBlock& block : blocks) {
      const int64_t from = std::max(begin, block_begin);
      const int64_t to = std::min(begin + columns, block_begin + block.count);
      if (from < to && status.ok()) {
        float* const rows = out + (from - begin) * k;
        status =
            WidenRows(block.tensor + ".weight", block.row + from - block_begin, to - from, rows);
        if (block.scale != 1) {
          for (int64_t i = 0; i < (to - from) * k; ++i) rows[i] *= block.scale;
        }
      }
      block_begin += block.count;
    }
  };
  Result<std::shared_ptr<const PackedLinear>> made =
      PackedLinear::Pack(**kernel, fill, bias, pool_);
  ATTEND_RETURN_IF_ERROR(status);
  if (!made.ok()) return made.status();
  packed = *made;
  // The originals will not be read again: memory is not to hold the weights twice.
  for (const RowBlock& block : blocks) {
    if (block.shared) continue;
    bytes_->Release(file_->FindTensor(block.tensor + ".weight")->bytes);
  }
  return Linear{*kernel, packed};
}

Result<RowBlock> WeightCache::WholeLayer(const std::string& name) const {
  const auto tensor = file_->FindTensor(name + ".weight");
  if (!tensor) return Missing(name + ".weight");
  return RowBlock{name, 0, static_cast<int64_t>(tensor->shape[0])};
}

Result<std::span<const float>> WeightCache::GetVector(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto tensor = file_->FindTensor(name);
  if (!tensor) return std::span<const float>();
  std::vector<float>& vector = vectors_[name];
  if (vector.empty()) {
    vector.resize(tensor->num_elements());
    BindWiden()({.data = tensor->bytes.data(),
                 .type = TypeOf(tensor->dtype),
                 .out = vector.data(),
                 .count = static_cast<int64_t>(vector.size())});
  }
  return std::span<const float>(vector);
}

EmbeddingTable WeightCache::GetTable(const std::string& name) const {
  EmbeddingTable table;
  const auto tensor = file_->FindTensor(name);
  if (!tensor) return table;
  table.data = tensor->bytes.data();
  table.type = TypeOf(tensor->dtype);
  if (const auto scale = file_->FindTensor(name + ".scale")) {
    table.scale = reinterpret_cast<const float*>(scale->bytes.data());
  }
  return table;
}

void WeightCache::Trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  pool_->Trim();
}

size_t WeightCache::packed_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t bytes = 0;
  for (const auto& [name, packed] : packed_) bytes += packed == nullptr ? 0 : packed->bytes();
  for (const auto& [name, vector] : vectors_) bytes += vector.size() * sizeof(float);
  return bytes;
}

}  // namespace attend
