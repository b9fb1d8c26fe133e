#include "kernels/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/cases.h"
#include "tests/testing.h"

namespace attend {
namespace {

using testing::GuardedRows;

// The bounds of the header.
constexpr double kNormAbsolute = 3e-6, kNormRelative = 3e-6;

enum class Kind { kLayer, kRms };

NormFn Bind(Kind kind) { return kind == Kind::kLayer ? BindLayerNorm() : BindRmsNorm(); }

reference::Matrix Twin(Kind kind, const reference::Matrix& x, const std::vector<double>& weight,
                       const std::vector<double>& bias, double eps) {
  return kind == Kind::kLayer ? reference::LayerNorm(x, weight, bias, eps)
                              : reference::RmsNorm(x, weight, bias, eps);
}

void CheckWidth(Kind kind, int64_t width, bool residual, bool weight, bool bias) {
  const int64_t rows = 3;
  GuardedRows x(rows, width, width + 3, 1), r(rows, width, width + 1, 3);
  GuardedRows out(rows, width, width + 2, 5);
  x.FillNormal(1, 2.0);
  r.FillNormal(2);
  const std::vector<float> w = testing::NormalVector(width, 3), b = testing::NormalVector(width, 4);
  NormArgs args;
  args.x = x.data();
  args.residual = residual ? r.data() : nullptr;
  args.weight = weight ? w.data() : nullptr;
  args.bias = bias ? b.data() : nullptr;
  args.out = out.data();
  args.rows = rows;
  args.width = width;
  args.ldx = x.ld();
  args.ld_residual = r.ld();
  args.ld_out = out.ld();
  args.eps = 1e-5f;
  Bind(kind)(args);

  // The sum is rounded to f32 before it is normalised; that rounding is part of the definition.
  reference::Matrix s = x.ToMatrix();
  if (residual) s = reference::Add(s, r.ToMatrix());
  for (double& v : s.data) v = static_cast<float>(v);
  const std::vector<double> no;
  const reference::Matrix want =
      Twin(kind, s, weight ? testing::ToDouble(w) : no, bias ? testing::ToDouble(b) : no, 1e-5f);
  testing::ExpectNear(out.Values(), want.data, kNormAbsolute, kNormRelative,
                      "width " + std::to_string(width));
  x.CheckGuards();
  r.CheckGuards();
  out.CheckGuards();
}

TEST(LayerNorm, EqualsItsTwinAtEveryWidth) {
  testing::ForEachIsa([](Isa) {
    for (Kind kind : {Kind::kLayer, Kind::kRms}) {
      for (int64_t width : cases::kWidths) {
        for (int parts = 0; parts < 8; ++parts) {
          CheckWidth(kind, width, (parts & 1) != 0, (parts & 2) != 0, (parts & 4) != 0);
        }
      }
    }
  });
}

TEST(LayerNorm, InPlaceOnEitherInputGivesTheSameBits) {
  testing::ForEachIsa([](Isa) {
    const int64_t rows = 4, width = 77;
    const std::vector<float> x = testing::NormalVector(rows * width, 5);
    const std::vector<float> r = testing::NormalVector(rows * width, 6);
    for (Kind kind : {Kind::kLayer, Kind::kRms}) {
      std::vector<float> out(x.size()), in_x = x, in_r = r;
      NormArgs args{x.data(), r.data(), nullptr, nullptr, out.data(), rows,
                    width,    width,    width,   width,   1e-12f};
      Bind(kind)(args);
      args.x = args.out = in_x.data();
      Bind(kind)(args);
      testing::ExpectSameBits(in_x, out, "in x");
      args.x = x.data();
      args.residual = args.out = in_r.data();
      Bind(kind)(args);
      testing::ExpectSameBits(in_r, out, "in residual");
    }
  });
}

TEST(LayerNorm, ARowsBitsAreItsOwn) {
  testing::ForEachIsa([](Isa) {
    const int64_t rows = 9, width = 385;
    const std::vector<float> x = testing::NormalVector(rows * width, 7);
    std::vector<float> all(x.size());
    NormArgs args{x.data(), nullptr, nullptr, nullptr, all.data(), rows,
                  width,    width,   width,   width,   1e-12f};
    BindLayerNorm()(args);
    for (int64_t offset = 0; offset < 4; ++offset) {
      for (int64_t row = 0; row < rows; ++row) {
        GuardedRows one(1, width, width, offset);
        one.Fill({x.begin() + row * width, x.begin() + (row + 1) * width});
        args.x = args.out = one.data();
        args.rows = 1;
        BindLayerNorm()(args);
        testing::ExpectSameBits(one.Values(),
                                {all.begin() + row * width, all.begin() + (row + 1) * width},
                                "row " + std::to_string(row));
      }
    }
  });
}

TEST(LayerNorm, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  testing::ForEachIsa([&](Isa) {
    const int64_t width = 37;
    // Equal values: variance 0, and eps keeps the result at the bias. A large mean beside a small
    // spread: what one pass over the row would lose.
    std::vector<float> equal(width, 3.5f), bias = testing::NormalVector(width, 8);
    std::vector<float> out(width);
    NormArgs args{equal.data(), nullptr, nullptr, bias.data(), out.data(), 1,
                  width,        width,   width,   width,       1e-12f};
    BindLayerNorm()(args);
    testing::ExpectSameBits(out, bias, "equal values");

    args.bias = nullptr;
    const std::vector<float> far = testing::NormalVector(width, 9, 1.0, 4096.0);
    args.x = far.data();
    BindLayerNorm()(args);
    const reference::Matrix want =
        reference::LayerNorm(reference::Matrix::From(far, 1, width), {}, {}, 1e-12);
    testing::ExpectNear(out, want.data, 2e-3, 0, "mean 4096");

    const std::vector<float> tiny(width, 1e-42f);
    args.x = tiny.data();
    BindLayerNorm()(args);
    for (float v : out) EXPECT_TRUE(std::isfinite(v));

    // One bad row stays one bad row.
    std::vector<float> three = testing::NormalVector(3 * width, 10), y(3 * width);
    for (float bad : {inf, -inf, nan}) {
      three[static_cast<size_t>(width + 5)] = bad;
      args = {three.data(), nullptr, nullptr, nullptr, y.data(), 3,
              width,        width,   width,   width,   1e-12f};
      BindLayerNorm()(args);
      for (int64_t i = 0; i < width; ++i) {
        EXPECT_TRUE(std::isfinite(y[static_cast<size_t>(i)]));
        EXPECT_TRUE(std::isnan(y[static_cast<size_t>(width + i)])) << bad;
        EXPECT_TRUE(std::isfinite(y[static_cast<size_t>(2 * width + i)]));
      }
    }
  });
}

}  // namespace
}  // namespace attend
