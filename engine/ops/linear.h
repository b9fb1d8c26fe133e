// y = f(x W^T + b) + residual, or f(x W^T + b) up: a packed GEMM, panel by panel, and what follows
// it on the hot panel.
#ifndef ATTEND_ENGINE_OPS_LINEAR_H_
#define ATTEND_ENGINE_OPS_LINEAR_H_

#include <cstring>
#include <string>
#include <utility>

#include "engine/graph.h"
#include "kernels/activation.h"
#include "kernels/residual.h"

namespace attend::ops {

// `type`: of the layers before and after it.
inline ActivationFn BindActivation(Activation activation, GemmType type) {
  switch (activation) {
    case Activation::kGelu:
      return type == GemmType::kF32 ? BindGelu() : BindRoughGelu();
    case Activation::kGeluTanh:
      return BindGeluTanh();
    case Activation::kRelu:
      return BindRelu();
    case Activation::kSilu:
      return BindSilu();
    case Activation::kTanh:
      return BindTanh();
    default:
      return nullptr;
  }
}

inline GatedFn BindGated(Activation activation) {
  switch (activation) {
    case Activation::kGeglu:
      return BindGeglu();
    case Activation::kGegluTanh:
      return BindGegluTanh();
    case Activation::kSwiglu:
      return BindSwiglu();
    case Activation::kReglu:
      return BindReglu();
    default:
      return nullptr;
  }
}

// The rate of a GEMM beside that of f32: docs/performance.md. By tiles, what they could do there:
// no CPU with AMX has measured attend yet.
inline double RateBesideF32(GemmType type) {
  const bool tiles = BoundIsa() >= Isa::kAmx;
  switch (type) {
    case GemmType::kBf16:
      if (tiles) return 8.0;
      return BoundIsa() >= Isa::kAvx512Bf16 ? 2.0 : 1.0;
    case GemmType::kInt8:
      if (tiles) return 8.0;
      return BoundIsa() >= Isa::kAvx512Vnni ? 3.5 : 1.6;
    default:
      return 1.0;
  }
}

inline StepCost LinearCost(const Linear& linear) {
  return {.flops_per_row = 2.0 * static_cast<double>(linear.kernel->n() * linear.kernel->k()),
          .flop_rate = RateBesideF32(linear.kernel->type()),
          .weight_bytes = static_cast<double>(linear.weights->bytes())};
}

class LinearStep final : public Step {
 public:
  struct Options {
    Activation activation = Activation::kNone;
    Value residual = {};  // added to the result; id -1: none
    Value up = {};        // geglu, swiglu: what the activated result is multiplied with
    // The one reader of the result, if it is to be handed over as that reads it: prepared, by this
    // step's panels. And whether x is.
    std::shared_ptr<const LinearKernel> reader = nullptr;
    bool prepared = false;
  };

  LinearStep(Linear linear, int kernel, Value x, Value y, Options options)
      : linear_(std::move(linear)),
        kernel_(kernel),
        x_(x),
        y_(y),
        options_(options),
        activation_(BindActivation(options.activation, linear_.kernel->type())),
        gated_(BindGated(options.activation)),
        residual_(BindResidual()) {}

  void Run(const StepContext& context) const override {
    const Panels& panels = linear_.kernel->panels();
    const int64_t n = linear_.kernel->n();
    const float* const x =
        options_.prepared
            ? context.Tile(x_)
            : linear_.kernel->Prepare(context.rows, context.ReadPadded(x_), context.prepared);
    float* const y = context.Tile(y_);
    for (int64_t panel = context.PartBegin(panels.count); panel < context.PartEnd(panels.count);
         ++panel) {
      const int64_t begin = panels.begin(panel), columns = panels.columns(panel);
      context.runners[kernel_]->RunPanel(*linear_.weights, panel, context.rows, x, context.panel);
      if (options_.reader != nullptr) {
        Activate(context, begin, columns, context.panel, columns);
        options_.reader->PrepareColumns(context.rows, context.panel, columns, begin, columns, y);
        continue;
      }
      Store(context, begin, columns, y + begin, n);
      context.Keep(y_, begin, begin + columns);
    }
  }

  std::string Describe() const override {
    std::string text = "linear " + std::to_string(linear_.kernel->k()) + " -> " +
                       std::to_string(linear_.kernel->n());
    if (options_.activation != Activation::kNone) {
      text += std::string(", ") + Name(options_.activation);
    }
    if (options_.residual.id >= 0) text += ", + residual";
    return text + ", " + std::to_string(linear_.kernel->panels().count) + " panels, " +
           linear_.kernel->implementation();
  }

  StepCost cost() const override { return LinearCost(linear_); }
  WorkKind kind() const override { return WorkKind::kLinear; }

 private:
  // The panel activated, if it is to be, to `out`; false: it is as it was.
  bool Activate(const StepContext& context, int64_t begin, int64_t columns, float* out,
                int64_t ld_out) const {
    if (gated_ != nullptr) {
      gated_({.gate = context.panel,
              .up = context.Read(options_.up) + begin,
              .out = out,
              .rows = context.rows,
              .width = columns,
              .ld_gate = columns,
              .ld_up = linear_.kernel->n(),
              .ld_out = ld_out});
      return true;
    }
    if (activation_ == nullptr) return false;
    activation_({.x = context.panel,
                 .out = out,
                 .rows = context.rows,
                 .width = columns,
                 .ldx = columns,
                 .ld_out = ld_out});
    return true;
  }

  void Store(const StepContext& context, int64_t begin, int64_t columns, float* y,
             int64_t n) const {
    const bool last = options_.residual.id < 0 || gated_ != nullptr;
    if (Activate(context, begin, columns, last ? y : context.panel, last ? n : columns) && last) {
      return;
    }
    if (options_.residual.id >= 0) {
      residual_({.x = context.panel,
                 .residual = context.Read(options_.residual) + begin,
                 .out = y,
                 .rows = context.rows,
                 .width = columns,
                 .ldx = columns,
                 .ld_residual = n,
                 .ld_out = n});
      return;
    }
    for (int64_t r = 0; r < context.rows; ++r) {
      std::memcpy(y + r * n, context.panel + r * columns,
                  static_cast<size_t>(columns) * sizeof(float));
    }
  }

  Linear linear_;
  int kernel_;
  Value x_, y_;
  Options options_;
  ActivationFn activation_;
  GatedFn gated_;
  ResidualFn residual_;
};

// Adds y = f(x W^T + b) + residual, or f(x W^T + b) up of a gated activation, with the weights and
// bias of `linear`; `name` is the result's.
inline Value AddLinear(Graph& graph, Value x, const std::string& name, Linear linear,
                       LinearStep::Options options = {}) {
  const Domain domain = graph.values()[x.id].domain;
  const int64_t width =
      options.reader != nullptr ? options.reader->prepared_floats() : linear.kernel->n();
  const Value y = graph.NewValue(name, width, domain, true);
  Node node;
  node.reads = {x};
  if (options.residual.id >= 0) node.reads.push_back(options.residual);
  if (options.up.id >= 0) node.reads.push_back(options.up);
  node.writes = y;
  node.domain = domain;
  const int kernel = graph.UseKernel(linear.kernel);
  node.step = std::make_unique<LinearStep>(std::move(linear), kernel, x, y, options);
  graph.Add(std::move(node));
  return y;
}

// The same with W = `name`.weight and b = `name`.bias.
inline Result<Value> AddLinear(Graph& graph, Value x, const std::string& name,
                               LinearStep::Options options = {}) {
  Result<Linear> linear = graph.GetLinear(name);
  if (!linear.ok()) return linear.status();
  return AddLinear(graph, x, name, *std::move(linear), options);
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_LINEAR_H_
