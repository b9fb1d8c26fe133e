// Every part of the attention family, alone and combined, against the twin.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/attention_problem.h"

namespace attend {
namespace {

using testing::AttentionProblem;
using testing::AttentionShape;

using testing::kInf;
using testing::kNan;

// Lengths around blocks, vectors, register blocks, chunks; grouped and single key heads; widths
// with tails; keys and values of different widths.
constexpr AttentionShape kShapes[] = {
    {1, 1, 1, 1, 1, 1},     {2, 2, 2, 2, 3, 5},     {5, 5, 2, 1, 8, 8},      {17, 17, 4, 2, 5, 12},
    {31, 31, 3, 3, 20, 20}, {32, 32, 2, 1, 16, 32}, {33, 33, 4, 1, 33, 7},   {48, 48, 2, 2, 64, 40},
    {70, 70, 2, 2, 12, 16}, {64, 65, 1, 1, 32, 32}, {13, 200, 2, 1, 24, 24}, {29, 7, 2, 2, 9, 10}};
// What fills tiles; in pairs.
constexpr AttentionShape kTileShapes[] = {
    {43, 46, 2, 1, 64, 48}, {15, 16, 1, 1, 32, 112}, {3, 33, 4, 2, 96, 16}};

using Part = void (*)(AttentionProblem&);
const std::vector<Part>& Parts() {
  using P = AttentionProblem;
  using N = AttentionNormalizer;
  static const std::vector<Part> parts = {
      [](P&) {},
      [](P& p) { p.SetAdditive(); },
      [](P& p) { p.SetAlibi(); },
      [](P& p) { p.SetDistanceBias(3); },
      [](P& p) { p.SetDistanceBias(40); },
      [](P& p) { p.SetDenseBias(0.0); },
      [](P& p) { p.SetDenseBias(0.5); },
      [](P& p) { p.SetCausal(); },
      [](P& p) { p.SetWindow(4, 1, 0); },
      [](P& p) { p.SetWindow(0, 0, 0); },
      [](P& p) { p.SetWindow(20, 30, 3); },
      [](P& p) { p.SetWindow(1000, 3, 0); },
      [](P& p) { p.SetCausal(), p.SetWindow(5, 2, 2); },
      [](P& p) { p.SetEdges(0.3); },
      [](P& p) { p.SetEdges(0.02); },
      [](P& p) { p.SetNormalizer(N::kSoftmax1); },
      [](P& p) { p.SetNormalizer(N::kRelu); },
      [](P& p) { p.SetNormalizer(N::kRelu2); },
      [](P& p) { p.SetNormalizer(N::kSigmoid); },
      [](P& p) { p.SetNormalizer(N::kNone); },
      [](P& p) { p.SetNormalizer(N::kNone, true); },
      [](P& p) { p.SetNormalizer(N::kRelu, true), p.SetWindow(3, 9, 1); },
  };
  return parts;
}

TEST(AttentionFamily, EveryPartAloneEqualsItsTwin) {
  for (const AttentionShape& shape : kShapes) {
    for (const Part part : Parts()) {
      for (const bool pairs : {false, true}) {
        AttentionProblem problem(shape, 2);
        part(problem);
        if (pairs && problem.spec.additive != nullptr) continue;
        if (pairs) problem.SetPairs();
        problem.ExpectEqualsTwin();
      }
    }
  }
  for (const AttentionShape& shape : kTileShapes) {
    for (const Part part : Parts()) {
      AttentionProblem problem(shape, 2);
      part(problem);
      if (problem.spec.additive != nullptr) continue;
      problem.SetPairs();
      problem.ExpectEqualsTwin();
      problem.ForEachIsa([&](Isa isa) { testing::ExpectUsesTiles(isa, [&] { problem.Run(); }); });
    }
  }
}

// Any score with any biases, any structure and any normaliser.
void SetAtRandom(testing::Random& random, AttentionProblem& problem) {
  const auto maybe = [&](int one_in) { return random.Below(one_in) == 0; };
  if (maybe(3)) problem.SetAdditive();
  if (maybe(4)) problem.SetAlibi();
  if (maybe(4)) problem.SetDistanceBias(1 + random.Below(60));
  if (maybe(4)) problem.SetDenseBias(random.Uniform() * 0.7);
  if (maybe(3)) problem.SetCausal();
  if (maybe(3)) {
    problem.SetWindow(random.Below(40), random.Below(40), maybe(2) ? random.Below(30) : 0);
  }
  if (maybe(4)) problem.SetEdges(random.Uniform() * random.Uniform());
  const auto normalizer = testing::kAllNormalizers[random.Below(6)];
  problem.SetNormalizer(normalizer, normalizer >= AttentionNormalizer::kRelu && maybe(2));
}

TEST(AttentionFamily, RandomCombinationsEqualTheirTwins) {
  testing::Random random(20);
  for (int round = 0; round < 250; ++round) {
    const int64_t kv_heads = 1 + random.Below(3);
    const int64_t keys = 1 + random.Below(90);
    AttentionShape shape{1 + random.Below(40),
                         keys,
                         kv_heads * (1 + random.Below(3)),
                         kv_heads,
                         1 + random.Below(40),
                         1 + random.Below(40)};
    // A later part of the sequence, as a thread or a cache has it.
    if (round % 2 == 0) shape.query_begin = random.Below(keys);
    AttentionProblem problem(shape, static_cast<uint64_t>(round) + 50);
    SetAtRandom(random, problem);
    problem.ExpectEqualsTwin();
    if (problem.spec.additive != nullptr) continue;
    problem.SetPairs();
    problem.ExpectEqualsTwin();
  }
}

// Rows of several chunks.
TEST(AttentionFamily, LongSequencesEqualTheirTwins) {
  for (const int64_t keys : {200, 513, 2049, 4100}) {
    for (size_t i = 0; i < Parts().size(); ++i) {
      // The second shape fills tiles.
      for (const int64_t width : {8, 32}) {
        AttentionProblem problem({14, keys, 2, 1, width, width, keys - 14}, 3);
        Parts()[i](problem);
        if (width == 8) problem.ExpectEqualsTwin();
        if (problem.spec.additive != nullptr) continue;
        problem.SetPairs();
        problem.ExpectEqualsTwin();
      }
    }
  }
}

// ---- Defined results at the edges ----

TEST(AttentionFamily, RowsThatSeeNobodyAreZero) {
  for (const AttentionNormalizer normalizer : testing::kAllNormalizers) {
    for (const bool divide : {false, true}) {
      if (divide && normalizer <= AttentionNormalizer::kSoftmax1) continue;
      for (const bool additive : {false, true}) {
        for (int how = 0; how < 3; ++how) {
          // Queries far behind the last key see none of them in a window.
          AttentionProblem problem({7, 40, 2, 1, 12, 20, how == 1 ? 100 : 0}, 4);
          if (additive) problem.SetAdditive();
          if (how == 0) {
            problem.edge_offsets.assign(8, 0);
            problem.edge_keys.assign(1, 0);
          } else if (how == 1) {
            problem.SetWindow(10, 10, 0);
          } else {
            problem.dense.assign(static_cast<size_t>(2 * 7 * problem.ld_bias()), -kInf);
          }
          problem.SetNormalizer(normalizer, divide);
          testing::ForEachIsa([&](Isa) {
            testing::ExpectSameBits(problem.Run(), std::vector<float>(7 * 2 * 20, 0.0f),
                                    problem.Describe());
          });
        }
      }
    }
  }
}

// What is not seen may hold anything in its key, and its weight is exactly 0.
TEST(AttentionFamily, UnseenKeysDoNotCount) {
  for (const AttentionNormalizer normalizer : testing::kAllNormalizers) {
    for (const bool additive : {false, true}) {
      AttentionProblem problem({40, 40, 2, 2, 8, 8}, 5);
      if (additive) problem.SetAdditive();
      problem.SetCausal();
      problem.SetWindow(9, 3, 0);
      problem.SetNormalizer(normalizer);
      problem.ForEachIsa([&](Isa) {
        problem.k.FillNormal(16);
        problem.v.FillNormal(17);
        const std::vector<float> want = problem.Run();
        for (const float value : {kNan, kInf, -kInf, 3e38f}) {
          std::fill_n(problem.k.row(20), 16, value);
          std::fill_n(problem.v.row(20), 16, 1e30f);
          const std::vector<float> got = problem.Run();
          for (int64_t i = 0; i < 40; ++i) {
            if (problem.Sees(i, 20)) continue;
            const std::vector<float> a(got.begin() + i * 16, got.begin() + (i + 1) * 16);
            const std::vector<float> b(want.begin() + i * 16, want.begin() + (i + 1) * 16);
            testing::ExpectSameBits(a, b, problem.Describe() + " row " + std::to_string(i));
          }
        }
      });
    }
  }
}

// A NaN in one query stays in its row, under every score and normaliser.
TEST(AttentionFamily, NanStaysInItsRow) {
  for (const AttentionNormalizer normalizer : testing::kAllNormalizers) {
    for (const bool additive : {false, true}) {
      AttentionProblem problem({13, 600, 1, 1, 8, 8}, 6);
      if (additive) problem.SetAdditive();
      problem.SetNormalizer(normalizer);
      problem.q.row(4)[3] = kNan;
      testing::ForEachIsa([&](Isa) {
        const std::vector<float> out = problem.Run();
        for (size_t i = 0; i < out.size(); ++i) {
          ASSERT_EQ(std::isnan(out[i]), i / 8 == 4) << problem.Describe() << " element " << i;
        }
      });
    }
  }
}

// Scores of softmax1 far below 0: the extra key has all the weight; far above: none.
TEST(AttentionFamily, Softmax1AtTheEnds) {
  testing::ForEachIsa([](Isa) {
    for (const float score : {-1e4f, 1e4f}) {
      AttentionProblem problem({3, 20, 1, 1, 1, 2}, 7);
      problem.SetNormalizer(AttentionNormalizer::kSoftmax1);
      problem.q.Fill(std::vector<float>(3, 1.0f));
      problem.k.Fill(std::vector<float>(20, score));
      problem.v.Fill(std::vector<float>(40, 3.0f));
      const std::vector<float> out = problem.Run();
      for (const float value : out) ASSERT_NEAR(value, score < 0 ? 0.0f : 3.0f, 1e-6f);
      if (score < 0) testing::ExpectSameBits(out, std::vector<float>(6, 0.0f), "softmax1");
    }
  });
}

// ---- The additive score, for inputs of any size ----

// Weights that are scores, of values that are unit vectors: the output is the matrix of scores.
TEST(AttentionFamily, AdditiveScoresKeepTheirBound) {
  std::vector<float> values = {0.0f,  1e-30f, 1e-4f, 0.1f,   0.5f,  1.0f,  2.0f,  5.0f,  9.0f,
                               16.0f, 20.0f,  30.0f, 32.9f,  33.0f, 33.1f, 38.0f, 42.9f, 43.1f,
                               44.0f, 60.0f,  87.0f, 100.0f, 1e4f,  1e30f, 3e38f};
  const size_t positive = values.size();
  for (size_t i = 1; i < positive; ++i) values.push_back(-values[i]);
  values.push_back(0.0f);
  const int64_t n = static_cast<int64_t>(values.size());
  for (const int64_t width : {1, 2, 7, 33, 300}) {
    AttentionProblem problem({2 * n, n, 1, 1, width, n}, 8);
    problem.SetAdditive();
    problem.SetNormalizer(AttentionNormalizer::kNone);
    testing::Random random(9);
    std::vector<float> unit(static_cast<size_t>(n * n), 0.0f);
    for (int64_t j = 0; j < n; ++j) {
      unit[static_cast<size_t>(j * n + j)] = 1.0f;
      for (int64_t a = 0; a < width; ++a) {
        problem.k.row(j)[a] = values[static_cast<size_t>(a == 0 ? j : random.Below(n))];
      }
    }
    for (int64_t i = 0; i < 2 * n; ++i) {
      for (int64_t a = 0; a < width; ++a) {
        // Half of the rows are of moderate size, as trained models have them.
        const float q = values[static_cast<size_t>(a == 0 ? i % n : random.Below(n))];
        problem.q.row(i)[a] = i < n ? q : std::clamp(q, -33.0f, 33.0f);
      }
    }
    problem.v.Fill(unit);
    double sum = 0.0;
    for (const float w : problem.additive) sum += std::abs(static_cast<double>(w));
    const reference::Matrix want = reference::Attention(problem.Input());
    testing::ForEachIsa([&](Isa) {
      testing::ExpectNear(problem.Run(), want.data, 1e-6 * sum, 0.0, problem.Describe());
    });
  }
}

}  // namespace
}  // namespace attend
