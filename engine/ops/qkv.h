// Queries, keys and values by one GEMM, handed over as attention reads them: dense Q, packed K and
// V. Of cross-attention the queries alone, and, of what they look at, keys and values alone.
//
// The rows of W are ordered so that a panel holds whole heads: the queries of some key/value heads,
// their keys and their values. A thread that owns a panel owns those heads, and needs nobody's
// columns to attend with them.
#ifndef ATTEND_ENGINE_OPS_QKV_H_
#define ATTEND_ENGINE_OPS_QKV_H_

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph.h"
#include "engine/ops/linear.h"
#include "engine/ops/rotary.h"
#include "kernels/attention.h"
#include "kernels/layer_norm.h"

namespace attend::ops {

// How the heads of an attention are grouped: group g is kv heads [g * size, (g + 1) * size).
struct HeadGroups {
  int64_t heads = 0, kv_heads = 0;     // H, G
  int64_t key_dim = 0, value_dim = 0;  // A, E
  int64_t size = 1;                    // kv heads a group
  bool pairs = false;                  // of keys and values: see AttentionSpec
  int64_t queries_per_kv() const { return heads / kv_heads; }
  int64_t count() const { return kv_heads / size; }
  int64_t query_columns() const { return size * queries_per_kv() * key_dim; }
  int64_t key_columns() const { return size * key_dim; }
  int64_t value_columns() const { return size * value_dim; }
  int64_t columns() const { return query_columns() + key_columns() + value_columns(); }
  // Floats that a row takes at most where all groups are packed.
  int64_t packed_key_columns() const { return PackedKeyFloats(1, kv_heads, key_dim, pairs); }
  int64_t packed_value_columns() const {
    return (PackedValueFloats(kKeyBlock, kv_heads, value_dim, pairs) + kKeyBlock - 1) / kKeyBlock;
  }
};

// The largest group whose panel is at most 192 columns wide (the width at which a call's overhead
// stops to matter), or one kv head.
inline HeadGroups GroupHeads(const AttentionSpec& spec) {
  HeadGroups groups{.heads = spec.heads,
                    .kv_heads = spec.kv_heads,
                    .key_dim = spec.key_dim,
                    .value_dim = spec.value_dim,
                    .pairs = spec.pairs};
  for (int64_t size = spec.kv_heads; size >= 1; --size) {
    groups.size = size;
    if (spec.kv_heads % size == 0 && groups.columns() <= 192) return groups;
  }
  groups.size = 1;
  return groups;
}

// What is done to the queries and keys of each head before attention reads them, in this order.
struct HeadTransform {
  std::span<const float> q_norm, k_norm;  // [A]: root-mean-square norms with these weights; or none
  float norm_eps = 0;
  const float* rotary = nullptr;  // the table of FillRotaryTable, all A columns; or none

  bool any() const { return !q_norm.empty() || !k_norm.empty() || rotary != nullptr; }
};

// Which of queries, keys and values a step makes, and where the keys and values go.
struct Projections {
  Memory memory = Memory::kBatch;
  bool queries = true;
  bool keys = true;  // and values
};

class QkvStep final : public Step {
 public:
  QkvStep(Linear linear, int kernel, Value x, int state, HeadGroups groups, Projections projections,
          HeadTransform transform)
      : linear_(std::move(linear)),
        kernel_(kernel),
        x_(x),
        state_(state),
        groups_(groups),
        projections_(projections),
        transform_(transform),
        norm_(BindRmsNorm()),
        rotary_(BindRotary()),
        pack_(BindPackKv()) {}

  void Run(const StepContext& context) const override {
    const float* const x =
        linear_.kernel->Prepare(context.rows, context.ReadPadded(x_), context.prepared);
    for (int64_t group = context.PartBegin(groups_.count());
         group < context.PartEnd(groups_.count()); ++group) {
      context.runners[kernel_]->RunPanel(*linear_.weights, group, context.rows, x, context.panel);
      if (transform_.any()) TransformHeads(context);
      if (projections_.queries) StoreQueries(context, group);
      if (projections_.keys) PackKeysAndValues(context, group);
    }
  }

  std::string Describe() const override {
    const char* what = !projections_.keys      ? "queries "
                       : !projections_.queries ? "keys and values "
                                               : "qkv ";
    return what + std::to_string(linear_.kernel->k()) + " -> " +
           std::to_string(linear_.kernel->n()) + ", " + std::to_string(groups_.count()) +
           " head groups, " + (transform_.q_norm.empty() ? "" : "norms of heads, ") +
           (transform_.rotary == nullptr ? "" : "rotary, ") + linear_.kernel->implementation();
  }

  StepCost cost() const override { return LinearCost(linear_); }
  WorkKind kind() const override { return WorkKind::kLinear; }

 private:
  int64_t query_columns() const { return projections_.queries ? groups_.query_columns() : 0; }
  // Of the panel.
  int64_t columns() const {
    return query_columns() +
           (projections_.keys ? groups_.key_columns() + groups_.value_columns() : 0);
  }

  // Queries and keys in the panel; the heads of a row stand side by side.
  void TransformHeads(const StepContext& context) const {
    const int64_t query_heads = query_columns() / groups_.key_dim;
    const int64_t key_heads = projections_.keys ? groups_.size : 0;
    const int64_t ld = columns();
    for (int64_t r = 0; r < context.rows; ++r) {
      NormHeads(context.panel + r * ld, query_heads, transform_.q_norm);
      NormHeads(context.panel + r * ld + query_columns(), key_heads, transform_.k_norm);
    }
    if (transform_.rotary == nullptr) return;
    rotary_({.x = context.panel,
             .positions = context.batch->positions + context.row_begin,
             .table = transform_.rotary,
             .rows = context.rows,
             .ldx = ld,
             .heads = query_heads + key_heads,
             .head_dim = groups_.key_dim,
             .dims = groups_.key_dim});
  }

  void NormHeads(float* x, int64_t heads, std::span<const float> weight) const {
    if (weight.empty() || heads == 0) return;
    norm_({.x = x,
           .weight = weight.data(),
           .out = x,
           .rows = heads,
           .width = groups_.key_dim,
           .ldx = groups_.key_dim,
           .ld_out = groups_.key_dim,
           .eps = transform_.norm_eps});
  }

  void StoreQueries(const StepContext& context, int64_t group) const {
    const int64_t ld = groups_.heads * groups_.key_dim, columns = groups_.query_columns();
    float* q = context.states[state_].q + context.row_begin * ld + group * columns;
    for (int64_t r = 0; r < context.rows; ++r) {
      std::memcpy(q + r * ld, context.panel + r * this->columns(),
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
      const SequenceKeys& place = batch.keys[static_cast<int>(projections_.memory)][sequence];
      const float* k = context.panel + (row - context.row_begin) * columns() + query_columns();
      pack_({.k = k,
             .v = k + groups_.key_columns(),
             .packed_k =
                 context.states[state_].k +
                 PackedKeyFloats(place.first_row, groups_.kv_heads, groups_.key_dim, groups_.pairs),
             .packed_v =
                 context.states[state_].v + PackedValueFloats(place.first_row, groups_.kv_heads,
                                                              groups_.value_dim, groups_.pairs),
             .blocks = place.blocks,
             .rows = end - row,
             .position = batch.positions[row],
             .ldk = columns(),
             .ldv = columns(),
             .kv_heads = groups_.kv_heads,
             .key_dim = groups_.key_dim,
             .value_dim = groups_.value_dim,
             .head_begin = group * groups_.size,
             .head_end = (group + 1) * groups_.size,
             .pairs = groups_.pairs});
      row = end;
    }
  }

  Linear linear_;
  int kernel_;
  Value x_;
  int state_;
  HeadGroups groups_;
  Projections projections_;
  HeadTransform transform_;
  NormFn norm_;
  RotaryFn rotary_;
  PackKvFn pack_;
};

// The norms NAME.{q,k}_norm.weight, if the file has them, and rotary positions, if the config does.
inline Result<HeadTransform> GetHeadTransform(Graph& graph, const std::string& name) {
  HeadTransform transform;
  const Result<std::span<const float>> q_norm = graph.weights().GetVector(name + ".q_norm.weight");
  if (!q_norm.ok()) return q_norm.status();
  const Result<std::span<const float>> k_norm = graph.weights().GetVector(name + ".k_norm.weight");
  if (!k_norm.ok()) return k_norm.status();
  transform.q_norm = *q_norm;
  transform.k_norm = *k_norm;
  transform.norm_eps = static_cast<float>(graph.config().norm_eps);
  transform.rotary = RotaryTable(graph);
  return transform;
}

// Adds the projections of x that are asked for, of NAME.{q,k,v} or with additive scores
// NAME.{qa,ka,v}; returns the attention state they fill. Of a source, nothing is done to heads.
inline Result<int> AddQkv(Graph& graph, Value x, const std::string& name, const HeadGroups& groups,
                          const Projections& projections = {}) {
  const bool additive = graph.config().score == Score::kAdditive;
  const std::string q = name + (additive ? ".qa" : ".q"), k = name + (additive ? ".ka" : ".k");
  std::vector<RowBlock> blocks;
  for (int64_t group = 0; group < groups.count(); ++group) {
    if (projections.queries) {
      blocks.push_back({q, group * groups.query_columns(), groups.query_columns()});
    }
    if (!projections.keys) continue;
    blocks.push_back({k, group * groups.key_columns(), groups.key_columns()});
    blocks.push_back({name + ".v", group * groups.value_columns(), groups.value_columns()});
  }
  int64_t columns = projections.queries ? groups.query_columns() : 0;
  if (projections.keys) columns += groups.key_columns() + groups.value_columns();
  Result<Linear> linear = graph.GetLinear(blocks, columns);
  if (!linear.ok()) return linear.status();
  Result<HeadTransform> transform = HeadTransform();
  if (projections.memory != Memory::kSource) transform = GetHeadTransform(graph, name);
  if (!transform.ok()) return transform.status();
  const int state = graph.NextState({.memory = projections.memory,
                                     .query_columns = groups.heads * groups.key_dim,
                                     .key_columns = groups.packed_key_columns(),
                                     .value_columns = groups.packed_value_columns()});
  Node node;
  node.reads = {x};
  const int kernel = graph.UseKernel(linear->kernel);
  node.step = std::make_unique<QkvStep>(std::move(*linear), kernel, x, state, groups, projections,
                                        *transform);
  graph.Add(std::move(node));
  return state;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_QKV_H_
