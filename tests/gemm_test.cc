// Packed linear layers against plain double-precision sums, and the row rule: the bits of an output
// row do not depend on how many rows run with it. A process per ISA, since oneDNN has one.
#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "engine/parallel.h"
#include "kernels/aligned.h"
#include "tests/isa_child.h"

namespace attend {
namespace {

struct GemmShape {
  int64_t n, k, panel_width;
};

// MiniLM's, BERT-base's, heads, and sizes that fit nothing.
constexpr GemmShape kGemmShapes[] = {
    {1152, 384, 192}, {384, 384, 0}, {1536, 384, 0}, {384, 1536, 0}, {768, 3072, 0}, {17, 384, 0},
    {3, 384, 0},      {1, 64, 0},    {100, 52, 0},   {130, 7, 0},    {36, 12, 36},   {63, 33, 21}};

struct Layer {
  std::vector<float> w, bias;
  std::shared_ptr<const LinearKernel> kernel;
  std::shared_ptr<const PackedLinear> packed;
  std::unique_ptr<LinearRunner> runner;
};

Layer MakeLayer(const GemmShape& shape) {
  Layer layer;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  layer.w.resize(shape.n * shape.k);
  layer.bias.resize(shape.n);
  for (float& value : layer.w) value = normal(random);
  for (float& value : layer.bias) value = normal(random);
  Result<std::shared_ptr<const LinearKernel>> kernel =
      LinearKernel::Create(shape.n, shape.k, CutPanels(shape.n, shape.k, shape.panel_width));
  EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
  layer.kernel = *kernel;
  const auto fill = [&](int64_t begin, int64_t columns, float* out) {
    std::copy_n(layer.w.begin() + begin * shape.k, columns * shape.k, out);
  };
  Result<std::shared_ptr<const PackedLinear>> packed =
      PackedLinear::Pack(*layer.kernel, fill, layer.bias);
  EXPECT_TRUE(packed.ok()) << packed.status().ToString();
  layer.packed = *packed;
  layer.runner = std::move(*LinearRunner::Create(layer.kernel));
  return layer;
}

// C [rows, N] by panels.
std::vector<float> Run(const Layer& layer, const std::vector<float>& a, int64_t rows) {
  const int64_t n = layer.kernel->n(), k = layer.kernel->k();
  const Panels& panels = layer.kernel->panels();
  AlignedFloats padded(static_cast<size_t>(PaddedRows(rows) * k));
  AlignedFloats panel_out(static_cast<size_t>(PaddedRows(rows) * panels.width));
  std::copy_n(a.begin(), rows * k, padded.data());
  std::fill(padded.data() + rows * k, padded.data() + padded.size(), NAN);  // means nothing
  std::vector<float> c(rows * n);
  for (int64_t panel = 0; panel < panels.count; ++panel) {
    layer.runner->RunPanel(*layer.packed, panel, rows, padded.data(), panel_out.data());
    const int64_t columns = panels.columns(panel);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(panel_out.data() + r * columns, columns, c.data() + r * n + panels.begin(panel));
    }
  }
  return c;
}

void CheckShape(const GemmShape& shape) {
  const Layer layer = MakeLayer(shape);
  constexpr int64_t kRows = 130;
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  std::vector<float> a(kRows * shape.k);
  for (float& value : a) value = normal(random);

  // Against the twin: the error of a sum of K products grows with their sizes, not with the sum.
  const std::vector<float> all = Run(layer, a, kRows);
  for (int64_t r = 0; r < kRows; r += 13) {
    for (int64_t c = 0; c < shape.n; ++c) {
      double sum = layer.bias[c], sizes = std::abs(sum);
      for (int64_t i = 0; i < shape.k; ++i) {
        const double product = static_cast<double>(a[r * shape.k + i]) * layer.w[c * shape.k + i];
        sum += product;
        sizes += std::abs(product);
      }
      ASSERT_NEAR(all[r * shape.n + c], sum, 1e-6 * sizes)
          << "row " << r << " column " << c << " of " << shape.n << " x " << shape.k;
    }
  }
#ifndef ATTEND_GEMM_FREE_ROWS
  for (const int64_t rows :
       {1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 48, 56, 63, 64, 65, 100, 129}) {
    for (const int64_t first : {int64_t{0}, int64_t{kRows - rows}}) {
      const std::vector<float> part(a.begin() + first * shape.k,
                                    a.begin() + (first + rows) * shape.k);
      const std::vector<float> c = Run(layer, part, rows);
      ASSERT_EQ(std::memcmp(c.data(), all.data() + first * shape.n, c.size() * sizeof(float)), 0)
          << rows << " rows from " << first << ", " << shape.n << " x " << shape.k;
    }
  }
#endif
}

TEST(Gemm, OneIsa) {
  if (testing::ChildIsa() == nullptr) GTEST_SKIP() << "run by Gemm.EveryIsa, a process per ISA";
  const OneOpenMpThread guard;
  for (const GemmShape& shape : kGemmShapes) CheckShape(shape);
  if (BoundIsa() < Isa::kAvx512) return;
  UseOneDnnForTest();  // on a CPU where our own is chosen
  for (const GemmShape& shape : kGemmShapes) CheckShape(shape);
}

TEST(Gemm, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) testing::ExpectChildPasses(isa, "Gemm.OneIsa");
}

TEST(Gemm, PanelsCoverTheColumns) {
  for (const GemmShape& shape : kGemmShapes) {
    const Panels panels = CutPanels(shape.n, shape.k, shape.panel_width);
    int64_t columns = 0;
    for (int64_t panel = 0; panel < panels.count; ++panel) {
      EXPECT_EQ(panels.begin(panel), columns);
      EXPECT_GT(panels.columns(panel), 0);
      columns += panels.columns(panel);
    }
    EXPECT_EQ(columns, shape.n);
  }
}

}  // namespace
}  // namespace attend
