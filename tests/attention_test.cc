#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "tests/cases.h"
#include "tests/testing.h"

namespace attend {
namespace {

using cases::AttentionCase;
using testing::GuardedFloats;
using testing::GuardedRows;

using testing::kInf;
using testing::kNan;

// The bound of the header for inputs of size 1: absolute and relative.
constexpr double kAbsolute = 2e-6, kRelative = 2e-6;

std::string Name(const AttentionCase& c) {
  return "Lq " + std::to_string(c.queries) + " Lk " + std::to_string(c.keys) + " H " +
         std::to_string(c.heads) + " G " + std::to_string(c.kv_heads) + " E " +
         std::to_string(c.head_dim);
}

int64_t PackedFloats(const AttentionCase& c) {
  return (c.keys + kKeyBlock - 1) / kKeyBlock * kKeyBlock * c.kv_heads * c.head_dim;
}

// One problem: queries, keys and values in rows with strides, packed, and the arguments of a call
// for all of it. What is behind the last key is NaN.
struct Problem {
  AttentionCase c;
  GuardedRows q, k, v, out;
  GuardedFloats packed_k, packed_v, scratch;
  float scale;
  AttentionSpec spec;

  explicit Problem(const AttentionCase& shape, double size = 1.0)
      : c(shape),
        q(c.queries, c.heads * c.head_dim, c.heads * c.head_dim + 5, 1),
        k(c.keys, c.kv_heads * c.head_dim, c.kv_heads * c.head_dim + 3, 3),
        v(c.keys, c.kv_heads * c.head_dim, c.kv_heads * c.head_dim + 1, 5),
        out(c.queries, c.heads * c.head_dim, c.heads * c.head_dim + 7, 2),
        packed_k(PackedFloats(c), kNan),
        packed_v(PackedFloats(c), kNan),
        scratch(AttentionScratchFloats(c.keys), kNan),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)))) {
    q.FillNormal(1, size);
    k.FillNormal(2, size);
    v.FillNormal(3, size);
  }

  void Pack() {
    BindPackKv()({.k = k.data(),
                  .v = v.data(),
                  .packed_k = packed_k.data(),
                  .packed_v = packed_v.data(),
                  .rows = c.keys,
                  .ldk = k.ld(),
                  .ldv = v.ld(),
                  .kv_heads = c.kv_heads,
                  .key_dim = c.head_dim,
                  .value_dim = c.head_dim,
                  .head_end = c.kv_heads});
  }

  AttentionArgs Args() {
    spec.heads = c.heads;
    spec.kv_heads = c.kv_heads;
    spec.key_dim = spec.value_dim = c.head_dim;
    spec.scale = scale;
    AttentionArgs args;
    args.spec = &spec;
    args.q = q.data();
    args.packed_k = packed_k.data();
    args.packed_v = packed_v.data();
    args.out = out.data();
    args.query_count = c.queries;
    args.num_keys = c.keys;
    args.ldq = q.ld();
    args.ld_out = out.ld();
    args.head_end = c.heads;
    args.scratch = scratch.data();
    return args;
  }

  std::vector<float> Run() {
    Pack();
    BindAttention()(Args());
    out.CheckGuards();
    return out.Values();
  }

  reference::AttentionInput Input() const {
    reference::AttentionInput input;
    input.q = q.ToMatrix();
    input.k = k.ToMatrix();
    input.v = v.ToMatrix();
    input.heads = c.heads;
    input.kv_heads = c.kv_heads;
    input.scale = scale;
    return input;
  }
};

TEST(Attention, EqualsItsTwin) {
  for (const AttentionCase& c : cases::kAttentionTest) {
    Problem problem(c);
    const reference::Matrix want = reference::Attention(problem.Input());
    testing::ForEachIsa(
        [&](Isa) { testing::ExpectNear(problem.Run(), want.data, kAbsolute, kRelative, Name(c)); });
  }
}

// Scores far apart: the maximum late, early, in every lane; weights that vanish.
TEST(Attention, EqualsItsTwinWithSharpScores) {
  for (const AttentionCase& c :
       {AttentionCase{13, 70, 2, 2, 24}, AttentionCase{3, 2600, 1, 1, 8}}) {
    Problem problem(c, 4.0);
    const reference::Matrix want = reference::Attention(problem.Input());
    testing::ForEachIsa([&](Isa) {
      // Scores of 100 have an error of some 1e-5, and so have the weights, of values up to 16.
      testing::ExpectNear(problem.Run(), want.data, 1e-4, 2e-5, Name(c));
    });
  }
}

// Any split of the queries and heads over calls gives the same bits.
TEST(Attention, ARowsBitsAreItsOwn) {
  for (const AttentionCase& c :
       {AttentionCase{29, 61, 4, 2, 32}, AttentionCase{27, 130, 2, 2, 20},
        AttentionCase{26, 16, 2, 1, 64}, AttentionCase{14, 2100, 2, 1, 33}}) {
    Problem problem(c);
    testing::ForEachIsa([&](Isa) {
      const std::vector<float> all = problem.Run();
      testing::Random random(7);
      for (int round = 0; round < 12; ++round) {
        problem.out.Fill(std::vector<float>(all.size(), kNan));
        for (int64_t h = 0; h < c.heads;) {
          const int64_t heads = 1 + random.Below(c.heads - h);
          for (int64_t i = 0; i < c.queries;) {
            const int64_t count = 1 + random.Below(std::min<int64_t>(c.queries - i, 5 + 2 * round));
            AttentionArgs args = problem.Args();
            args.q += i * args.ldq;
            args.out += i * args.ld_out;
            args.query_begin = i;
            args.query_count = count;
            args.head_begin = h;
            args.head_end = h + heads;
            BindAttention()(args);
            i += count;
          }
          h += heads;
        }
        testing::ExpectSameBits(problem.out.Values(), all, Name(c));
        problem.out.CheckGuards();
      }
    });
  }
}

// Packing in any pieces, by positions and by heads, gives the layout that the header describes, and
// writes nothing else.
TEST(PackKv, LayoutInAnyPieces) {
  testing::ForEachIsa([](Isa) {
    for (const AttentionCase& c : {AttentionCase{1, 53, 3, 3, 20}, AttentionCase{1, 48, 2, 2, 32},
                                   AttentionCase{1, 7, 1, 1, 5}, AttentionCase{1, 17, 4, 4, 3}}) {
      Problem problem(c);
      testing::Random random(5);
      for (int round = 0; round < 8; ++round) {
        GuardedFloats packed_k(PackedFloats(c), -7.0f), packed_v(PackedFloats(c), -7.0f);
        for (int64_t g = 0; g < c.kv_heads;) {
          const int64_t heads = 1 + random.Below(c.kv_heads - g);
          for (int64_t j = 0; j < c.keys;) {
            const int64_t rows = 1 + random.Below(c.keys - j);
            BindPackKv()({.k = problem.k.row(j) + g * c.head_dim,
                          .v = problem.v.row(j) + g * c.head_dim,
                          .packed_k = packed_k.data(),
                          .packed_v = packed_v.data(),
                          .rows = rows,
                          .position = j,
                          .ldk = problem.k.ld(),
                          .ldv = problem.v.ld(),
                          .kv_heads = c.kv_heads,
                          .key_dim = c.head_dim,
                          .value_dim = c.head_dim,
                          .head_begin = g,
                          .head_end = g + heads});
            j += rows;
          }
          g += heads;
        }
        const int64_t padded = (c.keys + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
        for (int64_t j = 0; j < padded; ++j) {
          for (int64_t g = 0; g < c.kv_heads; ++g) {
            for (int64_t e = 0; e < c.head_dim; ++e) {
              const int64_t head = (j / kKeyBlock * c.kv_heads + g) * kKeyBlock * c.head_dim;
              const float k = packed_k.data()[head + e * kKeyBlock + j % kKeyBlock];
              const float v = packed_v.data()[head + j % kKeyBlock * c.head_dim + e];
              const bool is_key = j < c.keys;
              ASSERT_EQ(k, is_key ? problem.k.row(j)[g * c.head_dim + e] : -7.0f);
              ASSERT_EQ(v, is_key ? problem.v.row(j)[g * c.head_dim + e] : -7.0f);
            }
          }
        }
      }
    }
  });
}

TEST(Attention, EdgesAreDefined) {
  testing::ForEachIsa([](Isa) {
    for (int64_t keys : {1, 15, 16, 40, 2100}) {
      Problem problem({13, keys, 1, 1, 20});

      // No finite score: zeros.
      std::vector<float> q(13 * 20, 1.0f), k(static_cast<size_t>(keys) * 20, 0.0f);
      for (size_t j = 0; j < k.size(); j += 20) k[j] = -kInf;
      problem.q.Fill(q);
      problem.k.Fill(k);
      testing::ExpectSameBits(problem.Run(), std::vector<float>(13 * 20, 0.0f), "no finite score");

      // One key that counts: its value, exactly.
      k[static_cast<size_t>(keys / 2) * 20] = 1.0f;
      problem.k.Fill(k);
      std::vector<float> out = problem.Run();
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], problem.v.row(keys / 2)[i % 20]) << keys;
      }

      // Finite inputs whose scores overflow: no NaN, no inf.
      for (float huge : {1e30f, -1e30f}) {
        std::fill(q.begin(), q.end(), 1e30f);
        std::fill(k.begin(), k.end(), huge);
        problem.q.Fill(q);
        problem.k.Fill(k);
        out = problem.Run();
        for (float value : out) ASSERT_TRUE(std::isfinite(value)) << huge;
      }

      // A NaN in one query is in that row alone.
      problem.q.FillNormal(1);
      problem.k.FillNormal(2);
      problem.q.row(4)[3] = kNan;
      out = problem.Run();
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(std::isnan(out[i]), i / 20 == 4) << keys << " element " << i;
      }
    }
  });
}

// Far below the largest score a weight is exactly zero, never a denormal: a value of 3e38 there
// would show it.
TEST(Attention, VanishingWeightsAreZero) {
  testing::ForEachIsa([](Isa) {
    for (int64_t keys : {20, 2100}) {
      Problem problem({6, keys, 1, 1, 4});
      std::vector<float> q(6 * 4, 0.0f);
      std::vector<float> k(static_cast<size_t>(keys) * 4, 0.0f), v(k.size(), 3e38f);
      for (size_t i = 0; i < q.size(); i += 4) q[i] = 2.0f;  // times scale 0.5
      for (size_t j = 0; j < k.size(); j += 4) k[j] = -87.5f;
      k[4] = 0.0f;
      for (size_t e = 0; e < 4; ++e) v[4 + e] = 1.0f;
      problem.q.Fill(q);
      problem.k.Fill(k);
      problem.v.Fill(v);
      testing::ExpectSameBits(problem.Run(), std::vector<float>(q.size(), 1.0f), "vanishing");
    }
  });
}

// ---- Golden files: the twin and the kernel on all of them ----

struct GoldenCase {
  std::string name;
  testing::Golden golden;
  bool causal = false, bias = false;
  double tolerance = 0.0;
};

std::vector<GoldenCase> GoldenCases() {
  std::vector<GoldenCase> found;
  const std::string folder = std::string(ATTEND_TEST_DATA) + "/attention";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    GoldenCase c;
    c.name = entry.path().stem().string();
    c.golden = testing::ReadGolden(entry.path().string());
    c.causal = c.golden.metadata.at("causal") == "true";
    c.bias = c.golden.tensors.count("bias") > 0;
    // The rule of the README beside the files.
    const double f32 = std::stod(c.golden.metadata.at("float32_max_abs_diff"));
    c.tolerance = std::max(5e-6, 4 * f32);
    found.push_back(std::move(c));
  }
  return found;
}

AttentionCase Shape(const testing::Golden& golden) {
  const auto& q = golden.tensors.at("q").shape;
  const auto& k = golden.tensors.at("k").shape;
  return {q[0], k[0], q[1], k[1], q[2]};
}

TEST(AttentionGolden, TheTwinEqualsAllOfThem) {
  const std::vector<GoldenCase> all = GoldenCases();
  EXPECT_EQ(all.size(), 29u);
  for (const GoldenCase& c : all) {
    const AttentionCase shape = Shape(c.golden);
    reference::AttentionInput input;
    input.heads = shape.heads;
    input.kv_heads = shape.kv_heads;
    input.scale = std::stod(c.golden.metadata.at("scale"));
    const auto& tensors = c.golden.tensors;
    input.q =
        reference::Matrix::From(tensors.at("q").f32, shape.queries, shape.heads * shape.head_dim);
    input.k =
        reference::Matrix::From(tensors.at("k").f32, shape.keys, shape.kv_heads * shape.head_dim);
    input.v =
        reference::Matrix::From(tensors.at("v").f32, shape.keys, shape.kv_heads * shape.head_dim);
    if (c.causal) input.sees = reference::SeesWithin(true, -1, -1, 0);
    if (c.bias) {
      input.bias = [&](int64_t h, int64_t i, int64_t j) {
        const int64_t at = (h * shape.queries + i) * shape.keys + j;
        return static_cast<double>(tensors.at("bias").f32[static_cast<size_t>(at)]);
      };
    }
    const reference::Matrix got = reference::Attention(input);
    // The output was computed in double and rounded.
    testing::ExpectNear(tensors.at("output").f32, got.data, 1e-9, 1.2e-7, c.name);
  }
}

TEST(AttentionGolden, TheKernelEqualsAllOfThem) {
  for (const GoldenCase& c : GoldenCases()) {
    const AttentionCase shape = Shape(c.golden);
    Problem problem(shape);
    problem.q.Fill(c.golden.tensors.at("q").f32);
    problem.k.Fill(c.golden.tensors.at("k").f32);
    problem.v.Fill(c.golden.tensors.at("v").f32);
    problem.scale = std::stof(c.golden.metadata.at("scale"));
    problem.spec.causal = c.causal;
    const std::vector<double> want = testing::ToDouble(c.golden.tensors.at("output").f32);
    testing::ForEachIsa([&](Isa) {
      problem.Pack();
      AttentionArgs args = problem.Args();
      if (c.bias) {
        args.dense_bias = c.golden.tensors.at("bias").f32.data();
        args.ld_bias = shape.keys;
        args.bias_head = shape.queries * shape.keys;
      }
      BindAttention()(args);
      problem.out.CheckGuards();
      testing::ExpectNear(problem.out.Values(), want, c.tolerance, 0.0, c.name);
    });
  }
}

}  // namespace
}  // namespace attend
