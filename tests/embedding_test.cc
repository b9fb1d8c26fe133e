#include "kernels/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/cases.h"
#include "tests/testing.h"

namespace attend {
namespace {

using testing::GuardedRows;

double HalfToDouble(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value = std::ldexp(exponent == 0 ? fraction : 1024 + fraction, std::max(exponent, 1) - 25);
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

double Bf16ToDouble(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Widening is exact: every one of the 65,536 values.
TEST(Widen, EveryHalfAndEveryBf16) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  testing::ForEachIsa([&](Isa) {
    std::vector<float> out(bits.size());
    BindWiden()({bits.data(), 1.0f, TableType::kF16, out.data(), 65536});
    for (size_t i = 0; i < bits.size(); ++i) {
      const double want = HalfToDouble(bits[i]);
      ASSERT_TRUE(out[i] == want || (std::isnan(out[i]) && std::isnan(want))) << "f16 " << i;
      ASSERT_EQ(std::signbit(out[i]), (bits[i] & 0x8000) != 0) << "f16 " << i;
    }
    BindWiden()({bits.data(), 1.0f, TableType::kBf16, out.data(), 65536});
    for (size_t i = 0; i < bits.size(); ++i) {
      const double want = Bf16ToDouble(bits[i]);
      ASSERT_TRUE(out[i] == want || (std::isnan(out[i]) && std::isnan(want))) << "bf16 " << i;
    }
  });
}

TEST(Widen, EveryInt8AndEveryTail) {
  std::vector<int8_t> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(i);
  testing::ForEachIsa([&](Isa) {
    for (int64_t count = 0; count <= 256; ++count) {
      GuardedRows out(1, count, count, count % 6);
      BindWiden()({x.data(), 0.37f, TableType::kI8, out.data(), count});
      std::vector<float> want;
      for (int64_t i = 0; i < count; ++i) want.push_back(0.37f * x[static_cast<size_t>(i)]);
      testing::ExpectSameBits(out.Values(), want, "int8");
      out.CheckGuards();
    }
  });
}

// A table of each type with the doubles that it means.
struct Table {
  EmbeddingTable table;
  std::vector<float> f32, scale;
  std::vector<uint16_t> u16;
  std::vector<int8_t> i8;
  reference::Matrix meaning;

  Table(TableType type, int64_t rows, int64_t width, uint64_t seed) : meaning(rows, width) {
    testing::Random random(seed);
    f32 = testing::NormalVector(rows * width, seed);
    scale = testing::NormalVector(rows, seed + 1, 0.01);
    u16.resize(f32.size());
    i8.resize(f32.size());
    for (size_t i = 0; i < f32.size(); ++i) {
      // Finite: the largest exponent is inf and NaN.
      u16[i] = static_cast<uint16_t>(0x3000 + random.Below(0x1000) + 0x8000 * random.Below(2));
      i8[i] = static_cast<int8_t>(random.Below(256));
      double& value = meaning.data[i];
      const size_t row = i / static_cast<size_t>(width);
      switch (type) {
        case TableType::kF32:
          value = f32[i];
          break;
        case TableType::kF16:
          value = HalfToDouble(u16[i]);
          break;
        case TableType::kBf16:
          value = Bf16ToDouble(u16[i]);
          break;
        case TableType::kI8:
          value = scale[row] * static_cast<float>(i8[i]);
          break;
      }
    }
    const void* data = f32.data();
    if (type == TableType::kF16 || type == TableType::kBf16) data = u16.data();
    if (type == TableType::kI8) data = i8.data();
    table = {data, scale.data(), type};
  }
  Table(const Table&) = delete;
};

TEST(Embedding, EqualsItsTwinForEveryTypeAndWidth) {
  testing::ForEachIsa([](Isa) {
    for (TableType type : {TableType::kF32, TableType::kF16, TableType::kBf16, TableType::kI8}) {
      for (int64_t width : cases::kWidths) {
        const Table tokens(type, 50, width, 1), positions(TableType::kF32, 20, width, 2);
        const Table types(type, 2, width, 3);
        const std::vector<int32_t> ids = {49, 0, 7, 7, 31}, at = {0, 1, 2, 3, 19}, zero(5, 0);
        GuardedRows out(5, width, width + 3, 2);
        EmbeddingArgs args;
        args.tables[0] = tokens.table;
        args.tables[1] = positions.table;
        args.tables[2] = types.table;
        args.index[0] = ids.data();
        args.index[1] = at.data();
        args.index[2] = nullptr;  // row 0
        args.out = out.data();
        args.rows = 5;
        args.width = width;
        args.ld_out = out.ld();
        BindEmbedding()(args);
        const reference::Matrix want = reference::Embedding(
            {tokens.meaning, positions.meaning, types.meaning}, {ids, at, zero});
        testing::ExpectNear(out.Values(), want.data, 4e-7, 2e-7, "width " + std::to_string(width));
        out.CheckGuards();

        args.tables[0].factor = 6.9282f;
        BindEmbedding()(args);
        reference::Matrix scaled = tokens.meaning;
        for (double& value : scaled.data) value *= 6.9282f;
        const reference::Matrix sum =
            reference::Embedding({scaled, positions.meaning, types.meaning}, {ids, at, zero});
        testing::ExpectNear(out.Values(), sum.data, 2e-6, 3e-7, "factor, " + std::to_string(width));

        args.tables[0].data = nullptr;
        args.tables[2].data = nullptr;
        BindEmbedding()(args);
        const reference::Matrix one = reference::Embedding({positions.meaning}, {at});
        testing::ExpectNear(out.Values(), one.data, 1e-30, 0, "one table");
        args.tables[1].data = nullptr;
        BindEmbedding()(args);
        testing::ExpectSameBits(out.Values(), std::vector<float>(out.Values().size()), "no table");
      }
    }
  });
}

}  // namespace
}  // namespace attend
