#include "kernels/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/cases.h"
#include "tests/testing.h"

namespace attend {
namespace {

using testing::GuardedRows;

using testing::kInf;
using testing::kNan;

TEST(Pool, EqualsItsTwin) {
  testing::ForEachIsa([](Isa) {
    for (int64_t rows : {1, 2, 7, 100}) {
      for (int64_t width : cases::kWidths) {
        GuardedRows x(rows, width, width + 3, width % 5), out(1, width, width, 1);
        x.FillNormal(static_cast<uint64_t>(width + rows));
        const std::string what = std::to_string(rows) + " by " + std::to_string(width);
        BindPoolMean()({x.data(), out.data(), rows, width, x.ld()});
        testing::ExpectNear(out.Values(), reference::PoolMean(x.ToMatrix()), 1e-6, 2e-7, what);
        out.CheckGuards();
        BindPoolMax()({x.data(), out.data(), rows, width, x.ld()});
        testing::ExpectNear(out.Values(), reference::PoolMax(x.ToMatrix()), 1e-30, 0.0, what);
        out.CheckGuards();
        x.CheckGuards();
      }
    }
  });
}

TEST(Pool, SpecialValues) {
  testing::ForEachIsa([](Isa) {
    // Every place of a NaN must be seen, the first and the last row included.
    for (int64_t bad = 0; bad < 3; ++bad) {
      std::vector<float> x(3 * 20, -kInf), out(20);
      x[static_cast<size_t>(bad * 20 + 19)] = kNan;
      x[static_cast<size_t>(bad * 20 + 18)] = kInf;
      BindPoolMax()({x.data(), out.data(), 3, 20, 20});
      EXPECT_TRUE(std::isnan(out[19])) << bad;
      EXPECT_EQ(out[18], kInf);
      EXPECT_EQ(out[0], -kInf);
    }
  });
}

TEST(Normalize, EqualsItsTwin) {
  testing::ForEachIsa([](Isa) {
    for (int64_t width : cases::kWidths) {
      for (double scale : {1e-15, 1e-9, 1.0, 1e12}) {
        GuardedRows x(3, width, width + 2, 3);
        x.FillNormal(static_cast<uint64_t>(width), scale);
        const reference::Matrix want = reference::Normalize(x.ToMatrix());
        BindNormalize()({x.data(), 3, width, x.ld()});
        testing::ExpectNear(x.Values(), want.data, 1e-12, 1e-6,
                            "width " + std::to_string(width) + " scale " + std::to_string(scale));
        x.CheckGuards();
      }
    }
  });
}

TEST(Normalize, ZeroStaysZeroAndNanStaysInItsRow) {
  testing::ForEachIsa([](Isa) {
    std::vector<float> x(3 * 19, 0.0f);
    x[19 + 3] = kNan;
    BindNormalize()({x.data(), 3, 19, 19});
    for (size_t i = 0; i < 19; ++i) {
      EXPECT_EQ(x[i], 0.0f);
      EXPECT_TRUE(std::isnan(x[19 + i]));
      EXPECT_EQ(x[38 + i], 0.0f);
    }
  });
}

}  // namespace
}  // namespace attend
