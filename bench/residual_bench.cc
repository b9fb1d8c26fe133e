// Sums of rows. ATTEND_ISA=NAME chooses the ISA.
#include <string>

#include "bench/bench.h"
#include "kernels/residual.h"
#include "tests/cases.h"

namespace attend {
namespace {

void BM_Residual(benchmark::State& state, const cases::RowCase& c) {
  if (!bench::BindIsa(state)) return;
  bench::Floats x(c.rows * c.width), r(c.rows * c.width), out(c.rows * c.width);
  const ResidualArgs args{x.data(), r.data(), out.data(), c.rows,
                          c.width,  c.width,  c.width,    c.width};
  const ResidualFn residual = BindResidual();
  for (auto _ : state) {
    residual(args);
    benchmark::ClobberMemory();
  }
  bench::CountBytes(state, 12.0 * static_cast<double>(c.rows * c.width));
}

const int kRegistered = [] {
  for (const cases::RowCase& c : cases::kRowBench) {
    const std::string name = "/R:" + std::to_string(c.rows) + "/D:" + std::to_string(c.width);
    benchmark::RegisterBenchmark(("residual" + name).c_str(), BM_Residual, c);
  }
  return 0;
}();

}  // namespace
}  // namespace attend
