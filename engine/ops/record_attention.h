// The weights of an attention, beside the attention itself: in the plan of an AttentionMap only.
#ifndef ATTEND_ENGINE_OPS_RECORD_ATTENTION_H_
#define ATTEND_ENGINE_OPS_RECORD_ATTENTION_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "engine/attention_recorder.h"
#include "engine/graph.h"
#include "kernels/attention.h"

namespace attend::ops {

class RecordAttentionStep final : public Step {
 public:
  RecordAttentionStep(int state, Memory memory, const AttentionSpec& spec, WeightMap* map)
      : state_(state),
        memory_(memory),
        layer_(map->Add(spec)),
        spec_(spec),
        map_(map),
        attention_(BindAttention()) {
    spec_.value_dim = UnitValues::kColumns;
  }

  // The tile's rows are one sequence's: an AttentionMap takes no more.
  void Run(const StepContext& context) const override {
    const BatchView& batch = *context.batch;
    const AttentionState& state = context.states[state_];
    const int64_t row = context.row_begin;
    const int64_t keys = batch.keys[static_cast<int>(memory_)][0].count;
    const int64_t ldq = spec_.heads * spec_.key_dim, ld_out = spec_.heads * UnitValues::kColumns;
    map_->SetLengths(batch.tokens, keys);
    for (int64_t first = 0; first < keys; first += UnitValues::kColumns) {
      map_->units().MoveTo(first);
      attention_(
          {.spec = &spec_,
           .q = state.q + row * ldq,
           .packed_k = state.k,
           .packed_v = map_->units().data(),
           .out = map_->out(),
           .query_begin = batch.positions[row],
           .query_count = context.rows,
           .num_keys = keys,
           .ldq = ldq,
           .ld_out = ld_out,
           .head_begin = 0,
           .head_end = spec_.heads,
           .edge_offsets = batch.edge_offsets == nullptr ? nullptr : batch.edge_offsets + row,
           .edge_keys = batch.edge_keys,
           .scratch = context.scratch});
      Store(row, context.rows, first);
    }
  }

  std::string Describe() const override { return "weights of the attention below"; }
  WorkKind kind() const override { return WorkKind::kAttention; }

 private:
  void Store(int64_t row, int64_t rows, int64_t first) const {
    const int64_t queries = map_->queries(), keys = map_->keys();
    float* const weights = map_->Layer(layer_);
    const float* from = map_->out();
    const int64_t count = std::min(UnitValues::kColumns, keys - first);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t h = 0; h < spec_.heads; ++h, from += UnitValues::kColumns) {
        std::copy_n(from, count, weights + (h * queries + row + r) * keys + first);
      }
    }
  }

  int state_;
  Memory memory_;
  int layer_;
  AttentionSpec spec_;
  WeightMap* map_;
  AttentionFn attention_;
};

// Adds it, if the graph has a map for it.
inline void RecordAttention(Graph& graph, int state, const AttentionSpec& spec) {
  const Memory memory = graph.states()[state].memory;
  WeightMap* const map = graph.recorded().Of(memory);
  if (map == nullptr) return;
  Node node;
  node.reads_state = memory != Memory::kSource;
  node.step = std::make_unique<RecordAttentionStep>(state, memory, spec, map);
  graph.Add(std::move(node));
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_RECORD_ATTENTION_H_
