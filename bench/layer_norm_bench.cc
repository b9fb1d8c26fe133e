// Layer norm after a residual sum. ATTEND_ISA=NAME chooses the ISA.
#include <string>

#include "bench/bench.h"
#include "kernels/layer_norm.h"
#include "tests/cases.h"

namespace attend {
namespace {

void BM_Norm(benchmark::State& state, NormFn (*bind)(), const cases::RowCase& c) {
  if (!bench::BindIsa(state)) return;
  bench::Floats x(c.rows * c.width), r(c.rows * c.width), out(c.rows * c.width);
  bench::Floats weight(c.width), bias(c.width);
  NormArgs args{x.data(), r.data(), weight.data(), bias.data(), out.data(), c.rows,
                c.width,  c.width,  c.width,       c.width,     1e-12f};
  const NormFn norm = bind();
  for (auto _ : state) {
    norm(args);
    benchmark::ClobberMemory();
  }
  bench::CountBytes(state, 12.0 * static_cast<double>(c.rows * c.width));
}

const int kRegistered = [] {
  for (const cases::RowCase& c : cases::kRowBench) {
    const std::string name = "/R:" + std::to_string(c.rows) + "/D:" + std::to_string(c.width);
    benchmark::RegisterBenchmark(("layer_norm" + name).c_str(), BM_Norm, BindLayerNorm, c);
    benchmark::RegisterBenchmark(("rms_norm" + name).c_str(), BM_Norm, BindRmsNorm, c);
  }
  return 0;
}();

}  // namespace
}  // namespace attend
