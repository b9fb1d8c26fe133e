// Random models of the family, over all fields and their combinations: file, Session and outputs
// against the whole model's plain twin in double precision, on every ISA, a process each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
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
using testing::FamilyBatch;
using testing::FamilySequence;

constexpr uint64_t kDraws = 3;  // of noise: one alone may cancel out
constexpr int kRandomModels = 120;

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

  // `noise`: how far f32 may get from `want`.
  void Compare(std::span<const float> got, const Matrix& want, double noise) {
    ASSERT_EQ(got.size(), want.data.size());
    const double allowed = 2e-5 + 4 * noise;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(got[i])) << "element " << i;
      const double away = std::abs(static_cast<double>(got[i]) - want.data[i]);
      difference = std::max(difference, away);
      ratio = std::max(ratio, away / allowed);
    }
  }
};

// Runs a random model of `config`, and the twin by what `twin` says, which are the same but where a
// difference is to be seen.
void CheckModel(const ModelConfig& config, const ModelConfig& twin, uint32_t seed, Worst* worst) {
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
    const auto want = reference::RunEncoder(twin, weights, sequences[s]);
    double hidden = 0, pooled = 0, logits = 0;
    for (uint64_t draw = 1; draw <= kDraws; ++draw) {
      const auto noisy = reference::RunEncoder(twin, weights, sequences[s], {.seed = draw});
      hidden = std::max(hidden, Largest(want.hidden, noisy.hidden));
      pooled = std::max(pooled, Largest(want.pooled, noisy.pooled));
      logits = std::max(logits, Largest(want.logits, noisy.logits));
    }
    const auto at = static_cast<int64_t>(s);
    const bool by_token = config.task == Task::kTokens;
    worst->Compare(testing::RowsOf(output->hidden, batch, at, true), want.hidden, hidden);
    worst->Compare(testing::RowsOf(output->pooled, batch, at, false), want.pooled, pooled);
    worst->Compare(testing::RowsOf(output->logits, batch, at, by_token), want.logits, logits);
  }
}

TEST(FamilyProperty, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by FamilyProperty.EveryIsa, a process per ISA";
  testing::FamilyConfigs configs(5);
  double ratio = 0, difference = 0;
  for (uint32_t i = 0; i < kRandomModels; ++i) {
    const ModelConfig config = configs.Next();
    SCOPED_TRACE(std::to_string(i) + ": " + testing::Describe(config));
    Worst worst;
    CheckModel(config, config, 100 + i, &worst);
    EXPECT_LE(worst.ratio, 1) << "difference " << worst.difference;
    ratio = std::max(ratio, worst.ratio);
    difference = std::max(difference, worst.difference);
  }
  std::printf("%s: %d random models, largest difference %.1e, %.2f of what is allowed\n", isa,
              kRandomModels, difference, ratio);
}

// The comparison must fail where engine and twin do not compute the same.
TEST(FamilyProperty, AFieldTakenForAnotherIsSeen) {
  ModelConfig base = testing::EncoderConfig(32, 2, 4, 24);
  base.num_kv_heads = 2;
  base.type_vocab_size = 0;
  base.position = Position::kSinusoidal;
  base.max_positions = base.max_length = 0;
  base.task = Task::kSequence;
  base.pooling = Pooling::kMean;
  base.num_labels = 2;
  base.labels = {"A", "B"};
  using Change = std::function<void(ModelConfig&)>;
  struct Case {
    const char* name;
    Change both;  // of the model and its twin
    Change twin;  // what the twin takes otherwise
  };
  const Change none = [](ModelConfig&) {};
  const Case cases[] = {
      {"activation", none, [](ModelConfig& c) { c.activation = Activation::kGeluTanh; }},
      {"norm_eps", none, [](ModelConfig& c) { c.norm_eps = 1e-3; }},
      {"score", none, [](ModelConfig& c) { c.score = Score::kDot; }},
      {"normalizer", none, [](ModelConfig& c) { c.normalizer = Normalizer::kSoftmax1; }},
      {"length", [](ModelConfig& c) { c.normalizer = Normalizer::kSigmoid; },
       [](ModelConfig& c) { c.normalizer_length = true; }},
      {"causal", none, [](ModelConfig& c) { c.causal = true; }},
      {"window",
       [](ModelConfig& c) {
         c.windowed = true;
         c.window_left = c.window_right = 3;
       },
       [](ModelConfig& c) { c.window_right = 2; }},
      {"global_tokens", [](ModelConfig& c) { c.windowed = true, c.global_tokens = 2; },
       [](ModelConfig& c) { c.global_tokens = 1; }},
      {"edges", [](ModelConfig& c) { c.edges = true; }, [](ModelConfig& c) { c.edges = false; }},
      {"alibi", none, [](ModelConfig& c) { c.score_bias = ScoreBias::kAlibi; }},
      {"relative", [](ModelConfig& c) { c.score_bias = ScoreBias::kRelative; },
       [](ModelConfig& c) { c.relative_max_distance = 20; }},
      {"position", none, [](ModelConfig& c) { c.position = Position::kNone; }},
      {"theta", [](ModelConfig& c) { c.position = Position::kRotary; },
       [](ModelConfig& c) { c.rope_theta = 9000; }},
      {"residual", none, [](ModelConfig& c) { c.residual = false; }},
      {"norm", none, [](ModelConfig& c) { c.norm = NormPlace::kNone; }},
      {"pooling", none, [](ModelConfig& c) { c.pooling = Pooling::kLast; }},
  };
  for (const Case& c : cases) {
    ModelConfig config = base;
    c.both(config);
    ModelConfig twin = config;
    Worst same, other;
    CheckModel(config, twin, 7, &same);
    EXPECT_LE(same.ratio, 1) << c.name;
    c.twin(twin);
    CheckModel(config, twin, 7, &other);
    EXPECT_GT(other.ratio, 3) << c.name;
  }
}

TEST(FamilyProperty, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) {
    testing::ExpectChildPasses(isa, "FamilyProperty.OneIsa");
  }
}

}  // namespace
}  // namespace attend
