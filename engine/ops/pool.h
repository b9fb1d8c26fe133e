// One row for every sequence, out of the rows of its tokens.
#ifndef ATTEND_ENGINE_OPS_POOL_H_
#define ATTEND_ENGINE_OPS_POOL_H_

#include <cstring>
#include <string>

#include "engine/graph.h"
#include "kernels/pool.h"

namespace attend::ops {

class PoolStep final : public Step {
 public:
  PoolStep(Pooling pooling, Value x, Value y)
      : pooling_(pooling),
        x_(x),
        y_(y),
        pool_(pooling == Pooling::kMax ? BindPoolMax() : BindPoolMean()) {}

  void Run(const StepContext& context) const override {
    const BatchView& batch = *context.batch;
    const ValueInfo& info = context.values[x_.id];
    float* const y = context.Tile(y_);
    for (int64_t r = 0; r < context.rows; ++r) {
      const int64_t sequence = context.row_begin + r;
      const int64_t begin = batch.offsets[sequence], end = batch.offsets[sequence + 1];
      const float* x = context.arena + info.arena + begin * info.width;
      float* out = y + r * info.width;
      if (pooling_ == Pooling::kFirst || pooling_ == Pooling::kLast) {
        if (pooling_ == Pooling::kLast) x += (end - begin - 1) * info.width;
        std::memcpy(out, x, static_cast<size_t>(info.width) * sizeof(float));
      } else {
        pool_({.x = x, .out = out, .rows = end - begin, .width = info.width, .ldx = info.width});
      }
    }
    context.Keep(y_, 0, info.width);
  }

  std::string Describe() const override { return std::string("pool, ") + Name(pooling_); }
  WorkKind kind() const override { return WorkKind::kPooling; }

 private:
  Pooling pooling_;
  Value x_, y_;
  PoolFn pool_;
};

inline Value AddPool(Graph& graph, Value x, Pooling pooling) {
  const Value y = graph.NewValue("pooled", graph.values()[x.id].width, Domain::kSequences, false);
  Node node;
  node.reads = {x};
  node.writes = y;
  node.domain = Domain::kSequences;
  node.reads_sequence = true;
  node.step = std::make_unique<PoolStep>(pooling, x, y);
  graph.Add(std::move(node));
  return y;
}

// Divides every row by its Euclidean length.
class NormalizeStep final : public Step {
 public:
  NormalizeStep(Value x, Value y) : x_(x), y_(y), normalize_(BindNormalize()) {}

  void Run(const StepContext& context) const override {
    const int64_t width = context.width(x_);
    float* const y = context.Tile(y_);
    std::memcpy(y, context.Read(x_), static_cast<size_t>(context.rows * width) * sizeof(float));
    normalize_({.x = y, .rows = context.rows, .width = width, .ldx = width});
    context.Keep(y_, 0, width);
  }

  std::string Describe() const override { return "normalize"; }
  WorkKind kind() const override { return WorkKind::kPooling; }

 private:
  Value x_, y_;
  NormalizeFn normalize_;
};

inline Value AddNormalize(Graph& graph, Value x) {
  const ValueInfo info = graph.values()[x.id];
  const Value y = graph.NewValue("normalized", info.width, info.domain, false);
  Node node;
  node.reads = {x};
  node.writes = y;
  node.domain = info.domain;
  node.step = std::make_unique<NormalizeStep>(x, y);
  graph.Add(std::move(node));
  return y;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_POOL_H_
