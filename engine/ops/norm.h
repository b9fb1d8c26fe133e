// Layer normalisation of a value.
#ifndef ATTEND_ENGINE_OPS_NORM_H_
#define ATTEND_ENGINE_OPS_NORM_H_

#include <span>
#include <string>

#include "engine/graph.h"
#include "kernels/layer_norm.h"

namespace attend::ops {

class NormStep final : public Step {
 public:
  NormStep(NormType type, Value x, Value y, std::span<const float> weight,
           std::span<const float> bias, float eps)
      : type_(type),
        x_(x),
        y_(y),
        weight_(weight),
        bias_(bias),
        eps_(eps),
        norm_(type == NormType::kRmsNorm ? BindRmsNorm() : BindLayerNorm()) {}

  void Run(const StepContext& context) const override {
    const int64_t width = context.width(x_);
    norm_({.x = context.Read(x_),
           .weight = weight_.empty() ? nullptr : weight_.data(),
           .bias = bias_.empty() ? nullptr : bias_.data(),
           .out = context.Tile(y_),
           .rows = context.rows,
           .width = width,
           .ldx = width,
           .ld_out = width,
           .eps = eps_});
    context.Keep(y_, 0, width);
  }

  std::string Describe() const override {
    return type_ == NormType::kRmsNorm ? "rms norm" : "layer norm";
  }

 private:
  NormType type_;
  Value x_, y_;
  std::span<const float> weight_, bias_;
  float eps_;
  NormFn norm_;
};

// Adds the norm NAME.{weight,bias} of the config's type.
inline Result<Value> AddNorm(Graph& graph, Value x, const std::string& name) {
  Result<std::span<const float>> weight = graph.weights().GetVector(name + ".weight");
  if (!weight.ok()) return weight.status();
  Result<std::span<const float>> bias = graph.weights().GetVector(name + ".bias");
  if (!bias.ok()) return bias.status();
  const ModelConfig& config = graph.config();
  const ValueInfo& info = graph.values()[x.id];
  const Domain domain = info.domain;
  const Value y = graph.NewValue(name, info.width, domain, false);
  Node node;
  node.reads = {x};
  node.writes = y;
  node.domain = domain;
  node.step = std::make_unique<NormStep>(config.norm_type, x, y, *weight, *bias,
                                         static_cast<float>(config.norm_eps));
  graph.Add(std::move(node));
  return y;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_NORM_H_
