#include "kernels/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tests/cases.h"
#include "tests/testing.h"

namespace attend {
namespace {

using testing::GuardedRows;

using testing::kInf;
constexpr float kMax = std::numeric_limits<float>::max();

// The bound of the header: 6e-7 of the weight, and what the rounding of x - max costs.
double Bound(double weight, double distance) { return weight * (6e-7 + 7e-8 * distance) + 2e-38; }

TEST(Softmax, EqualsItsTwinAtEveryWidth) {
  testing::ForEachIsa([](Isa) {
    for (int64_t width : cases::kWidths) {
      for (double scale : {1.0, 10.0}) {
        GuardedRows x(3, width, width + 3, width % 5);
        x.FillNormal(static_cast<uint64_t>(width), scale);
        const reference::Matrix scores = x.ToMatrix(), want = reference::Softmax(scores);
        BindSoftmax()({x.data(), 3, width, x.ld()});
        for (int64_t r = 0; r < 3; ++r) {
          double most = scores.at(r, 0);
          for (int64_t c = 0; c < width; ++c) most = std::max(most, scores.at(r, c));
          for (int64_t c = 0; c < width; ++c) {
            const double bound = Bound(want.at(r, c), most - scores.at(r, c));
            ASSERT_NEAR(x.row(r)[c], want.at(r, c), bound) << "width " << width << " column " << c;
          }
        }
        x.CheckGuards();
      }
    }
  });
}

// Two entries show the exponential itself: e^x against 1, over all of its range.
TEST(Softmax, ExponentialOverItsRange) {
  testing::ForEachIsa([](Isa) {
    double worst = 0.0;
    for (float x = -86.0f; x < 0.0f; x += 0.00137f) {
      std::vector<float> row = {0.0f, x};
      BindSoftmax()({row.data(), 1, 2, 2});
      const double want = std::exp(static_cast<double>(x)) / (1 + std::exp(static_cast<double>(x)));
      worst = std::max(worst, std::abs(row[1] / want - 1.0));
    }
    EXPECT_LT(worst, 4e-7);
    // Beyond, exactly zero and never a denormal.
    for (float x : {-87.31f, -88.0f, -103.0f, -1e3f, -1e30f, -kMax, -kInf}) {
      std::vector<float> row = {0.0f, x};
      BindSoftmax()({row.data(), 1, 2, 2});
      testing::ExpectSameBits(row, {1.0f, 0.0f}, std::to_string(x));
    }
  });
}

TEST(Softmax, EdgesAreDefined) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  testing::ForEachIsa([&](Isa) {
    for (int64_t width : {1, 3, 16, 21, 64}) {
      std::vector<float> row(static_cast<size_t>(width), -kInf);
      BindSoftmax()({row.data(), 1, width, width});
      testing::ExpectSameBits(row, std::vector<float>(row.size(), 0.0f), "all -inf");

      for (float equal : {0.0f, 1e30f, -1e30f, kMax, -kMax, kInf}) {
        std::fill(row.begin(), row.end(), equal);
        BindSoftmax()({row.data(), 1, width, width});
        for (float v : row) EXPECT_NEAR(v, 1.0 / static_cast<double>(width), 1e-7) << equal;
      }

      std::fill(row.begin(), row.end(), -3.0f);
      row.back() = nan;
      BindSoftmax()({row.data(), 1, width, width});
      for (float v : row) EXPECT_TRUE(std::isnan(v));
    }
    std::vector<float> row = {-kInf, 5.0f, -kInf};
    BindSoftmax()({row.data(), 1, 3, 3});
    testing::ExpectSameBits(row, {0.0f, 1.0f, 0.0f}, "one finite score");
  });
}

TEST(Softmax, ARowsBitsAreItsOwn) {
  testing::ForEachIsa([](Isa) {
    const int64_t rows = 5, width = 53;
    const std::vector<float> x = testing::NormalVector(rows * width, 3, 4.0);
    std::vector<float> all = x;
    BindSoftmax()({all.data(), rows, width, width});
    for (int64_t row = 0; row < rows; ++row) {
      GuardedRows one(1, width, width, row);
      one.Fill({x.begin() + row * width, x.begin() + (row + 1) * width});
      BindSoftmax()({one.data(), 1, width, width});
      testing::ExpectSameBits(one.Values(),
                              {all.begin() + row * width, all.begin() + (row + 1) * width},
                              "row " + std::to_string(row));
    }
  });
}

}  // namespace
}  // namespace attend
