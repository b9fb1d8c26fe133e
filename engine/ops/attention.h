// Attention of a tile's queries over the packed keys and values that their sequences see.
#ifndef ATTEND_ENGINE_OPS_ATTENTION_H_
#define ATTEND_ENGINE_OPS_ATTENTION_H_

#include <algorithm>
#include <string>

#include "engine/graph.h"
#include "engine/ops/attention_spec.h"
#include "engine/ops/qkv.h"
#include "engine/ops/record_attention.h"
#include "kernels/attention.h"

namespace attend::ops {

class AttentionStep final : public Step {
 public:
  AttentionStep(int state, Memory memory, Value y, HeadGroups groups, const AttentionSpec& spec)
      : state_(state),
        memory_(memory),
        y_(y),
        groups_(groups),
        spec_(spec),
        attention_(BindAttention()) {}

  void Run(const StepContext& context) const override {
    const BatchView& batch = *context.batch;
    const AttentionState& state = context.states[state_];
    const int64_t ldq = spec_.heads * spec_.key_dim, ld_out = spec_.heads * spec_.value_dim;
    const int64_t heads_per_group = groups_.size * groups_.queries_per_kv();
    const int64_t head_begin = context.PartBegin(groups_.count()) * heads_per_group;
    const int64_t head_end = context.PartEnd(groups_.count()) * heads_per_group;
    const int64_t row_end = context.row_begin + context.rows;
    float* const y = context.Tile(y_);
    for (int64_t row = context.row_begin; row < row_end && head_begin < head_end;) {
      const int32_t sequence = batch.sequence_of[row];
      const int64_t end = std::min<int64_t>(row_end, batch.offsets[sequence + 1]);
      const SequenceKeys& seen = batch.keys[static_cast<int>(memory_)][sequence];
      attention_(
          {.spec = &spec_,
           .q = state.q + row * ldq,
           .packed_k = state.k +
                       PackedKeyFloats(seen.first_row, spec_.kv_heads, spec_.key_dim, spec_.pairs),
           .packed_v = state.v + PackedValueFloats(seen.first_row, spec_.kv_heads, spec_.value_dim,
                                                   spec_.pairs),
           .blocks = seen.blocks,
           .out = y + (row - context.row_begin) * ld_out,
           .query_begin = batch.positions[row],
           .query_count = end - row,
           .num_keys = seen.count,
           .ldq = ldq,
           .ld_out = ld_out,
           .head_begin = head_begin,
           .head_end = head_end,
           .edge_offsets = batch.edge_offsets == nullptr ? nullptr : batch.edge_offsets + row,
           .edge_keys = batch.edge_keys,
           .scratch = context.scratch});
      row = end;
    }
    context.Keep(y_, head_begin * spec_.value_dim, head_end * spec_.value_dim);
  }

  std::string Describe() const override {
    constexpr const char* kOver[] = {"", ", cached", ", of the source"};
    return DescribeAttention(spec_) + kOver[static_cast<int>(memory_)];
  }

  StepCost cost() const override { return {.flops_per_pair = FlopsPerPair(spec_)}; }
  WorkKind kind() const override { return WorkKind::kAttention; }

 private:
  int state_;
  Memory memory_;
  Value y_;
  HeadGroups groups_;
  AttentionSpec spec_;
  AttentionFn attention_;
};

// Adds attention over what `state` holds.
inline Value AddAttention(Graph& graph, int state, const HeadGroups& groups,
                          const AttentionSpec& spec) {
  RecordAttention(graph, state, spec);
  const Value y = graph.NewValue("attention", spec.heads * spec.value_dim, Domain::kTokens, true);
  Node node;
  node.writes = y;
  const Memory memory = graph.states()[state].memory;
  // What a source has was there before this run.
  node.reads_state = memory != Memory::kSource;
  node.attends = state;
  node.step = std::make_unique<AttentionStep>(state, memory, y, groups, spec);
  graph.Add(std::move(node));
  return y;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_ATTENTION_H_
