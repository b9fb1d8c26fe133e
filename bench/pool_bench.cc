// Pooling over the rows of a sequence, and normalising. ATTEND_ISA=NAME chooses the ISA.
#include <string>

#include "bench/bench.h"
#include "kernels/pool.h"
#include "tests/cases.h"

namespace attend {
namespace {

void BM_Pool(benchmark::State& state, PoolFn (*bind)(), const cases::RowCase& c) {
  if (!bench::BindIsa(state)) return;
  bench::Floats x(c.rows * c.width), out(c.width);
  const PoolArgs args{x.data(), out.data(), c.rows, c.width, c.width};
  const PoolFn pool = bind();
  for (auto _ : state) {
    pool(args);
    benchmark::ClobberMemory();
  }
  bench::CountBytes(state, 4.0 * static_cast<double>(c.rows * c.width));
}

void BM_Normalize(benchmark::State& state, const cases::RowCase& c) {
  if (!bench::BindIsa(state)) return;
  bench::Floats x(c.rows * c.width);
  const NormalizeFn normalize = BindNormalize();
  for (auto _ : state) {
    normalize({x.data(), c.rows, c.width, c.width});
    benchmark::ClobberMemory();
  }
  bench::CountBytes(state, 8.0 * static_cast<double>(c.rows * c.width));
}

const int kRegistered = [] {
  for (const cases::RowCase& c : cases::kRowBench) {
    const std::string name = "/R:" + std::to_string(c.rows) + "/D:" + std::to_string(c.width);
    benchmark::RegisterBenchmark(("pool_mean" + name).c_str(), BM_Pool, BindPoolMean, c);
    benchmark::RegisterBenchmark(("pool_max" + name).c_str(), BM_Pool, BindPoolMax, c);
    benchmark::RegisterBenchmark(("normalize" + name).c_str(), BM_Normalize, c);
  }
  return 0;
}();

}  // namespace
}  // namespace attend
