// Softmax of rows, in place. ATTEND_ISA=NAME chooses the ISA.
#include <string>

#include "bench/bench.h"
#include "kernels/softmax.h"
#include "tests/cases.h"

namespace attend {
namespace {

void BM_Softmax(benchmark::State& state, const cases::RowCase& c) {
  if (!bench::BindIsa(state)) return;
  bench::Floats x(c.rows * c.width);
  const SoftmaxFn softmax = BindSoftmax();
  for (auto _ : state) {
    softmax({x.data(), c.rows, c.width, c.width});
    benchmark::ClobberMemory();
  }
  bench::CountBytes(state, 8.0 * static_cast<double>(c.rows * c.width));
}

const int kRegistered = [] {
  for (const cases::RowCase& c : cases::kRowBench) {
    const std::string name = "/R:" + std::to_string(c.rows) + "/C:" + std::to_string(c.width);
    benchmark::RegisterBenchmark(("softmax" + name).c_str(), BM_Softmax, c);
  }
  return 0;
}();

}  // namespace
}  // namespace attend
