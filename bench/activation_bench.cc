// Activation functions in place. ATTEND_ISA=NAME chooses the ISA. `values` is elements a second.
#include <string>

#include "bench/bench.h"
#include "kernels/activation.h"
#include "tests/cases.h"

namespace attend {
namespace {

void BM_Activation(benchmark::State& state, ActivationFn (*bind)(), const cases::RowCase& c) {
  if (!bench::BindIsa(state)) return;
  bench::Floats x(c.rows * c.width), bias(c.width);
  // In place again and again the values drift, but no function here has a path that depends on
  // them, and the bias keeps them from becoming denormals.
  const ActivationArgs args{.x = x.data(),
                            .bias = bias.data(),
                            .out = x.data(),
                            .rows = c.rows,
                            .width = c.width,
                            .ldx = c.width,
                            .ld_out = c.width};
  const ActivationFn activate = bind();
  for (auto _ : state) {
    activate(args);
    benchmark::ClobberMemory();
  }
  const double values = static_cast<double>(c.rows * c.width);
  bench::CountBytes(state, 8.0 * values);
  state.counters["values"] =
      benchmark::Counter(values, benchmark::Counter::kIsIterationInvariantRate);
}

const int kRegistered = [] {
  const struct {
    const char* name;
    ActivationFn (*bind)();
  } functions[] = {{"gelu", BindGelu},          {"rough_gelu", BindRoughGelu},
                   {"gelu_tanh", BindGeluTanh}, {"relu", BindRelu},
                   {"silu", BindSilu},          {"tanh", BindTanh}};
  for (const auto& f : functions) {
    for (const cases::RowCase& c : cases::kRowBench) {
      const std::string name =
          std::string(f.name) + "/R:" + std::to_string(c.rows) + "/D:" + std::to_string(c.width);
      benchmark::RegisterBenchmark(name.c_str(), BM_Activation, f.bind, c);
    }
  }
  return 0;
}();

}  // namespace
}  // namespace attend
