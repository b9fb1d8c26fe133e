#include "engine/graph.h"

#include <algorithm>
#include <cstring>

namespace attend {
namespace {

GemmType TypeOf(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return GemmType::kBf16;
    case Precision::kInt8:
      return GemmType::kInt8;
    default:
      return GemmType::kF32;
  }
}

bool Contains(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

}  // namespace

Precision EffectivePrecision(Precision asked, const ModelConfig& config) {
  return asked == Precision::kFile ? config.precision : asked;
}

GemmType Graph::LayerType(const std::string& name) const {
  const GemmType type = TypeOf(EffectivePrecision(precision_, config_));
  if (Contains(config_.f32_layers, name)) return GemmType::kF32;
  return Contains(config_.bf16_layers, name) ? std::min(type, GemmType::kBf16) : type;
}

Result<Linear> Graph::GetLinear(const std::vector<RowBlock>& blocks, int64_t panel_width) {
  GemmType type = GemmType::kInt8;
  for (const RowBlock& block : blocks) type = std::min(type, LayerType(block.tensor));
  return weights_.GetLinear(blocks, panel_width, type);
}

Result<Linear> Graph::GetLinear(const std::string& name) {
  Result<RowBlock> block = weights_.WholeLayer(name);
  if (!block.ok()) return block.status();
  return GetLinear({*std::move(block)}, 0);
}

Value Graph::NewValue(std::string_view name, int64_t width, Domain domain, bool split) {
  ValueInfo info;
  info.name = name;
  info.width = width;
  info.domain = domain;
  info.split = split;
  values_.push_back(std::move(info));
  return Value{static_cast<int>(values_.size()) - 1};
}

int Graph::NextState(const StateInfo& info) {
  const auto add = [&] {
    states_.push_back(info);
    return static_cast<int>(states_.size()) - 1;
  };
  if (info.memory != Memory::kBatch) return add();
  if (batch_states_.size() < 2) {
    batch_states_.push_back(add());
    return batch_states_[next_batch_state_++ % 2];
  }
  const int index = batch_states_[next_batch_state_++ % 2];
  StateInfo& state = states_[index];
  state.query_columns = std::max(state.query_columns, info.query_columns);
  state.key_columns = std::max(state.key_columns, info.key_columns);
  state.value_columns = std::max(state.value_columns, info.value_columns);
  return index;
}

int Graph::UseKernel(std::shared_ptr<const LinearKernel> kernel) {
  const auto found = std::find(kernels_.begin(), kernels_.end(), kernel);
  if (found != kernels_.end()) return static_cast<int>(found - kernels_.begin());
  kernels_.push_back(std::move(kernel));
  return static_cast<int>(kernels_.size()) - 1;
}

const float* Graph::SharedTable(const std::string& name, int64_t count,
                                const std::function<void(float*)>& fill) {
  std::vector<float>& table = tables_[name];
  if (table.empty()) {
    table.resize(static_cast<size_t>(count));
    fill(table.data());
  }
  return table.data();
}

const float* StepContext::ReadPadded(Value value) const {
  const float* from = Read(value);
  if (values[value.id].segment == segment) return from;
  std::memcpy(copy, from, static_cast<size_t>(rows * width(value)) * sizeof(float));
  return copy;
}

void StepContext::Keep(Value value, int64_t begin, int64_t end) const {
  const ValueInfo& info = values[value.id];
  if (!info.kept) return;
  int64_t first = 0, last = rows;
  if (by_columns && !info.split) {
    first = PartBegin(rows);
    last = PartEnd(rows);
  }
  const float* from = Tile(value) + begin;
  float* to = Arena(value) + begin;
  const size_t bytes = static_cast<size_t>(end - begin) * sizeof(float);
  for (int64_t r = first; r < last; ++r) {
    std::memcpy(to + r * info.width, from + r * info.width, bytes);
  }
}

}  // namespace attend
