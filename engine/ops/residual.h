// The sum of two values, where no linear layer is there to add it on the way.
#ifndef ATTEND_ENGINE_OPS_RESIDUAL_H_
#define ATTEND_ENGINE_OPS_RESIDUAL_H_

#include <string>

#include "engine/graph.h"
#include "kernels/residual.h"

namespace attend::ops {

class ResidualStep final : public Step {
 public:
  ResidualStep(Value x, Value residual, Value y)
      : x_(x), residual_value_(residual), y_(y), residual_(BindResidual()) {}

  void Run(const StepContext& context) const override {
    const int64_t width = context.width(y_);
    residual_({.x = context.Read(x_),
               .residual = context.Read(residual_value_),
               .out = context.Tile(y_),
               .rows = context.rows,
               .width = width,
               .ldx = width,
               .ld_residual = width,
               .ld_out = width});
    context.Keep(y_, 0, width);
  }

  std::string Describe() const override { return "+ residual"; }

 private:
  Value x_, residual_value_, y_;
  ResidualFn residual_;
};

// Adds y = x + residual; both of one width and domain.
inline Value AddResidual(Graph& graph, Value x, Value residual) {
  const ValueInfo& info = graph.values()[x.id];
  const Domain domain = info.domain;
  const Value y = graph.NewValue("sum", info.width, domain, false);
  Node node;
  node.reads = {x, residual};
  node.writes = y;
  node.domain = domain;
  node.step = std::make_unique<ResidualStep>(x, residual, y);
  graph.Add(std::move(node));
  return y;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_RESIDUAL_H_
