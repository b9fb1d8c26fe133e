#include "kernels/residual.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/cases.h"
#include "tests/testing.h"

namespace attend {
namespace {

using testing::GuardedRows;

// A sum is rounded once: the twin, rounded to f32, has the same bits.
TEST(Residual, EqualsItsTwinBitByBit) {
  testing::ForEachIsa([](Isa) {
    for (int64_t width : cases::kWidths) {
      GuardedRows x(3, width, width + 2, 1), r(3, width, width + 4, 2);
      GuardedRows out(3, width, width + 1, 3);
      x.FillNormal(1);
      r.FillNormal(2, 100.0);
      BindResidual()({x.data(), r.data(), out.data(), 3, width, x.ld(), r.ld(), out.ld()});
      const reference::Matrix want = reference::Add(x.ToMatrix(), r.ToMatrix());
      const std::vector<float> rounded(want.data.begin(), want.data.end());
      testing::ExpectSameBits(out.Values(), rounded, "width " + std::to_string(width));
      const ResidualArgs in_place{x.data(), r.data(), r.data(), 3, width, x.ld(), r.ld(), r.ld()};
      BindResidual()(in_place);
      testing::ExpectSameBits(r.Values(), rounded, "in place");
      x.CheckGuards();
      r.CheckGuards();
      out.CheckGuards();
    }
  });
}

TEST(Residual, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  testing::ForEachIsa([&](Isa) {
    const std::vector<float> x = {inf, -inf, 1e-45f, 3e38f, -0.0f};
    const std::vector<float> r = {1.0f, 2.0f, 1e-45f, 3e38f, -0.0f};
    std::vector<float> out(5);
    BindResidual()({x.data(), r.data(), out.data(), 1, 5, 5, 5, 5});
    testing::ExpectSameBits(out, {inf, -inf, 2.0f * 1e-45f, inf, -0.0f}, "special values");
  });
}

}  // namespace
}  // namespace attend
