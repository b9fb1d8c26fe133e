// What of an attention is fixed for a layer: the kernel's AttentionSpec from the config, and the
// tables that it points to, which the layers of a graph share.
#ifndef ATTEND_ENGINE_OPS_ATTENTION_SPEC_H_
#define ATTEND_ENGINE_OPS_ATTENTION_SPEC_H_

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "engine/graph.h"
#include "kernels/attention.h"

namespace attend::ops {

inline AttentionNormalizer KernelNormalizer(Normalizer normalizer) {
  switch (normalizer) {
    case Normalizer::kSoftmax1:
      return AttentionNormalizer::kSoftmax1;
    case Normalizer::kRelu:
      return AttentionNormalizer::kRelu;
    case Normalizer::kRelu2:
      return AttentionNormalizer::kRelu2;
    case Normalizer::kSigmoid:
      return AttentionNormalizer::kSigmoid;
    case Normalizer::kNone:
      return AttentionNormalizer::kNone;
    default:
      return AttentionNormalizer::kSoftmax;
  }
}

// m_h = 2^(-8 (h + 1) / H). Press et al. 2021.
inline const float* AlibiSlopes(Graph& graph, int64_t heads) {
  return graph.SharedTable("alibi", heads, [=](float* slopes) {
    for (int64_t h = 0; h < heads; ++h) {
      slopes[h] = static_cast<float>(
          std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads)));
    }
  });
}

// The number of the bucket of distance d = j - i. Raffel et al. 2020 (T5): half of the buckets for
// each direction, or all of them for what lies behind; near distances have one each, the others
// share more and more.
inline int64_t RelativeBucket(int64_t distance, int64_t buckets, int64_t max_distance,
                              bool both_directions) {
  const int64_t n = both_directions ? buckets / 2 : buckets;
  const int64_t base = both_directions && distance > 0 ? n : 0;
  const int64_t a = both_directions ? std::abs(distance) : std::max<int64_t>(-distance, 0);
  const int64_t exact = n / 2;
  if (a < exact) return base + a;
  const double near = static_cast<double>(exact);
  const double ratio =
      std::log(static_cast<double>(a) / near) / std::log(static_cast<double>(max_distance) / near);
  const double step = std::floor(ratio * static_cast<double>(n - exact));
  return base + std::min(n - 1, exact + static_cast<int64_t>(step));
}

// The biases of all distances out of those of the buckets, `table` [buckets, H]; farther than
// `max_distance` all are alike.
struct RelativeTable {
  std::span<const float> table;
  int64_t heads = 0, buckets = 0, max_distance = 0;
  bool both_directions = true;
};
inline void ExpandRelative(const RelativeTable& t, int64_t farthest, float* out) {
  const int64_t width = DistanceBiasWidth(farthest);
  for (int64_t i = 0; i < width; ++i) {
    const int64_t distance = std::clamp(i - farthest - kKeyBlock, -farthest, farthest);
    const int64_t bucket = RelativeBucket(distance, t.buckets, t.max_distance, t.both_directions);
    for (int64_t h = 0; h < t.heads; ++h) {
      out[h * width + i] = t.table[static_cast<size_t>(bucket * t.heads + h)];
    }
  }
}

// Sets the relative bias of `spec` from tensor `name` [relative_buckets, H].
inline Status SetRelativeBias(Graph& graph, const std::string& name, bool both_directions,
                              AttentionSpec& spec) {
  const ModelConfig& config = graph.config();
  const Result<std::span<const float>> table = graph.weights().GetVector(name);
  if (!table.ok()) return table.status();
  if (table->empty()) {
    return Status(ErrorCode::kCorrupt, "the tensor is missing", "tensor " + name);
  }
  const RelativeTable relative{.table = *table,
                               .heads = spec.heads,
                               .buckets = config.relative_buckets,
                               .max_distance = config.relative_max_distance,
                               .both_directions = both_directions};
  // No two positions are farther apart than the longest sequence is long.
  spec.max_distance = std::min(config.relative_max_distance, graph.longest_sequence());
  const int64_t farthest = spec.max_distance;
  spec.distance_bias =
      graph.SharedTable(name, spec.heads * DistanceBiasWidth(farthest),
                        [=](float* out) { ExpandRelative(relative, farthest, out); });
  return Status();
}

// Whether scores and sums of the attention NAME are in bf16: if its projections are less exact than
// f32 and the CPU has a unit for it, unless the weights are recorded.
inline bool AttendsInPairs(const Graph& graph, const ModelConfig& c, const std::string& name) {
  const bool rounded = graph.LayerType(name + ".q") != GemmType::kF32 &&
                       graph.LayerType(name + ".k") != GemmType::kF32 &&
                       graph.LayerType(name + ".v") != GemmType::kF32;
  // A cache copies blocks of values by their rows, which in pairs are whole for even widths alone.
  const bool whole = !IsDecoder(c) || c.head_dim % 2 == 0;
  return rounded && whole && CanAttendInPairs() && c.score != Score::kAdditive &&
         !graph.recorded().any();
}

// Heads and scores as the config `c` of the side that asks has them, and nothing of positions:
// attention to another sequence.
inline AttentionSpec CrossAttentionSpec(const Graph& graph, const ModelConfig& c,
                                        const std::string& name) {
  AttentionSpec spec;
  spec.heads = c.num_heads;
  spec.kv_heads = c.num_kv_heads;
  spec.key_dim = spec.value_dim = c.head_dim;
  if (c.score == Score::kScaledDot) {
    spec.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  }
  spec.pairs = AttendsInPairs(graph, c, name);
  return spec;
}

// The spec of self-attention as the config has it; `name` is the layer's "layers.0.attention", and
// `prefix` goes before the names of tables that layers share. The relative bias of a decoder knows
// one direction, that of an encoder two.
inline Result<AttentionSpec> SelfAttentionSpec(Graph& graph, const std::string& name,
                                               const std::string& prefix = {}) {
  const ModelConfig& c = graph.config();
  AttentionSpec spec = CrossAttentionSpec(graph, c, name);
  if (c.score == Score::kAdditive) {
    spec.key_dim = c.score_size;
    const Result<std::span<const float>> va = graph.weights().GetVector(name + ".va");
    if (!va.ok()) return va.status();
    spec.additive = va->data();
  }
  if (c.score_bias == ScoreBias::kAlibi) spec.alibi_slopes = AlibiSlopes(graph, c.num_heads);
  if (c.score_bias == ScoreBias::kRelative) {
    ATTEND_RETURN_IF_ERROR(SetRelativeBias(graph, prefix + "relative.weight", !IsDecoder(c), spec));
  }
  spec.causal = c.causal;
  if (c.windowed) {
    spec.window_left = c.window_left;
    spec.window_right = c.window_right;
    spec.global_tokens = c.global_tokens;
  }
  spec.normalizer = KernelNormalizer(c.normalizer);
  spec.divide_by_seen = c.normalizer_length;
  return spec;
}

// "additive, alibi, causal, window 4 1, global 2, relu by length, 4 heads of 8 over 2".
inline std::string DescribeAttention(const AttentionSpec& spec) {
  constexpr const char* kNormalizers[] = {"softmax", "softmax1", "relu",
                                          "relu2",   "sigmoid",  "no normaliser"};
  std::string text = "attention, ";
  if (spec.additive != nullptr) text += "additive, ";
  if (spec.alibi_slopes != nullptr) text += "alibi, ";
  if (spec.distance_bias != nullptr) text += "relative bias, ";
  if (spec.causal) text += "causal, ";
  if (spec.window_left >= 0 || spec.window_right >= 0) {
    text += "window " + std::to_string(spec.window_left) + " " + std::to_string(spec.window_right);
    if (spec.global_tokens > 0) text += ", global " + std::to_string(spec.global_tokens);
    text += ", ";
  }
  text += kNormalizers[static_cast<int>(spec.normalizer)];
  if (spec.divide_by_seen) text += " by length";
  if (spec.pairs) text += ", bf16";
  return text + ", " + std::to_string(spec.heads) + " heads of " + std::to_string(spec.value_dim) +
         " over " + std::to_string(spec.kv_heads);
}

// Of a pair, all heads. A tanh by the quotient of powers counts as ten operations.
inline double FlopsPerPair(const AttentionSpec& spec) {
  const int64_t score = (spec.additive != nullptr ? 10 : 2) * spec.key_dim;
  return static_cast<double>(spec.heads * (score + 2 * spec.value_dim));
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_ATTENTION_SPEC_H_
