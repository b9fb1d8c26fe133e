// Queries, keys and values by one GEMM, handed over as attention reads them: dense Q, packed K and
// V.
//
// The rows of W are ordered so that a panel holds whole heads: the queries of some key/value heads,
// their keys and their values. A thread that owns a panel owns those heads, and needs nobody's
// columns to attend with them.
#ifndef ATTEND_ENGINE_OPS_QKV_H_
#define ATTEND_ENGINE_OPS_QKV_H_

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph.h"
#include "kernels/attention.h"

namespace attend::ops {

// How the heads of an attention are grouped: group g is kv heads [g * size, (g + 1) * size).
struct HeadGroups {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // H, G, E
  int64_t size = 1;                               // kv heads a group
  int64_t queries_per_kv() const { return heads / kv_heads; }
  int64_t count() const { return kv_heads / size; }
  int64_t query_columns() const { return size * queries_per_kv() * head_dim; }
  int64_t kv_columns() const { return size * head_dim; }
  int64_t columns() const { return query_columns() + 2 * kv_columns(); }
};

// The largest group whose panel is at most 192 columns wide (the width at which a call's overhead
// stops to matter), or one kv head.
inline HeadGroups GroupHeads(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  HeadGroups groups{.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim};
  for (int64_t size = kv_heads; size >= 1; --size) {
    groups.size = size;
    if (kv_heads % size == 0 && groups.columns() <= 192) return groups;
  }
  groups.size = 1;
  return groups;
}

class QkvStep final : public Step {
 public:
  QkvStep(Linear linear, int kernel, Value x, int state, HeadGroups groups)
      : linear_(std::move(linear)),
        kernel_(kernel),
        x_(x),
        state_(state),
        groups_(groups),
        pack_(BindPackKv()) {}

  void Run(const StepContext& context) const override {
    const float* x = context.ReadPadded(x_);
    for (int64_t group = context.PartBegin(groups_.count());
         group < context.PartEnd(groups_.count()); ++group) {
      context.runners[kernel_]->RunPanel(*linear_.weights, group, context.rows, x, context.panel);
      StoreQueries(context, group);
      PackKeysAndValues(context, group);
    }
  }

  std::string Describe() const override {
    return "qkv " + std::to_string(linear_.kernel->k()) + " -> " +
           std::to_string(linear_.kernel->n()) + ", " + std::to_string(groups_.count()) +
           " head groups, " + linear_.kernel->implementation();
  }

  StepCost cost() const override {
    return {.flops_per_row = 2.0 * static_cast<double>(linear_.kernel->n() * linear_.kernel->k()),
            .weight_bytes = static_cast<double>(linear_.weights->bytes())};
  }

 private:
  void StoreQueries(const StepContext& context, int64_t group) const {
    const int64_t ld = groups_.heads * groups_.head_dim, columns = groups_.query_columns();
    float* q = context.states[state_].q + context.row_begin * ld + group * columns;
    for (int64_t r = 0; r < context.rows; ++r) {
      std::memcpy(q + r * ld, context.panel + r * groups_.columns(),
                  static_cast<size_t>(columns) * sizeof(float));
    }
  }

  // The tile's rows, sequence by sequence.
  void PackKeysAndValues(const StepContext& context, int64_t group) const {
    const BatchView& batch = *context.batch;
    const int64_t row_end = context.row_begin + context.rows;
    for (int64_t row = context.row_begin; row < row_end;) {
      const int32_t sequence = batch.sequence_of[row];
      const int64_t end = std::min<int64_t>(row_end, batch.offsets[sequence + 1]);
      const int64_t block_floats = groups_.kv_heads * groups_.head_dim;
      const float* k =
          context.panel + (row - context.row_begin) * groups_.columns() + groups_.query_columns();
      pack_({.k = k,
             .v = k + groups_.kv_columns(),
             .packed_k = context.states[state_].k + batch.key_rows[sequence] * block_floats,
             .packed_v = context.states[state_].v + batch.key_rows[sequence] * block_floats,
             .rows = end - row,
             .position = batch.positions[row],
             .ldk = groups_.columns(),
             .ldv = groups_.columns(),
             .kv_heads = groups_.kv_heads,
             .key_dim = groups_.head_dim,
             .value_dim = groups_.head_dim,
             .head_begin = group * groups_.size,
             .head_end = (group + 1) * groups_.size});
      row = end;
    }
  }

  Linear linear_;
  int kernel_;
  Value x_;
  int state_;
  HeadGroups groups_;
  PackKvFn pack_;
};

// Adds the projections NAME.{q,k,v} of x; returns the attention state they fill.
inline Result<int> AddQkv(Graph& graph, Value x, const std::string& name,
                          const HeadGroups& groups) {
  std::vector<RowBlock> blocks;
  for (int64_t group = 0; group < groups.count(); ++group) {
    blocks.push_back({name + ".q", group * groups.query_columns(), groups.query_columns()});
    blocks.push_back({name + ".k", group * groups.kv_columns(), groups.kv_columns()});
    blocks.push_back({name + ".v", group * groups.kv_columns(), groups.kv_columns()});
  }
  Result<Linear> linear = graph.weights().GetLinear(blocks, groups.columns());
  if (!linear.ok()) return linear.status();
  const int state = graph.NextState();
  Node node;
  node.reads = {x};
  const int kernel = graph.UseKernel(linear->kernel);
  node.step = std::make_unique<QkvStep>(std::move(*linear), kernel, x, state, groups);
  graph.Add(std::move(node));
  return state;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_QKV_H_
