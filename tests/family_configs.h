// Random points of the attention family, for tests that are about all of it.
#ifndef ATTEND_TESTS_FAMILY_CONFIGS_H_
#define ATTEND_TESTS_FAMILY_CONFIGS_H_

#include <algorithm>
#include <initializer_list>
#include <string>

#include "engine/config.h"
#include "tests/testing.h"

namespace attend::testing {

// Draws configs whose fields are independent of each other, as far as they combine.
class FamilyConfigs {
 public:
  explicit FamilyConfigs(uint64_t seed) : random_(seed) {}

  ModelConfig Next() {
    ModelConfig c;
    c.source = "attend_encoder";
    DrawSizes(c);
    DrawPosition(c);
    DrawAttention(c);
    DrawNormalizer(c);
    c.norm = OneOf({NormPlace::kPost, NormPlace::kPre, NormPlace::kNone});
    c.norm_type = OneOf({NormType::kLayerNorm, NormType::kRmsNorm});
    c.norm_eps = OneOf({1e-12, 1e-5, 1e-2});
    c.residual = random_.Below(4) != 0;
    c.activation = OneOf({Activation::kGelu, Activation::kGeluTanh, Activation::kRelu,
                          Activation::kSilu, Activation::kGeglu, Activation::kSwiglu});
    DrawTask(c);
    // Without norms, sums over all positions and powers of scores grow from layer to layer.
    const bool soft = c.normalizer == Normalizer::kSoftmax || c.normalizer == Normalizer::kSoftmax1;
    if (!soft && c.norm == NormPlace::kNone) {
      c.normalizer_length = true;
      c.num_layers = std::min<int64_t>(c.num_layers, 1);
    }
    return c;
  }

 private:
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[random_.Below(static_cast<int64_t>(values.size()))];
  }
  bool Coin() { return random_.Below(2) == 0; }

  void DrawSizes(ModelConfig& c) {
    const int64_t group = OneOf<int64_t>({1, 1, 1, 2, 3});  // query heads a key/value head
    c.num_kv_heads = OneOf<int64_t>({1, 2, 3, 4});
    c.num_heads = c.num_kv_heads * group;
    c.head_dim = OneOf<int64_t>({1, 2, 3, 4, 8, 10, 16, 24, 32});
    c.output_projection = random_.Below(3) != 0;
    const int64_t width = c.num_heads * c.head_dim;
    c.hidden_size = c.output_projection ? OneOf<int64_t>({1, 2, 7, 16, 24, 33, 64, 96}) : width;
    c.embedding_size = c.hidden_size;
    c.num_layers = OneOf<int64_t>({0, 1, 1, 2, 2, 3});
    c.intermediate_size = OneOf<int64_t>({0, 1, 5, 32, 50, 130});
    if (Coin()) {
      c.vocab_size = OneOf<int64_t>({1, 2, 40, 1000});
    } else {
      c.input_size = OneOf<int64_t>({1, 3, 16, 40, c.hidden_size});
    }
  }

  void DrawPosition(ModelConfig& c) {
    c.position =
        OneOf({Position::kNone, Position::kLearned, Position::kSinusoidal, Position::kRotary});
    if (c.position == Position::kRotary && c.head_dim % 2 != 0) c.position = Position::kSinusoidal;
    if (c.position == Position::kLearned) c.max_positions = c.max_length = 300;
    c.rope_theta = OneOf({10000.0, 500.0, 2.0});
  }

  void DrawAttention(ModelConfig& c) {
    c.score = OneOf({Score::kScaledDot, Score::kDot, Score::kAdditive});
    if (c.score == Score::kAdditive && c.position == Position::kRotary) c.score = Score::kDot;
    if (c.score == Score::kAdditive) c.score_size = OneOf<int64_t>({1, 5, 8, 16, 20});
    c.score_bias =
        OneOf({ScoreBias::kNone, ScoreBias::kNone, ScoreBias::kAlibi, ScoreBias::kRelative});
    c.relative_buckets = OneOf<int64_t>({4, 10, 32});
    c.relative_max_distance = OneOf<int64_t>({9, 50, 128});
    c.causal = random_.Below(3) == 0;
    c.windowed = random_.Below(3) == 0;
    c.window_left = OneOf<int64_t>({0, 1, 5, 20, 1000});
    c.window_right = OneOf<int64_t>({0, 2, 16, 40});
    c.global_tokens = OneOf<int64_t>({0, 0, 1, 3, 17});
    c.edges = random_.Below(4) == 0;
  }

  void DrawNormalizer(ModelConfig& c) {
    c.normalizer =
        OneOf({Normalizer::kSoftmax, Normalizer::kSoftmax, Normalizer::kSoftmax1, Normalizer::kRelu,
               Normalizer::kRelu2, Normalizer::kSigmoid, Normalizer::kNone});
    const bool soft = c.normalizer == Normalizer::kSoftmax || c.normalizer == Normalizer::kSoftmax1;
    c.normalizer_length = !soft && Coin();
  }

  void DrawTask(ModelConfig& c) {
    c.task = OneOf({Task::kHidden, Task::kTokens, Task::kSequence});
    if (c.task == Task::kHidden) return;
    if (c.task == Task::kSequence) {
      c.pooling = OneOf({Pooling::kMean, Pooling::kMax, Pooling::kFirst, Pooling::kLast});
    }
    c.num_labels = OneOf<int64_t>({1, 2, 3, 17});
    for (int64_t i = 0; i < c.num_labels; ++i) c.labels.push_back("L" + std::to_string(i));
  }

  Random random_;
};

// A config in a line, for messages.
inline std::string Describe(const ModelConfig& c) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  std::string text = "N" + number(c.num_layers) + " D" + number(c.hidden_size) + " H" +
                     number(c.num_heads) + " G" + number(c.num_kv_heads) + " E" +
                     number(c.head_dim) + " F" + number(c.intermediate_size) + " V" +
                     number(c.vocab_size) + " input " + number(c.input_size);
  text += std::string(", position ") + Name(c.position) + ", score " + Name(c.score) + " " +
          number(c.score_size) + ", bias " + Name(c.score_bias) + ", " + Name(c.normalizer) +
          (c.normalizer_length ? " by length" : "");
  if (c.causal) text += ", causal";
  if (c.windowed) text += ", window " + number(c.window_left) + " " + number(c.window_right);
  text += ", global " + number(c.global_tokens);
  if (c.edges) text += ", edges";
  text +=
      std::string(", norm ") + Name(c.norm) + " " + Name(c.norm_type) + ", " + Name(c.activation);
  if (!c.residual) text += ", no residual";
  if (!c.output_projection) text += ", no output projection";
  return text + ", task " + Name(c.task) + " " + Name(c.pooling);
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_FAMILY_CONFIGS_H_
