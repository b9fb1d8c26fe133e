#include "kernels/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/cases.h"
#include "tests/testing.h"

namespace attend {
namespace {

using testing::GuardedRows;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using testing::kNan;

struct QuantizedRow {
  std::vector<float> scales;
  std::vector<int16_t> q;
  float scale() const { return scales.back(); }
};

QuantizedRow Unpack(const float* row, int64_t k) {
  const int64_t groups = QuantizeGroups(k);
  QuantizedRow out{{row, row + groups}, std::vector<int16_t>(static_cast<size_t>((k + 1) / 2 * 2))};
  std::memcpy(out.q.data(), row + groups, out.q.size() * sizeof(int16_t));
  return out;
}

QuantizedRow QuantizeOne(const std::vector<float>& x) {
  const auto k = static_cast<int64_t>(x.size());
  std::vector<float> out(static_cast<size_t>(QuantizedRowFloats(k)), -1.0f);
  BindQuantize()({.x = x.data(), .out = out.data(), .rows = 1, .k = k});
  return Unpack(out.data(), k);
}

std::vector<float> RoundOne(const std::vector<float>& x) {
  const auto k = static_cast<int64_t>(x.size());
  std::vector<float> out(static_cast<size_t>(RoundedRowFloats(k)), -1.0f);
  BindRoundBf16()({.x = x.data(), .out = out.data(), .rows = 1, .k = k});
  if (k % 2 == 1) {
    EXPECT_EQ(std::bit_cast<uint32_t>(out.back()), 0u) << "behind an odd K";
    out.pop_back();
  }
  return out;
}

TEST(RoundBf16, EqualsItsTwinAtEveryWidth) {
  testing::ForEachIsa([](Isa) {
    for (const int64_t width : cases::kWidths) {
      constexpr int64_t kThree = 3;
      for (int64_t offset = 0; offset < 4; ++offset) {
        GuardedRows x(kThree, width, width, offset);
        const int64_t ld = RoundedRowFloats(width);
        GuardedRows out(kThree, ld, ld, 3 - offset);
        x.FillNormal(static_cast<uint64_t>(width), 100.0);
        BindRoundBf16()({.x = x.data(), .out = out.data(), .rows = kThree, .k = width});
        x.CheckGuards();
        out.CheckGuards();
        for (int64_t r = 0; r < kThree; ++r) {
          for (int64_t c = 0; c < ld; ++c) {
            const double want = c < width ? reference::RoundBf16(x.row(r)[c]) : 0.0;
            ASSERT_EQ(out.row(r)[c], want) << x.row(r)[c] << " in a row of " << width;
          }
        }
      }
    }
  });
}

TEST(RoundBf16, SpecialValues) {
  testing::ForEachIsa([](Isa) {
    const std::pair<uint32_t, uint32_t> cases[] = {
        {0x3F808000, 0x3F800000},  // ties go to the even neighbour
        {0x3F818000, 0x3F820000}, {0xBF818000, 0xBF820000}, {0x3F808001, 0x3F810000},
        {0x3F7FFFFF, 0x3F800000},  // a carry into the exponent
        {0x7F7FFFFF, 0x7F800000},  // nearer to 2^128 than to the largest bf16
        {0x7F7F7FFF, 0x7F7F0000}, {0x7F800000, 0x7F800000}, {0xFF800000, 0xFF800000},
        {0x00000001, 0x00000000}, {0x00018000, 0x00020000},  // denormals
        {0x80000000, 0x80000000}, {0x00000000, 0x00000000}};
    std::vector<float> x;
    for (const auto& [from, to] : cases) x.push_back(std::bit_cast<float>(from));
    const std::vector<float> got = RoundOne(x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), cases[i].second) << std::hex << cases[i].first;
      const double twin = reference::RoundBf16(x[i]);
      EXPECT_EQ(got[i], twin) << x[i];
    }
    // NaN stays NaN whatever its bits, and nothing else becomes one.
    for (const uint32_t bits : {0x7FC00000u, 0x7F800001u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFF800001u}) {
      std::vector<float> row(19, 1.0f);
      row[17] = std::bit_cast<float>(bits);
      row[3] = std::bit_cast<float>(bits);
      const std::vector<float> rounded = RoundOne(row);
      for (size_t i = 0; i < row.size(); ++i) {
        EXPECT_EQ(std::isnan(rounded[i]), i == 3 || i == 17) << i;
      }
    }
  });
}

TEST(Quantize, EqualsItsTwinAtEveryWidth) {
  testing::ForEachIsa([](Isa) {
    for (const int64_t width : cases::kWidths) {
      constexpr int64_t kThree = 3;
      GuardedRows x(kThree, width, width, width % 5);
      const int64_t ld = QuantizedRowFloats(width);
      GuardedRows out(kThree, ld, ld, width % 3);
      x.FillNormal(static_cast<uint64_t>(width) + 7, 3.0);
      BindQuantize()({.x = x.data(), .out = out.data(), .rows = kThree, .k = width});
      x.CheckGuards();
      out.CheckGuards();
      const reference::Quantized want = reference::QuantizeRows(x.ToMatrix(), kQuantizeGroup);
      for (int64_t r = 0; r < kThree; ++r) {
        const QuantizedRow got = Unpack(out.row(r), width);
        int largest = 0;
        for (int64_t c = 0; c < width; ++c) {
          const int64_t g = c / kQuantizeGroup;
          const double scale = want.scale.at(r, g);
          ASSERT_NEAR(got.scales[g], scale, 1e-7 * scale);
          const int q = got.q[c];
          largest = std::max(largest, std::abs(q));
          const double exact = x.row(r)[c] / scale;
          ASSERT_LE(std::fabs(exact - q), 0.5001) << c << " of " << width;
          // Only next to a tie may rounding in f32 decide otherwise than in double.
          if (std::fabs(std::fabs(exact - std::nearbyint(exact)) - 0.5) > 1e-4) {
            ASSERT_EQ(q, want.q.at(r, c)) << c << " of " << width;
          }
          if ((c + 1) % kQuantizeGroup == 0 || c + 1 == width) {
            ASSERT_EQ(std::exchange(largest, 0), 127);
          }
        }
        if (width % 2 == 1) {
          EXPECT_EQ(got.q.back(), 0);
        }
      }
    }
  });
}

TEST(Quantize, HalvesGoToEven) {
  testing::ForEachIsa([](Isa) {
    const QuantizedRow got = QuantizeOne({127, -127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f, 0});
    EXPECT_EQ(got.scale(), 1.0f);
    EXPECT_EQ(got.q, (std::vector<int16_t>{127, -127, 0, 2, 2, 0, -2, 126, 0, 0}));
  });
}

TEST(Quantize, SpecialRows) {
  testing::ForEachIsa([](Isa isa) {
    const std::string name = IsaName(isa);
    for (const size_t width : {1u, 2u, 7u, 16u, 33u}) {
      std::vector<float> x(width, 0.0f);
      EXPECT_EQ(QuantizeOne(x).scale(), 0.0f) << name;
      x.back() = 1e-42f;  // denormal
      EXPECT_EQ(QuantizeOne(x).scale(), 0.0f) << name;
      EXPECT_EQ(QuantizeOne(x).q.at(width - 1), 0) << name;
      x.back() = -0x1p-119f;  // the smallest that counts
      EXPECT_GT(QuantizeOne(x).scale(), 0.0f) << name;
      EXPECT_EQ(QuantizeOne(x).q.at(width - 1), -127) << name;
      x.back() = std::numeric_limits<float>::max();
      EXPECT_TRUE(std::isfinite(QuantizeOne(x).scale())) << name;
      EXPECT_EQ(QuantizeOne(x).q.at(width - 1), 127) << name;
      for (const float bad : {kNan, kInfinity, -kInfinity, -kNan}) {
        x.back() = bad;
        const QuantizedRow got = QuantizeOne(x);
        EXPECT_TRUE(std::isnan(got.scale())) << name << " " << bad;
        for (const int16_t q : got.q) EXPECT_EQ(q, 0);
        // The group alone is spoilt.
        x.insert(x.begin(), static_cast<size_t>(kQuantizeGroup), 2.0f);
        EXPECT_EQ(QuantizeOne(x).scales.front(), 2.0f / 127.0f);
        EXPECT_EQ(QuantizeOne(x).q.front(), 127);
        x.erase(x.begin(), x.begin() + kQuantizeGroup);
      }
    }
  });
}

// The same bits on every instruction set.
TEST(Quantize, EveryIsaGivesTheSameBits) {
  const std::vector<float> x = testing::NormalVector(1001, 3, 5.0);
  std::vector<std::vector<int16_t>> all;
  std::vector<std::vector<float>> scales;
  testing::ForEachIsa([&](Isa) {
    const QuantizedRow got = QuantizeOne(x);
    all.push_back(got.q);
    scales.push_back(got.scales);
  });
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i], all[0]);
    EXPECT_EQ(scales[i], scales[0]);
  }
}

// What BindQuantizeQuads is to leave, from what BindQuantize does.
std::vector<float> QuadsOf(const QuantizedRow& row, int64_t k) {
  std::vector<float> quads(static_cast<size_t>(QuantizedQuadsFloats(k)));
  float* out = quads.data();
  for (int64_t begin = 0; begin < k; begin += kQuantizeGroup) {
    const int64_t count = std::min(kQuantizeGroup, k - begin);
    int32_t start = 0;
    std::vector<int8_t> q(static_cast<size_t>((count + 3) / 4 * 4));
    for (int64_t i = 0; i < count; ++i) {
      q[i] = static_cast<int8_t>(row.q[begin + i]);
      start -= 128 * q[i];
    }
    out[0] = row.scales[begin / kQuantizeGroup];
    std::memcpy(out + 1, &start, sizeof(start));
    std::memcpy(out + 2, q.data(), q.size());
    out += 2 + q.size() / 4;
  }
  return quads;
}

// The same of BindTiledInt8, without what is not written.
std::vector<float> TilesOf(const QuantizedRow& row, int64_t k) {
  const int64_t groups = QuantizeGroups(k), scales = TiledScaleFloats(k);
  std::vector<float> tiles(static_cast<size_t>(scales + groups * kQuantizeGroup / 4));
  std::copy_n(row.scales.begin(), groups, tiles.begin());
  auto* const q = reinterpret_cast<int8_t*>(tiles.data() + scales);
  for (int64_t i = 0; i < k; ++i) q[i] = static_cast<int8_t>(row.q[i]);
  return tiles;
}

// For rows of each width that have in turn a group of zeros, of numbers too small to count, of the
// smallest that do, of the largest, of one element, and with a NaN or an infinity.
TEST(QuantizeBytes, HaveTheNumbersOfQuantizeAtEveryWidth) {
  constexpr float kSpecial[] = {0, 0x1p-120f, -0x1p-119f, 3.4e38f, 1.5f, kNan, -kInfinity};
  constexpr int64_t kRowCount = std::size(kSpecial) + 1;
  testing::ForEachIsaAndUnit([&](Isa isa) {
    if (isa < Isa::kAvx512Vnni) return;
    std::vector<int64_t> widths = {63, 64, 65, 128, 192, 256, 257, 320, 384, 511, 512, 1536};
    widths.insert(widths.end(), std::begin(cases::kWidths), std::end(cases::kWidths));
    for (const int64_t width : widths) {
      GuardedRows x(kRowCount, width, width, width % 5);
      const int64_t ld = QuantizedQuadsFloats(width);
      GuardedRows out(kRowCount, ld, ld, width % 3);
      x.FillNormal(static_cast<uint64_t>(width) + 11, 3.0);
      for (int64_t r = 0; r + 1 < kRowCount; ++r) {
        const int64_t group = r % QuantizeGroups(width) * kQuantizeGroup;
        const int64_t end = std::min(group + kQuantizeGroup, width);
        if (r < 5) std::fill(x.row(r) + group, x.row(r) + end, 0.0f);
        x.row(r)[group + (7 * r) % (end - group)] = kSpecial[r];
      }
      BindQuantizeQuads()({.x = x.data(), .out = out.data(), .rows = kRowCount, .k = width});
      x.CheckGuards();
      out.CheckGuards();
      for (int64_t r = 0; r < kRowCount; ++r) {
        const std::vector<float> want = QuadsOf(QuantizeOne({x.row(r), x.row(r) + width}), width);
        ASSERT_EQ(std::memcmp(out.row(r), want.data(), want.size() * sizeof(float)), 0)
            << "row " << r << " of " << width;
      }
      const int64_t ld_tiles = TiledInt8RowFloats(width);
      GuardedRows tiles(kRowCount, ld_tiles, ld_tiles, width % 3);
      tiles.Fill(std::vector<float>(static_cast<size_t>(kRowCount * ld_tiles), 0.0f));
      BindTiledInt8()({.x = x.data(), .out = tiles.data(), .rows = kRowCount, .k = width});
      tiles.CheckGuards();
      for (int64_t r = 0; r < kRowCount; ++r) {
        const std::vector<float> want = TilesOf(QuantizeOne({x.row(r), x.row(r) + width}), width);
        ASSERT_EQ(std::memcmp(tiles.row(r), want.data(), want.size() * sizeof(float)), 0)
            << "tiles, row " << r << " of " << width;
      }
    }
  });
}

// Columns by columns, as panels come, gives what all at once give.
void CheckColumns(PrepareRowsFn prepare, int64_t (*row_floats)(int64_t)) {
  constexpr int64_t kRowCount = 5;
  for (const int64_t k : {64, 65, 100, 192, 200, 384, 777}) {
    GuardedRows x(kRowCount, k, k, 0);
    x.FillNormal(static_cast<uint64_t>(k), 3.0);
    const int64_t ld = row_floats(k);
    GuardedRows whole(kRowCount, ld, ld, 0), parts(kRowCount, ld, ld, 1);
    const std::vector<float> zeros(static_cast<size_t>(kRowCount * ld), 0.0f);
    whole.Fill(zeros);
    prepare({.x = x.data(), .out = whole.data(), .rows = kRowCount, .k = k});
    for (const int64_t width : {64, 192}) {
      parts.Fill(zeros);
      for (int64_t begin = 0; begin < k; begin += width) {
        const int64_t columns = std::min(width, k - begin);
        GuardedRows panel(kRowCount, columns, columns + 3, begin % 5);
        for (int64_t r = 0; r < kRowCount; ++r) {
          std::copy_n(x.row(r) + begin, columns, panel.row(r));
        }
        prepare({.x = panel.data(),
                 .out = parts.data(),
                 .rows = kRowCount,
                 .k = k,
                 .begin = begin,
                 .columns = columns,
                 .ldx = panel.ld()});
        panel.CheckGuards();
      }
      parts.CheckGuards();
      testing::ExpectSameBits(parts.Values(), whole.Values(), "K " + std::to_string(k));
    }
  }
}

TEST(QuantizeColumns, AreThoseOfTheWholeRow) {
  testing::ForEachIsaAndUnit([](Isa isa) {
    CheckColumns(BindRoundBf16(), RoundedRowFloats);
    CheckColumns(BindQuantize(), QuantizedRowFloats);
    if (isa >= Isa::kAvx512Vnni) {
      CheckColumns(BindQuantizeQuads(), QuantizedQuadsFloats);
      CheckColumns(BindTiledInt8(), TiledInt8RowFloats);
    }
    if (isa < Isa::kAvx512Bf16) return;
    CheckColumns(BindPairBf16(), PairedRowFloats);
    CheckColumns(BindTiledBf16(), TiledBf16RowFloats);
  });
}

}  // namespace
}  // namespace attend
