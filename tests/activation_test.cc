#include "kernels/activation.h"

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

using testing::kInf;
using testing::kNan;

// The bounds of the header.
struct Function {
  const char* name;
  ActivationFn (*bind)();
  double (*twin)(double);
  double absolute, relative;
};
constexpr Function kFunctions[] = {
    {"gelu", BindGelu, reference::Gelu, 5e-7, 2e-7},
    {"rough_gelu", BindRoughGelu, reference::Gelu, 1.6e-5, 2e-7},
    {"gelu_tanh", BindGeluTanh, reference::GeluTanh, 1e-7, 1e-6},
    {"relu", BindRelu, reference::Relu, 0.0, 1e-30},
    {"silu", BindSilu, reference::Silu, 1e-7, 5e-7},
    {"tanh", BindTanh, reference::Tanh, 1e-30, 4e-7},
};

// f of a row, in its place.
void Apply(ActivationFn f, std::vector<float>* row) {
  const auto width = static_cast<int64_t>(row->size());
  f({.x = row->data(),
     .out = row->data(),
     .rows = 1,
     .width = width,
     .ldx = width,
     .ld_out = width});
}

// Floats of every size and sign, dense where the functions bend.
std::vector<float> Arguments() {
  std::vector<float> x = {0.0f,  -0.0f,  1e-45f, -1e-45f, 1e-39f,  1.17549435e-38f, 1e-20f, -1e-20f,
                          87.3f, 87.4f,  -87.3f, -87.4f,  88.8f,   -103.9f,         5.25f,  -5.25f,
                          1e10f, -1e10f, 1e20f,  -1e20f,  3.4e38f, -3.4e38f};
  for (float a = -16.0f; a <= 16.0f; a += 1.0f / 4096) x.push_back(a);
  for (uint32_t bits = 0; bits < 0x7F800000u; bits += 65521) {  // a prime: all mantissas
    float a;
    std::memcpy(&a, &bits, sizeof a);
    x.push_back(a);
    x.push_back(-a);
  }
  return x;
}

TEST(Activation, EqualsItsTwinOverTheFloats) {
  const std::vector<float> x = Arguments();
  testing::ForEachIsa([&](Isa isa) {
    for (const Function& f : kFunctions) {
      std::vector<float> y = x;
      const int64_t width = static_cast<int64_t>(x.size());
      Apply(f.bind(), &y);
      const reference::Matrix want =
          reference::Apply(f.twin, reference::Matrix::From(x, 1, width), {});
      testing::ExpectNear(y, want.data, f.absolute, f.relative, f.name);
      RecordProperty(std::string(f.name) + "_share_of_bound_" + IsaName(isa),
                     std::to_string(testing::ErrorRatio(y, want.data, f.absolute, f.relative)));
    }
  });
}

TEST(Activation, GeluIsRelativelyPreciseNearZero) {
  const std::vector<float> x = testing::NormalVector(100000, 3, 0.07);
  testing::ForEachIsa([&](Isa) {
    std::vector<float> y = x, rough = x;
    Apply(BindGelu(), &y);
    Apply(BindRoughGelu(), &rough);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::abs(x[i]) > 0.25f) continue;
      const double want = reference::Gelu(x[i]);
      ASSERT_NEAR(y[i], want, 2e-6 * std::abs(want)) << x[i];
      ASSERT_NEAR(rough[i], want, 3e-4 * std::abs(want)) << x[i];
    }
  });
}

TEST(Activation, LimitsAndNan) {
  testing::ForEachIsa([&](Isa) {
    for (const Function& f : kFunctions) {
      std::vector<float> y = {kInf, -kInf, kNan, -1e30f, 1e30f};
      Apply(f.bind(), &y);
      const bool tanh = std::string(f.name) == "tanh";
      EXPECT_EQ(y[0], tanh ? 1.0f : kInf) << f.name;
      EXPECT_EQ(y[1], tanh ? -1.0f : 0.0f) << f.name;
      EXPECT_TRUE(std::isnan(y[2])) << f.name;
      EXPECT_EQ(y[3], tanh ? -1.0f : 0.0f) << f.name;
      EXPECT_EQ(y[4], tanh ? 1.0f : 1e30f) << f.name;
    }
  });
}

TEST(Activation, BiasStridesAndTails) {
  testing::ForEachIsa([&](Isa) {
    for (const Function& f : kFunctions) {
      for (int64_t width : cases::kWidths) {
        for (const bool with_bias : {false, true}) {
          GuardedRows x(3, width, width + 5, width % 7);
          x.FillNormal(static_cast<uint64_t>(width), 2.0);
          const std::vector<float> bias = testing::NormalVector(width, 5);
          reference::Matrix s = x.ToMatrix();
          // x + bias is rounded to f32 first.
          for (int64_t r = 0; r < 3; ++r) {
            for (int64_t c = 0; c < width; ++c) {
              const float b = with_bias ? bias[static_cast<size_t>(c)] : 0.0f;
              s.at(r, c) = static_cast<float>(s.at(r, c) + static_cast<double>(b));
            }
          }
          const reference::Matrix want = reference::Apply(f.twin, s, {});
          // To another place, and to its own.
          GuardedRows out(3, width, width + 2, width % 5);
          for (GuardedRows* const to : {&out, &x}) {
            f.bind()({.x = x.data(),
                      .bias = with_bias ? bias.data() : nullptr,
                      .out = to->data(),
                      .rows = 3,
                      .width = width,
                      .ldx = x.ld(),
                      .ld_out = to->ld()});
            testing::ExpectNear(to->Values(), want.data, f.absolute, f.relative,
                                std::string(f.name) + " width " + std::to_string(width));
            to->CheckGuards();
            x.CheckGuards();
          }
        }
      }
    }
  });
}

// A tail must be computed like a whole vector, and wherever the row begins.
TEST(Activation, AnElementsBitsAreItsOwn) {
  const int64_t width = 67;
  const std::vector<float> x = testing::NormalVector(width, 9, 3.0);
  testing::ForEachIsa([&](Isa) {
    for (const Function& f : kFunctions) {
      std::vector<float> whole = x;
      Apply(f.bind(), &whole);
      for (int64_t i = 0; i < width; ++i) {
        std::vector<float> one = {x[static_cast<size_t>(i)]};
        Apply(f.bind(), &one);
        testing::ExpectSameBits(one, {whole[static_cast<size_t>(i)]}, f.name);
      }
    }
  });
}

TEST(Activation, Gated) {
  testing::ForEachIsa([&](Isa) {
    for (int64_t width : cases::kWidths) {
      GuardedRows gate(2, width, width + 1, 1), up(2, width, width + 2, 2);
      GuardedRows out(2, width, width + 3, 3);
      gate.FillNormal(1, 2.0);
      up.FillNormal(2);
      const GatedArgs args{gate.data(), up.data(), out.data(), 2,
                           width,       gate.ld(), up.ld(),    out.ld()};
      BindGeglu()(args);
      const reference::Matrix g = gate.ToMatrix(), u = up.ToMatrix();
      testing::ExpectNear(out.Values(), reference::Gated(reference::Gelu, g, u).data, 3e-6, 4e-7,
                          "geglu " + std::to_string(width));
      BindSwiglu()(args);
      testing::ExpectNear(out.Values(), reference::Gated(reference::Silu, g, u).data, 1e-6, 6e-7,
                          "swiglu " + std::to_string(width));
      BindGegluTanh()(args);
      testing::ExpectNear(out.Values(), reference::Gated(reference::GeluTanh, g, u).data, 1e-6,
                          2e-6, "geglu_tanh " + std::to_string(width));
      BindReglu()(args);
      testing::ExpectNear(out.Values(), reference::Gated(reference::Relu, g, u).data, 0, 6e-8,
                          "reglu " + std::to_string(width));
      BindSwiglu()(args);
      const std::vector<float> before = out.Values();
      GatedArgs in_place = args;
      in_place.out = gate.data();
      in_place.ld_out = gate.ld();
      BindSwiglu()(in_place);
      testing::ExpectSameBits(gate.Values(), before, "in place");
      gate.CheckGuards();
      up.CheckGuards();
      out.CheckGuards();
    }
  });
}

}  // namespace
}  // namespace attend
