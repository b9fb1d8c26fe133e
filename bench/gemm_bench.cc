// Packed linear layers of MiniLM in every precision, one core. ATTEND_ISA=NAME chooses the ISA.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.h"
#include "engine/parallel.h"
#include "kernels/gemm.h"

namespace attend {
namespace {

struct GemmCase {
  const char* name;
  int64_t n, k, panel_width;
};

// Queries, keys and values are one layer whose panels hold whole heads.
constexpr GemmCase kCases[] = {{"qkv", 1152, 384, 192},
                               {"attention.o", 384, 384, 0},
                               {"ffn.up", 1536, 384, 0},
                               {"ffn.down", 384, 1536, 0}};
constexpr int64_t kRows[] = {1, 2, 4, 8, 16, 64};

struct TypeName {
  GemmType type;
  const char* name;
};
constexpr TypeName kTypes[] = {
    {GemmType::kF32, "f32"}, {GemmType::kBf16, "bf16"}, {GemmType::kInt8, "int8"}};

// 2 N K FLOPs a row; the rows that the row rule adds, and rounding or quantising the rows before,
// count as time, not as work.
void BM_Gemm(benchmark::State& state, const GemmCase& c, GemmType type, int64_t rows) {
  if (!bench::BindIsa(state)) return;
  const OneOpenMpThread guard;  // as in the engine: attend's threads call it, it starts none
  const auto kernel = LinearKernel::Create(c.n, c.k, CutPanels(c.n, c.k, c.panel_width), type);
  if (!kernel.ok()) return state.SkipWithError(kernel.status().ToString().c_str());
  bench::Floats w(c.n * c.k), bias(c.n);
  const auto fill = [&](int64_t begin, int64_t columns, float* out) {
    std::copy_n(w.data() + begin * c.k, columns * c.k, out);
  };
  const auto packed = PackedLinear::Pack(**kernel, fill, {bias.data(), static_cast<size_t>(c.n)});
  if (!packed.ok()) return state.SkipWithError(packed.status().ToString().c_str());
  auto runner = LinearRunner::Create(*kernel);
  if (!runner.ok()) return state.SkipWithError(runner.status().ToString().c_str());
  const Panels& panels = (*kernel)->panels();
  bench::Floats a(PaddedRows(rows) * c.k), out(PaddedRows(rows) * panels.width);
  bench::Floats prepared(rows * (*kernel)->prepared_floats() + 1);
  for (auto _ : state) {
    const float* const ready = (*kernel)->Prepare(rows, a.data(), prepared.data());
    for (int64_t panel = 0; panel < panels.count; ++panel) {
      (*runner)->RunPanel(**packed, panel, rows, ready, out.data());
    }
    benchmark::ClobberMemory();
  }
  bench::CountFlops(state, 2.0 * static_cast<double>(rows * c.n * c.k));
}

const bool kRegistered = [] {
  for (const GemmCase& c : kCases) {
    for (const int64_t rows : kRows) {
      for (const TypeName& type : kTypes) {
        const std::string name = std::string("gemm/") + type.name + "/" + c.name +
                                 "/N:" + std::to_string(c.n) + "/K:" + std::to_string(c.k) +
                                 "/R:" + std::to_string(rows);
        benchmark::RegisterBenchmark(name.c_str(), BM_Gemm, c, type.type, rows);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace attend
