// Packed linear layers in bf16 and int8 against plain sums that give the same bits, and the rule
// that the bits of an output row do not depend on how many rows run with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/gemm.h"
#include "kernels/gemm_highway.h"
#include "kernels/quantize.h"
#include "tests/testing.h"

namespace attend {
namespace {

struct LayerShape {
  int64_t n, k, panel_width;
};

// MiniLM's, heads, sizes that fit nothing, and K in several parts.
constexpr LayerShape kLayerShapes[] = {{192, 384, 192}, {64, 1536, 0}, {1536, 60, 0}, {70, 3001, 0},
                                       {17, 384, 0},    {3, 384, 0},   {1, 64, 0},    {100, 52, 0},
                                       {130, 7, 0},     {36, 12, 36},  {63, 33, 21},  {5, 1, 0}};
constexpr int64_t kRows = 70;

struct ExactLayer {
  LayerShape shape;
  std::vector<float> w, bias, a;
  std::shared_ptr<const LinearKernel> kernel = nullptr;
  std::shared_ptr<const PackedLinear> packed = nullptr;
};

void Pack(GemmType type, ExactLayer* layer) {
  const LayerShape& shape = layer->shape;
  auto kernel =
      LinearKernel::Create(shape.n, shape.k, CutPanels(shape.n, shape.k, shape.panel_width), type);
  ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
  layer->kernel = *kernel;
  const auto fill = [&](int64_t begin, int64_t columns, float* out) {
    std::copy_n(layer->w.begin() + begin * shape.k, columns * shape.k, out);
  };
  auto packed = PackedLinear::Pack(*layer->kernel, fill, layer->bias);
  ASSERT_TRUE(packed.ok()) << packed.status().ToString();
  layer->packed = *packed;
}

ExactLayer MakeLayer(const LayerShape& shape, GemmType type) {
  ExactLayer layer{.shape = shape,
                   .w = testing::NormalVector(shape.n * shape.k, 5),
                   .bias = testing::NormalVector(shape.n, 6),
                   .a = testing::NormalVector(kRows * shape.k, 9)};
  Pack(type, &layer);
  return layer;
}

// C [rows, N] for the rows `a` [rows, K], which are put at an odd place.
std::vector<float> RunLayer(const ExactLayer& layer, const std::vector<float>& a, int64_t rows) {
  const int64_t n = layer.shape.n, k = layer.shape.k;
  const Panels& panels = layer.kernel->panels();
  testing::GuardedRows x(rows, k, k, rows % 4);
  x.Fill({a.begin(), a.begin() + rows * k});
  const int64_t prepared_floats = layer.kernel->prepared_floats();
  testing::GuardedRows prepared(rows, prepared_floats, prepared_floats, rows % 3);
  const float* const ready = layer.kernel->Prepare(rows, x.data(), prepared.data());
  auto runner = LinearRunner::Create(layer.kernel);
  EXPECT_TRUE(runner.ok());
  std::vector<float> c(static_cast<size_t>(rows * n));
  for (int64_t panel = 0; panel < panels.count; ++panel) {
    const int64_t columns = panels.columns(panel);
    testing::GuardedRows out(rows, columns, columns, rows % 2);
    (*runner)->RunPanel(*layer.packed, panel, rows, ready, out.data());
    out.CheckGuards();
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(out.row(r), columns, c.data() + r * n + panels.begin(panel));
    }
  }
  x.CheckGuards();
  prepared.CheckGuards();
  return c;
}

// To the nearest, ties to even; what would become infinity, to the largest number.
float WeightBf16(float w) {
  const double rounded = reference::RoundBf16(w);
  if (std::isfinite(rounded)) return static_cast<float>(rounded);
  return std::copysign(std::bit_cast<float>(0x7F7F0000u), w);
}

// What bf16 is defined to be: a chain over K in order, by a bf16 unit the second of each pair
// before the first. The products are exact.
float TwinBf16(const ExactLayer& layer, const float* a, int64_t column, bool unit) {
  float sum = layer.bias[column];
  const int64_t k = layer.shape.k;
  for (int64_t n = 0; n < (k + 1) / 2 * 2; ++n) {
    const int64_t i = unit ? n ^ 1 : n;
    if (i == k) continue;
    sum += static_cast<float>(reference::RoundBf16(a[i])) * WeightBf16(layer.w[column * k + i]);
  }
  return sum;
}

// What bf16 by tiles is held to: sums of exact products, in any order.
void CheckTiles(const ExactLayer& layer, const float* a, int64_t column, float got) {
  const int64_t k = layer.shape.k;
  double sum = layer.bias[column], size = std::fabs(sum);
  for (int64_t i = 0; i < k; ++i) {
    const double product = reference::RoundBf16(a[i]) * WeightBf16(layer.w[column * k + i]);
    sum += product;
    size += std::fabs(product);
  }
  ASSERT_NEAR(got, sum, 0x1p-24 * static_cast<double>(k + 2) * size) << k << " " << column;
}

struct IntRow {
  std::vector<float> scales;
  std::vector<int64_t> q;
};

// The plain definition in f32, to whose bits scales and sums are held.
IntRow QuantizeActivation(const float* a, int64_t k) {
  IntRow row;
  for (int64_t begin = 0; begin < k; begin += kQuantizeGroup) {
    const int64_t end = std::min(begin + kQuantizeGroup, k);
    float largest = 0;
    for (int64_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(a[i]));
    row.scales.push_back(largest / 127.0f);
    const float inverse = 127.0f / largest;
    for (int64_t i = begin; i < end; ++i) row.q.push_back(std::lrintf(a[i] * inverse));
  }
  return row;
}
IntRow QuantizeWeight(const float* w, int64_t k) {
  float largest = 0;
  for (int64_t i = 0; i < k; ++i) largest = std::max(largest, std::fabs(w[i]));
  IntRow row{{largest / 127.0f}, {}};
  for (int64_t i = 0; i < k; ++i) row.q.push_back(std::lrintf(w[i] / row.scales[0]));
  return row;
}

// Of int8: the sum of a group is exact, then each operation is rounded once.
float TwinInt8(const IntRow& a, const IntRow& w, float bias) {
  float total = 0;
  for (size_t g = 0; g < a.scales.size(); ++g) {
    int64_t sum = 0;
    const size_t begin = g * static_cast<size_t>(kQuantizeGroup);
    const size_t end = std::min(begin + static_cast<size_t>(kQuantizeGroup), a.q.size());
    for (size_t i = begin; i < end; ++i) sum += a.q[i] * w.q[i];
    const float part = static_cast<float>(sum) * a.scales[g];
    total = g == 0 ? part : total + part;
  }
  const float scaled = total * w.scales[0];
  return scaled + bias;
}

void CheckTwin(const ExactLayer& layer, const std::vector<float>& all, Isa isa) {
  const int64_t n = layer.shape.n, k = layer.shape.k;
  const bool int8 = layer.kernel->type() == GemmType::kInt8;
  for (int64_t column = 0; column<n; column += n> 200 ? 7 : 1) {
    const IntRow w = int8 ? QuantizeWeight(layer.w.data() + column * k, k) : IntRow{};
    for (int64_t r = 0; r < kRows; r += 23) {
      const float* const a = layer.a.data() + r * k;
      if (!int8 && isa >= Isa::kAmx) {
        CheckTiles(layer, a, column, all[r * n + column]);
        continue;
      }
      const bool unit = isa >= Isa::kAvx512Bf16;
      const float want = int8 ? TwinInt8(QuantizeActivation(a, k), w, layer.bias[column])
                              : TwinBf16(layer, a, column, unit);
      ASSERT_EQ(std::bit_cast<uint32_t>(all[r * n + column]), std::bit_cast<uint32_t>(want))
          << "row " << r << " column " << column << " of " << n << " x " << k << ": "
          << all[r * n + column] << " for " << want;
    }
  }
}

TEST(GemmPrecision, HasTheBitsOfItsTwinOnEveryIsa) {
  testing::ForEachIsaAndUnit([](Isa isa) {
    for (const GemmType type : {GemmType::kBf16, GemmType::kInt8}) {
      for (const LayerShape& shape : kLayerShapes) {
        SCOPED_TRACE(IsaName(isa));
        const ExactLayer layer = MakeLayer(shape, type);
        ASSERT_NE(layer.packed, nullptr);
        testing::ExpectUsesTiles(isa,
                                 [&] { CheckTwin(layer, RunLayer(layer, layer.a, kRows), isa); });
      }
    }
  });
}

TEST(GemmPrecision, ARowsBitsAreItsOwn) {
  testing::ForEachIsaAndUnit([](Isa isa) {
    for (const GemmType type : {GemmType::kBf16, GemmType::kInt8}) {
      for (const LayerShape& shape : kLayerShapes) {
        const ExactLayer layer = MakeLayer(shape, type);
        const std::vector<float> all = RunLayer(layer, layer.a, kRows);
        for (const int64_t rows : {1, 2, 3, 4, 5, 7, 12, 13, 16, 17, 31, 33, 57, 64}) {
          const int64_t first = kRows - rows;
          const std::vector<float> part(layer.a.begin() + first * shape.k, layer.a.end());
          const std::vector<float> c = RunLayer(layer, part, rows);
          ASSERT_EQ(std::memcmp(c.data(), all.data() + first * shape.n, c.size() * sizeof(float)),
                    0)
              << IsaName(isa) << ", " << rows << " rows, " << shape.n << " x " << shape.k;
        }
      }
    }
  });
}

// 127 times 127 everywhere: what saturates anywhere shows here.
TEST(GemmPrecision, Int8SumsAreExactAtTheirLargest) {
  testing::ForEachIsaAndUnit([](Isa isa) {
    // Up to 2^24 in all, what f32 holds exactly.
    for (const int64_t k : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{1024}}) {
      ExactLayer layer{.shape = {18, k, 0},
                       .w = std::vector<float>(static_cast<size_t>(18 * k), 127.0f),
                       .bias = std::vector<float>(18, 0.0f),
                       .a = std::vector<float>(static_cast<size_t>(2 * k), 127.0f)};
      std::fill_n(layer.a.begin(), k, -127.0f);
      Pack(GemmType::kInt8, &layer);
      const std::vector<float> c = RunLayer(layer, layer.a, 2);
      const float want = static_cast<float>(127 * 127 * k);
      for (int64_t column = 0; column < 18; ++column) {
        EXPECT_EQ(c[column], -want) << IsaName(isa);
        EXPECT_EQ(c[18 + column], want) << IsaName(isa);
      }
    }
  });
}

TEST(GemmPrecision, SpecialRowsAndColumns) {
  testing::ForEachIsaAndUnit([](Isa isa) {
    for (const GemmType type : {GemmType::kBf16, GemmType::kInt8}) {
      ExactLayer layer = MakeLayer({20, 33, 0}, type);
      const int64_t k = 33, n = 20;
      std::fill_n(layer.w.begin() + 3 * k, k, 0.0f);  // column 3: zeros
      std::fill_n(layer.w.begin() + 4 * k, k, std::numeric_limits<float>::max());
      std::fill_n(layer.w.begin() + 5 * k, k, 1e-45f);
      Pack(type, &layer);
      std::fill_n(layer.a.begin(), k, 0.0f);                          // row 0: zeros
      layer.a[1 * k + 32] = std::numeric_limits<float>::quiet_NaN();  // row 1
      layer.a[2 * k + 0] = -std::numeric_limits<float>::infinity();   // row 2
      std::fill_n(layer.a.begin() + 3 * k, k, 1e-44f);                // row 3: denormal
      const std::vector<float> c = RunLayer(layer, layer.a, 5);
      for (int64_t column = 0; column < n; ++column) {
        const std::string where = std::string(IsaName(isa)) + " " + std::to_string(column);
        EXPECT_EQ(c[column], layer.bias[column]) << where;
        EXPECT_TRUE(std::isnan(c[n + column])) << where;
        EXPECT_FALSE(std::isfinite(c[2 * n + column])) << where;
        if (column != 4) {
          EXPECT_EQ(c[3 * n + column], layer.bias[column]) << where;
        }
        if (type == GemmType::kInt8) {
          EXPECT_TRUE(std::isnan(c[2 * n + column])) << where;
        }
      }
      EXPECT_EQ(c[4 * n + 3], layer.bias[3]) << IsaName(isa);
      EXPECT_NEAR(c[4 * n + 5], layer.bias[5], 1e-6) << IsaName(isa);
    }
  });
}

// Half and a quarter of the bytes, but for scales and what fills up strips.
TEST(GemmPrecision, PackedBytes) {
  const int64_t f32 = PackedPanelBytes(GemmType::kF32, 192, 384);
  EXPECT_EQ(f32, 192 * 384 * 4);
  EXPECT_EQ(PackedPanelBytes(GemmType::kBf16, 192, 384), f32 / 2);
  EXPECT_EQ(PackedPanelBytes(GemmType::kInt8, 192, 384), f32 / 4 + 192 * 4);
}

}  // namespace
}  // namespace attend
