// Random models of the family, over all fields and their combinations: file, Session and outputs
// against the whole model's plain twin in double precision, on every ISA, a process each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/family_batch.h"
#include "tests/family_configs.h"
#include "tests/isa_child.h"
#include "tests/random_model.h"
#include "tests/reference_encoder.h"

namespace attend {
namespace {

using reference::Matrix;
using reference::Rounding;
using testing::FamilyBatch;
using testing::FamilySequence;

constexpr int kModels = 120;

double Largest(const Matrix& a, const Matrix& b) {
  double largest = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    largest = std::max(largest, std::abs(a.data[i] - b.data[i]));
  }
  return largest;
}

// Differences as multiples of what is allowed: 2e-5, and 4 times what f32 costs the twin.
struct Worst {
  double ratio = 0;
  double difference = 0;

  void Compare(std::span<const float> got, const Matrix& want, const Matrix& rounded) {
    ASSERT_EQ(got.size(), want.data.size());
    const double allowed = 2e-5 + 4 * Largest(want, rounded);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(got[i])) << "element " << i;
      const double away = std::abs(static_cast<double>(got[i]) - want.data[i]);
      difference = std::max(difference, away);
      ratio = std::max(ratio, away / allowed);
    }
  }
};

void CheckModel(const ModelConfig& config, uint32_t seed, Worst* worst) {
  ASSERT_TRUE(CheckConfig(config).ok()) << CheckConfig(config).ToString();
  testing::Random random(seed);
  // Weights that may be missing are missing in every second model, some of them in every fourth;
  // a bias goes with its weight.
  const int64_t mode = random.Below(4);
  const testing::KeepTensor keep = [&](const TensorSpec& spec) {
    if (mode < 2) return true;
    const bool pair =
        spec.name.starts_with("embeddings.norm.") ||
        (spec.name.starts_with("input.projection.") && config.input_size == config.hidden_size);
    return mode == 3 && !pair && random.Below(2) == 0;
  };
  Result<std::vector<std::byte>> bytes = testing::RandomModelBytes(config, seed, {}, keep);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  Result<FileView> view = FileView::Open(*bytes, VerifyLevel::kFull, "random");
  ASSERT_TRUE(view.ok()) << view.status().ToString();
  const reference::Weights weights = reference::ReadWeights(*view);
  Result<Model> model = Model::FromBytes(*bytes);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = Session::Create(*model, {.num_threads = 2, .max_tokens = 300});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  FamilyBatch batch(config);
  std::vector<FamilySequence> sequences;
  for (const int64_t length : {int64_t{1}, 2 + random.Below(8), 14 + random.Below(30)}) {
    sequences.push_back(testing::RandomSequence(config, length, random.Next()));
    batch.Add(sequences.back());
  }
  Result<Output> output = batch.Run(&*session);
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  for (size_t s = 0; s < sequences.size(); ++s) {
    SCOPED_TRACE("length " + std::to_string(sequences[s].length));
    const auto want = reference::RunEncoder(config, weights, sequences[s]);
    const auto rounded = reference::RunEncoder(config, weights, sequences[s], Rounding::kF32);
    const auto at = static_cast<int64_t>(s);
    worst->Compare(testing::RowsOf(output->hidden, batch, at, true), want.hidden, rounded.hidden);
    worst->Compare(testing::RowsOf(output->pooled, batch, at, false), want.pooled, rounded.pooled);
    worst->Compare(testing::RowsOf(output->logits, batch, at, config.task == Task::kTokens),
                   want.logits, rounded.logits);
  }
}

TEST(FamilyProperty, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by FamilyProperty.EveryIsa, a process per ISA";
  testing::FamilyConfigs configs(5);
  double ratio = 0, difference = 0;
  for (uint32_t i = 0; i < kModels; ++i) {
    const ModelConfig config = configs.Next();
    SCOPED_TRACE(std::to_string(i) + ": " + testing::Describe(config));
    Worst worst;
    CheckModel(config, 100 + i, &worst);
    EXPECT_LE(worst.ratio, 1) << "difference " << worst.difference;
    ratio = std::max(ratio, worst.ratio);
    difference = std::max(difference, worst.difference);
  }
  std::printf("%s: %d random models, largest difference %.1e, %.2f of what is allowed\n", isa,
              kModels, difference, ratio);
}

TEST(FamilyProperty, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) {
    testing::ExpectChildPasses(isa, "FamilyProperty.OneIsa");
  }
}

}  // namespace
}  // namespace attend
