// Self-attention of a tile's queries over the packed keys and values of their sequences.
#ifndef ATTEND_ENGINE_OPS_ATTENTION_H_
#define ATTEND_ENGINE_OPS_ATTENTION_H_

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/graph.h"
#include "engine/ops/qkv.h"
#include "kernels/attention.h"

namespace attend::ops {

class AttentionStep final : public Step {
 public:
  AttentionStep(int state, Value y, HeadGroups groups, float scale)
      : state_(state),
        y_(y),
        groups_(groups),
        spec_({.heads = groups.heads,
               .kv_heads = groups.kv_heads,
               .key_dim = groups.head_dim,
               .value_dim = groups.head_dim,
               .scale = scale}),
        attention_(BindAttention()) {}

  void Run(const StepContext& context) const override {
    const BatchView& batch = *context.batch;
    const AttentionState& state = context.states[state_];
    const int64_t width = groups_.heads * groups_.head_dim;
    const int64_t heads_per_group = groups_.size * groups_.queries_per_kv();
    const int64_t head_begin = context.PartBegin(groups_.count()) * heads_per_group;
    const int64_t head_end = context.PartEnd(groups_.count()) * heads_per_group;
    const int64_t row_end = context.row_begin + context.rows;
    float* const y = context.Tile(y_);
    for (int64_t row = context.row_begin; row < row_end && head_begin < head_end;) {
      const int32_t sequence = batch.sequence_of[row];
      const int64_t end = std::min<int64_t>(row_end, batch.offsets[sequence + 1]);
      const int64_t keys = batch.key_rows[sequence] * groups_.kv_heads * groups_.head_dim;
      attention_({.spec = &spec_,
                  .q = state.q + row * width,
                  .packed_k = state.k + keys,
                  .packed_v = state.v + keys,
                  .out = y + (row - context.row_begin) * width,
                  .query_begin = batch.positions[row],
                  .query_count = end - row,
                  .num_keys = batch.offsets[sequence + 1] - batch.offsets[sequence],
                  .ldq = width,
                  .ld_out = width,
                  .head_begin = head_begin,
                  .head_end = head_end,
                  .scratch = context.scratch});
      row = end;
    }
    context.Keep(y_, head_begin * groups_.head_dim, head_end * groups_.head_dim);
  }

  std::string Describe() const override {
    return "attention, softmax, " + std::to_string(groups_.heads) + " heads of " +
           std::to_string(groups_.head_dim) + " over " + std::to_string(groups_.kv_heads);
  }

  StepCost cost() const override {
    return {.flops_per_pair = 4.0 * static_cast<double>(groups_.heads * groups_.head_dim)};
  }

 private:
  int state_;
  Value y_;
  HeadGroups groups_;
  AttentionSpec spec_;
  AttentionFn attention_;
};

inline Value AddAttention(Graph& graph, int state, const HeadGroups& groups) {
  const Value y =
      graph.NewValue("attention", groups.heads * groups.head_dim, Domain::kTokens, true);
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(groups.head_dim)));
  Node node;
  node.writes = y;
  node.reads_state = true;
  node.step = std::make_unique<AttentionStep>(state, y, groups, scale);
  graph.Add(std::move(node));
  return y;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_ATTENTION_H_
