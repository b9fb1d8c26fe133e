// One attention problem of any kind: inputs in rows with strides, packed, the arguments of a call
// for all of it, and the same for the twin. Shared by the tests of attention.
#ifndef ATTEND_TESTS_ATTENTION_PROBLEM_H_
#define ATTEND_TESTS_ATTENTION_PROBLEM_H_

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.h"
#include "tests/testing.h"

namespace attend::testing {

struct AttentionShape {
  int64_t queries, keys, heads, kv_heads, key_dim, value_dim;
  int64_t query_begin = 0;
};

inline const char* Name(AttentionNormalizer n) {
  constexpr const char* kNames[] = {"softmax", "softmax1", "relu", "relu2", "sigmoid", "none"};
  return kNames[static_cast<int>(n)];
}
inline constexpr AttentionNormalizer kAllNormalizers[] = {
    AttentionNormalizer::kSoftmax, AttentionNormalizer::kSoftmax1, AttentionNormalizer::kRelu,
    AttentionNormalizer::kRelu2,   AttentionNormalizer::kSigmoid,  AttentionNormalizer::kNone};

// What is behind the last key is NaN.
class AttentionProblem {
 public:
  explicit AttentionProblem(const AttentionShape& s, uint64_t seed = 1, double size = 1.0)
      : shape(s),
        q(s.queries, s.heads * s.key_dim, s.heads * s.key_dim + 5, 1),
        k(s.keys, s.kv_heads * s.key_dim, s.kv_heads * s.key_dim + 3, 3),
        v(s.keys, s.kv_heads * s.value_dim, s.kv_heads * s.value_dim + 1, 5),
        out(s.queries, s.heads * s.value_dim, s.heads * s.value_dim + 7, 2),
        packed_k(Padded() * s.kv_heads * s.key_dim, std::numeric_limits<float>::quiet_NaN()),
        packed_v(Padded() * s.kv_heads * s.value_dim, std::numeric_limits<float>::quiet_NaN()),
        scratch(AttentionScratchFloats(s.keys), std::numeric_limits<float>::quiet_NaN()),
        seed_(seed) {
    q.FillNormal(3 * seed, size);
    k.FillNormal(3 * seed + 1, size);
    v.FillNormal(3 * seed + 2, size);
    spec.heads = s.heads;
    spec.kv_heads = s.kv_heads;
    spec.key_dim = s.key_dim;
    spec.value_dim = s.value_dim;
    spec.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.key_dim)));
  }
  AttentionProblem(const AttentionProblem&) = delete;
  AttentionProblem& operator=(const AttentionProblem&) = delete;

  // ---- The parts of the family ----

  void SetAdditive() {
    additive = NormalVector(shape.heads * shape.key_dim, seed_ + 100,
                            1.5 / std::sqrt(static_cast<double>(shape.key_dim)));
    spec.additive = additive.data();
    what += " additive";
  }
  void SetAlibi() {
    slopes.clear();
    for (int64_t h = 0; h < shape.heads; ++h) {
      slopes.push_back(static_cast<float>(
          std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(shape.heads))));
    }
    spec.alibi_slopes = slopes.data();
    what += " alibi";
  }
  void SetDistanceBias(int64_t max_distance) {
    near_ = NormalVector(shape.heads * (2 * max_distance + 1), seed_ + 200);
    spec.max_distance = max_distance;
    distances.clear();
    for (int64_t h = 0; h < shape.heads; ++h) {
      for (int64_t i = 0; i < DistanceBiasWidth(max_distance); ++i) {
        distances.push_back(static_cast<float>(Distance(h, i - max_distance - kKeyBlock)));
      }
    }
    spec.distance_bias = distances.data();
    what += " distance " + std::to_string(max_distance);
  }
  // `share` of the pairs have -inf.
  void SetDenseBias(double share) {
    dense = NormalVector(shape.heads * shape.queries * ld_bias(), seed_ + 300);
    Random random(seed_ + 301);
    for (float& bias : dense) {
      if (random.Uniform() < share) bias = -std::numeric_limits<float>::infinity();
    }
    what += " dense";
  }
  // Every row sees each key with the chance `share`; some rows see nobody.
  void SetEdges(double share) {
    Random random(seed_ + 400);
    edge_offsets.assign(1, 0);
    edge_keys.clear();
    for (int64_t i = 0; i < shape.queries; ++i) {
      const bool nobody = random.Uniform() < 0.1;
      for (int64_t j = 0; j < shape.keys; ++j) {
        if (!nobody && random.Uniform() < share) edge_keys.push_back(static_cast<int32_t>(j));
      }
      edge_offsets.push_back(static_cast<int32_t>(edge_keys.size()));
    }
    edge_keys.push_back(0);  // never a null pointer
    what += " edges";
  }
  void SetCausal() {
    spec.causal = true;
    what += " causal";
  }
  void SetWindow(int64_t left, int64_t right, int64_t global_tokens) {
    spec.window_left = left;
    spec.window_right = right;
    spec.global_tokens = global_tokens;
    what += " window " + std::to_string(left) + " " + std::to_string(right) + " global " +
            std::to_string(global_tokens);
  }
  void SetNormalizer(AttentionNormalizer normalizer, bool divide_by_seen = false) {
    spec.normalizer = normalizer;
    spec.divide_by_seen = divide_by_seen;
    what += std::string(" ") + Name(normalizer) + (divide_by_seen ? " by length" : "");
  }

  // By the CPU's bf16 unit; not with SetAdditive.
  void SetPairs() {
    spec.pairs = true;
    what += " pairs";
  }

  // ---- Running it ----

  // Once for each ISA; of pairs, for the one that has the unit, if this CPU does.
  void ForEachIsa(const std::function<void(Isa)>& test) const {
    testing::ForEachIsaAndUnit([&](Isa isa) {
      if (spec.pairs ? CanAttendInPairs() : isa <= Isa::kAvx512) test(isa);
    });
  }

  int64_t Padded() const { return (shape.keys + kKeyBlock - 1) / kKeyBlock * kKeyBlock; }
  int64_t ld_bias() const { return shape.keys + 1; }

  PackKvArgs PackArgs() {
    return {.k = k.data(),
            .v = v.data(),
            .packed_k = packed_k.data(),
            .packed_v = packed_v.data(),
            .rows = shape.keys,
            .ldk = k.ld(),
            .ldv = v.ld(),
            .kv_heads = shape.kv_heads,
            .key_dim = shape.key_dim,
            .value_dim = shape.value_dim,
            .head_end = shape.kv_heads,
            .pairs = spec.pairs};
  }

  // Of rows [begin, begin + count).
  AttentionArgs Args(int64_t begin, int64_t count) {
    AttentionArgs args;
    args.spec = &spec;
    args.q = q.row(begin);
    args.packed_k = packed_k.data();
    args.packed_v = packed_v.data();
    args.out = out.row(begin);
    args.query_begin = shape.query_begin + begin;
    args.query_count = count;
    args.num_keys = shape.keys;
    args.ldq = q.ld();
    args.ld_out = out.ld();
    args.head_end = shape.heads;
    if (!dense.empty()) args.dense_bias = dense.data() + begin * ld_bias();
    args.ld_bias = ld_bias();
    args.bias_head = shape.queries * ld_bias();
    if (!edge_offsets.empty()) {
      args.edge_offsets = edge_offsets.data() + begin;
      args.edge_keys = edge_keys.data();
    }
    args.scratch = scratch.data();
    return args;
  }
  AttentionArgs Args() { return Args(0, shape.queries); }

  std::vector<float> Run() {
    BindPackKv()(PackArgs());
    BindAttention()(Args());
    out.CheckGuards();
    return out.Values();
  }

  // ---- The twin ----

  bool Sees(int64_t row, int64_t j) const {
    if (!edge_offsets.empty()) {
      const auto begin = edge_keys.begin() + edge_offsets[static_cast<size_t>(row)];
      const auto end = edge_keys.begin() + edge_offsets[static_cast<size_t>(row) + 1];
      if (std::find(begin, end, static_cast<int32_t>(j)) == end) return false;
    }
    return reference::SeesWithin(spec.causal, spec.window_left, spec.window_right,
                                 spec.global_tokens)(shape.query_begin + row, j);
  }

  double Bias(int64_t h, int64_t row, int64_t j) const {
    const int64_t distance = j - shape.query_begin - row;
    double bias = 0.0;
    if (!slopes.empty()) {
      bias -= static_cast<double>(slopes[static_cast<size_t>(h)]) *
              static_cast<double>(std::abs(distance));
    }
    if (!distances.empty()) bias += Distance(h, distance);
    if (!dense.empty()) {
      const int64_t at = (h * shape.queries + row) * ld_bias() + j;
      bias += static_cast<double>(dense[static_cast<size_t>(at)]);
    }
    return bias;
  }

  reference::AttentionInput Input() const {
    reference::AttentionInput input;
    input.q = q.ToMatrix();
    input.k = k.ToMatrix();
    input.v = v.ToMatrix();
    input.heads = shape.heads;
    input.kv_heads = shape.kv_heads;
    input.scale = static_cast<double>(spec.scale);
    if (!additive.empty()) {
      input.additive = reference::Matrix::From(additive, shape.heads, shape.key_dim);
    }
    input.bias = [this](int64_t h, int64_t i, int64_t j) { return Bias(h, i, j); };
    input.sees = [this](int64_t i, int64_t j) { return Sees(i, j); };
    input.normalizer =
        static_cast<reference::Normalizer>(static_cast<int>(spec.normalizer));  // the same order
    input.divide_by_seen = spec.divide_by_seen;
    if (spec.pairs) RoundInput(&input);
    return input;
  }

  // What pairs round; of the weights too, which the twin does not.
  void RoundInput(reference::AttentionInput* input) const {
    const bool powers = spec.normalizer <= AttentionNormalizer::kSoftmax1 ||
                        spec.normalizer == AttentionNormalizer::kSigmoid;
    const float unit = powers ? 1.44269504f : 1.0f, scale = spec.scale * unit;
    for (double& x : input->q.data) x = reference::RoundBf16(static_cast<float>(x) * scale);
    for (double& x : input->k.data) x = reference::RoundBf16(x);
    for (double& x : input->v.data) x = reference::RoundBf16(x);
    input->scale = 1.0 / static_cast<double>(unit);
  }

  // Of the rounding of weights: 2^-8 times the sum of |w v|, which with weights that are scores is
  // that of their positive and negative parts.
  reference::Matrix RoundingBounds() const {
    reference::AttentionInput input = Input();
    for (double& value : input.v.data) value = std::abs(value);
    reference::Matrix bounds = reference::Attention(input);
    if (spec.normalizer == AttentionNormalizer::kNone) {
      input.normalizer = static_cast<reference::Normalizer>(AttentionNormalizer::kRelu);
      const reference::Matrix positive = reference::Attention(input);
      for (size_t i = 0; i < bounds.data.size(); ++i) {
        bounds.data[i] = 2 * positive.data[i] - bounds.data[i];
      }
    }
    for (double& bound : bounds.data) bound *= 0x1p-8;
    return bounds;
  }

  // The bound of the header. Weights that are not divided by their sum add up to about the number
  // of keys, and so do their errors; of additive scores, see attention_score-inl.h.
  double Absolute() const {
    const bool sums_to_one = spec.normalizer == AttentionNormalizer::kSoftmax ||
                             spec.normalizer == AttentionNormalizer::kSoftmax1 ||
                             spec.divide_by_seen;
    double bound = 2e-6;
    for (int64_t h = 0; h < shape.heads && !additive.empty(); ++h) {
      double sum = 0.0;
      for (int64_t a = 0; a < shape.key_dim; ++a) {
        sum += std::abs(static_cast<double>(additive[static_cast<size_t>(h * shape.key_dim + a)]));
      }
      bound = std::max(bound, 2e-6 + 1e-6 * sum);
    }
    // Far keys under ALiBi, and sums of normal numbers, reach scores of 10 and more.
    if (!slopes.empty() || !dense.empty()) bound *= 2;
    return sums_to_one ? bound : bound * std::max(1.0, 0.1 * static_cast<double>(shape.keys));
  }

  std::string Describe() const {
    return "Lq " + std::to_string(shape.queries) + " from " + std::to_string(shape.query_begin) +
           " Lk " + std::to_string(shape.keys) + " H " + std::to_string(shape.heads) + " G " +
           std::to_string(shape.kv_heads) + " A " + std::to_string(shape.key_dim) + " E " +
           std::to_string(shape.value_dim) + what;
  }

  // Holds the kernel against the twin on every ISA.
  void ExpectEqualsTwin() {
    const reference::Matrix want = reference::Attention(Input());
    const reference::Matrix rounding = spec.pairs ? RoundingBounds() : reference::Matrix();
    ForEachIsa([&](Isa) {
      const std::vector<float> got = Run();
      if (!spec.pairs) return ExpectNear(got, want.data, Absolute(), 4e-6, Describe());
      for (size_t i = 0; i < got.size(); ++i) {
        // Scores are of sums that the unit rounds differently: a little more than in f32.
        ASSERT_NEAR(got[i], want.data[i],
                    rounding.data[i] + 4 * Absolute() + 1e-5 * std::abs(want.data[i]))
            << Describe() << " element " << i;
      }
    });
  }

  AttentionShape shape;
  GuardedRows q, k, v, out;
  GuardedFloats packed_k, packed_v, scratch;
  AttentionSpec spec;
  std::vector<float> additive, slopes, distances, dense;
  std::vector<int32_t> edge_offsets, edge_keys;
  std::string what;

 private:
  double Distance(int64_t h, int64_t d) const {
    const int64_t most = spec.max_distance;
    const int64_t at = h * (2 * most + 1) + std::clamp(d, -most, most) + most;
    return static_cast<double>(near_[static_cast<size_t>(at)]);
  }

  uint64_t seed_;
  std::vector<float> near_;  // [H, 2 max_distance + 1]: of every distance, without the ends
};

}  // namespace attend::testing

#endif  // ATTEND_TESTS_ATTENTION_PROBLEM_H_
