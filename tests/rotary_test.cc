#include "kernels/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/testing.h"

namespace attend {
namespace {

using testing::GuardedRows;

struct RotaryCase {
  int64_t heads, head_dim, dims;
};
constexpr RotaryCase kCases[] = {{1, 2, 2},    {3, 6, 6},   {2, 8, 4},     {5, 12, 12},
                                 {2, 20, 10},  {4, 32, 32}, {2, 34, 34},   {3, 48, 24},
                                 {12, 64, 64}, {1, 80, 80}, {2, 126, 126}, {2, 128, 128}};

std::vector<double> Frequencies(int64_t dims, double theta) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dims / 2; ++i) {
    frequencies.push_back(
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dims)));
  }
  return frequencies;
}

TEST(Rotary, EqualsItsTwin) {
  const std::vector<int32_t> positions = {0, 1, 2, 17, 1000, 3, 4095};
  const int64_t rows = static_cast<int64_t>(positions.size());
  for (const RotaryCase& c : kCases) {
    for (const double theta : {10000.0, 500.0}) {
      const std::vector<double> frequencies = Frequencies(c.dims, theta);
      std::vector<float> table(static_cast<size_t>(4096 * c.dims));
      FillRotaryTable(frequencies.data(), c.dims, 4096, table.data());
      const int64_t width = c.heads * c.head_dim;
      GuardedRows x(rows, width, width + 3, 1);
      x.FillNormal(5);
      const std::vector<float> before = x.Values();
      const reference::Matrix want =
          reference::Rotary(x.ToMatrix(), positions, c.heads, c.dims, frequencies);
      testing::ForEachIsa([&](Isa) {
        const std::string what = std::to_string(c.head_dim) + " of which " + std::to_string(c.dims);
        x.Fill(before);
        BindRotary()({.x = x.data(),
                      .positions = positions.data(),
                      .table = table.data(),
                      .rows = rows,
                      .ldx = x.ld(),
                      .heads = c.heads,
                      .head_dim = c.head_dim,
                      .dims = c.dims});
        testing::ExpectNear(x.Values(), want.data, 1.5e-6, 0.0, what);
        x.CheckGuards();
        // One row and one head alone.
        const std::vector<float> all = x.Values();
        x.Fill(before);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t h = 0; h < c.heads; ++h) {
            BindRotary()({.x = x.row(r) + h * c.head_dim,
                          .positions = positions.data() + r,
                          .table = table.data(),
                          .rows = 1,
                          .ldx = x.ld(),
                          .heads = 1,
                          .head_dim = c.head_dim,
                          .dims = c.dims});
          }
        }
        testing::ExpectSameBits(x.Values(), all, what);
      });
    }
  }
}

// A turn changes no length, and position 0 nothing at all.
TEST(Rotary, PositionZeroStays) {
  const std::vector<double> frequencies = Frequencies(16, 10000);
  std::vector<float> table(16);
  FillRotaryTable(frequencies.data(), 16, 1, table.data());
  testing::ForEachIsa([&](Isa) {
    GuardedRows x(1, 16, 16, 0);
    x.FillNormal(6);
    const std::vector<float> before = x.Values();
    const int32_t position = 0;
    BindRotary()({.x = x.data(),
                  .positions = &position,
                  .table = table.data(),
                  .rows = 1,
                  .ldx = 16,
                  .heads = 1,
                  .head_dim = 16,
                  .dims = 16});
    testing::ExpectSameBits(x.Values(), before, "position 0");
  });
}

}  // namespace
}  // namespace attend
