// The second stage of attention: scores of a chunk become weights. Keys that a row does not see get
// the score -inf, biases are added (with the largest score taken in the same pass), and the
// normaliser makes weights. Each bias and each normaliser is one struct or function here and one
// line in AddBiases or MapScores.
#if defined(ATTEND_KERNELS_ATTENTION_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ATTENTION_WEIGHTS_INL_H_
#undef ATTEND_KERNELS_ATTENTION_WEIGHTS_INL_H_
#else
#define ATTEND_KERNELS_ATTENTION_WEIGHTS_INL_H_
#endif

#include <algorithm>

#include "kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// ---- Structure ----

// -inf where a row does not see a key, whatever lies there.
template <size_t kR>
HWY_INLINE void MaskScores(F32 d, const KeyWalk& walk, float* scores) {
  const KeyChunk& chunk = walk.chunk();
  const hn::RebindToSigned<F32> di;
  HWY_ALIGN static constexpr int32_t kBits[kBlock] = {
      1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
      1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  for (size_t b = 0; b < chunk.blocks; ++b) {
    if (walk.AllSee(b)) continue;
    auto lanes = hn::Set(di, static_cast<int32_t>(walk.Lanes(b, 0)));
    for (size_t r = 0; r < kR; ++r) {
      if (!walk.alike()) lanes = hn::Set(di, static_cast<int32_t>(walk.Lanes(b, r)));
      float* p = scores + (b * kR + r) * kBlock;
      for (size_t i = 0; i < kBlock; i += kLanes) {
        const auto bit = hn::Load(di, kBits + i);
        const auto seen = hn::RebindMask(d, hn::Eq(hn::And(lanes, bit), bit));
        hn::Store(hn::IfThenElse(seen, hn::Load(d, p + i), hn::Set(d, -kInfinity)), d, p + i);
      }
    }
  }
}

// ---- Biases: of one row; Add gives the scores of kLanes keys from `key` on with theirs ----

struct NoBias {
  static constexpr bool kAny = false;
  HWY_INLINE VF Add(F32, VF scores, int64_t) const { return scores; }
};

// -slope |i - j|.
struct AlibiBias {
  static constexpr bool kAny = true;
  AlibiBias(const Head& head, size_t r)
      : slope(-*head.alibi_slope * head.unit),
        position(head.args->query_begin + head.row + static_cast<int64_t>(r)) {}
  HWY_INLINE VF Add(F32 d, VF scores, int64_t key) const {
    const VF distance = hn::Iota(d, static_cast<float>(key - position));
    return hn::MulAdd(hn::Set(d, slope), hn::Abs(distance), scores);
  }
  float slope;
  int64_t position;
};

// A table by distance j - i.
struct DistanceBias {
  static constexpr bool kAny = true;
  DistanceBias(const Head& head, size_t r)
      : most(head.args->spec->max_distance),
        middle(head.distance_bias + most + kKeyBlock),
        position(head.args->query_begin + head.row + static_cast<int64_t>(r)),
        unit(head.unit) {}
  HWY_INLINE VF Add(F32 d, VF scores, int64_t key) const {
    // By whole blocks, as the table's ends are made for it.
    const int64_t lane = key % kKeyBlock;
    const int64_t distance = std::clamp(key - lane - position, -most - kKeyBlock, most + 1);
    return hn::MulAdd(hn::LoadU(d, middle + distance + lane), hn::Set(d, unit), scores);
  }
  int64_t most;
  const float* middle;
  int64_t position;
  float unit;
};

// A number for every pair; -inf also where a score has overflowed.
struct DenseBias {
  static constexpr bool kAny = true;
  DenseBias(const Head& head, size_t r)
      : row(head.dense_bias + (head.row + static_cast<int64_t>(r)) * head.args->ld_bias),
        keys(head.args->num_keys),
        unit(head.unit) {}
  HWY_INLINE VF Add(F32 d, VF scores, int64_t key) const {
    constexpr int64_t lanes = kLanes;
    if (key >= keys) return scores;
    const VF bias = key + lanes <= keys ? hn::LoadU(d, row + key)
                                        : LoadTail(d, row + key, static_cast<size_t>(keys - key));
    const VF sum = hn::MulAdd(bias, hn::Set(d, unit), scores);
    const VF none = hn::Set(d, -kInfinity);
    return hn::IfThenElse(hn::Eq(bias, none), none, sum);
  }
  const float* row;
  int64_t keys;
  float unit;
};

// Adds the bias to a row, and finds its largest score; -inf if no key counts.
template <class Bias>
HWY_INLINE float AddBias(F32 d, const Bias& bias, const KeyChunk& chunk, size_t stride, float* p) {
  VF largest = hn::Set(d, -kInfinity);
  for (size_t b = 0; b < chunk.blocks; ++b, p += stride) {
    const int64_t key = chunk.logical[b] * kKeyBlock;
    for (size_t i = 0; i < kBlock; i += kLanes) {
      VF s = hn::Load(d, p + i);
      if constexpr (Bias::kAny) {
        s = bias.Add(d, s, key + static_cast<int64_t>(i));
        hn::Store(s, d, p + i);
      }
      // A NaN is passed over here: it stays in its lane and makes the row's sum NaN.
      largest = hn::Max(largest, s);
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <class Bias>
HWY_NOINLINE void AddBiasToRows(const Head& head, const KeyChunk& chunk, size_t rows, float* scores,
                                float* most) {
  const F32 d;
  for (size_t r = 0; r < rows; ++r) {
    most[r] = AddBias(d, Bias(head, r), chunk, rows * kBlock, scores + r * kBlock);
  }
}

// Adds all biases there are. If there are any, `most` gets the rows' largest scores.
HWY_INLINE bool AddBiases(const Head& head, const KeyChunk& chunk, size_t rows, float* scores,
                          float* most) {
  if (head.alibi_slope != nullptr) {
    AddBiasToRows<AlibiBias>(head, chunk, rows, scores, most);
  }
  if (head.distance_bias != nullptr) {
    AddBiasToRows<DistanceBias>(head, chunk, rows, scores, most);
  }
  if (head.dense_bias != nullptr) AddBiasToRows<DenseBias>(head, chunk, rows, scores, most);
  return head.alibi_slope != nullptr || head.distance_bias != nullptr || head.dense_bias != nullptr;
}

// ---- Normalisers ----

// The largest score of a row that has one of +inf, from finite inputs that overflowed, or a NaN in
// the last lanes. +inf becomes the largest number, so that inf - inf makes no NaN.
HWY_NOINLINE float ClampRow(const KeyChunk& chunk, size_t stride, float* p) {
  float most = -kInfinity;
  for (size_t b = 0; b < chunk.blocks; ++b, p += stride) {
    for (size_t i = 0; i < kBlock; ++i) {
      if (p[i] > kLargest) p[i] = kLargest;
      if (p[i] > most) most = p[i];
    }
  }
  return most;
}

// Stores a block's weights of a row, from the i-th on, in pairs of bf16 in the first half of their
// place if kPairs.
template <bool kPairs>
HWY_INLINE void StoreWeights(F32 d, VF weights, size_t i, float* block) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kPairs) {
    const hn::Rebind<uint16_t, F32> d16;
    hn::Store(NarrowToBf16(weights), d16, reinterpret_cast<uint16_t*>(block) + i);
    return;
  }
#endif
  hn::Store(weights, d, block + i);
}

// Scores become 2^(score - largest so far), and the states of the rows are brought up to date.
// `most`: the largest scores of the chunk, or null. The extra key of softmax1 has been seen before
// all others.
template <bool kPairs, size_t kR>
HWY_INLINE void ExpRows(F32 d, bool extra, bool first, const KeyChunk& chunk, const float* known,
                        float* scores, RowStates& states) {
  for (size_t r = 0; r < kR; ++r) {
    float* p = scores + r * kBlock;
    float most = known != nullptr ? known[r] : AddBias(d, NoBias(), chunk, kR * kBlock, p);
    if (!(most <= kLargest)) most = ClampRow(chunk, kR * kBlock, p);
    float rescale = 0.0f, before = 0.0f;
    const float most_before = !first ? states.most[r] : extra ? 0.0f : -kInfinity;
    if (most_before != -kInfinity) {
      most = std::max(most, most_before);
      rescale = hn::GetLane(Exp2Nonpositive(d, hn::Set(d, most_before - most)));
      before = (first ? 1.0f : states.sum[r]) * rescale;
    }
    states.rescale[r] = rescale;
    states.most[r] = most;
    // Nothing to see so far: any finite shift makes all weights 0.
    const VF shift = hn::Set(d, most == -kInfinity ? 0.0f : most);
    VF sum = hn::Zero(d);
    for (size_t b = 0; b < chunk.blocks; ++b, p += kR * kBlock) {
      for (size_t i = 0; i < kBlock; i += kLanes) {
        const VF score = hn::Sub(hn::Load(d, p + i), shift);
        const VF weight = kPairs ? RoughExp2Nonpositive(d, score) : Exp2Nonpositive(d, score);
        sum = hn::Add(sum, weight);
        StoreWeights<kPairs>(d, weight, i, p);
      }
    }
    const float total = before + hn::GetLane(hn::SumOfLanes(d, sum));
    states.sum[r] = total;
    states.factor[r] = !chunk.last ? 1.0f : total == 0.0f ? 0.0f : 1.0f / total;
  }
}

// `count` scores become f(score), which is 0 at -inf.
template <class F>
HWY_INLINE void MapScores(F32 d, size_t count, float* scores, const F& f) {
  for (size_t i = 0; i < count; i += kLanes) {
    hn::Store(f(hn::Load(d, scores + i)), d, scores + i);
  }
}

// Max gives its second operand if one is NaN: NaN stays.
HWY_INLINE VF ReluWeight(F32 d, VF s) { return hn::Max(hn::Zero(d), s); }
HWY_INLINE VF Relu2Weight(F32 d, VF s) {
  const VF relu = ReluWeight(d, s);
  return hn::Mul(relu, relu);
}
// 1 / (1 + 2^-s).
HWY_INLINE VF SigmoidWeight(F32 d, VF s) {
  const VF one = hn::Set(d, 1.0f);
  const VF e = Exp2Nonpositive(d, hn::Or(s, hn::Set(d, -0.0f)));  // of -|s|
  return hn::Div(hn::IfNegativeThenElse(s, e, one), hn::Add(one, e));
}
HWY_INLINE VF PlainWeight(F32 d, VF s) {
  return hn::IfThenZeroElse(hn::Eq(s, hn::Set(d, -kInfinity)), s);
}

// Whether scores are to be in powers of two, and whether there is a sum to divide by.
constexpr bool TakesPowers(AttentionNormalizer n) {
  return n == AttentionNormalizer::kSoftmax || n == AttentionNormalizer::kSoftmax1 ||
         n == AttentionNormalizer::kSigmoid;
}
constexpr bool IsSoftmax(AttentionNormalizer n) {
  return n == AttentionNormalizer::kSoftmax || n == AttentionNormalizer::kSoftmax1;
}

// The normalisers that need nothing of a row's other scores.
HWY_NOINLINE void MapScores(AttentionNormalizer normalizer, size_t count, float* scores) {
  const F32 d;
  switch (normalizer) {
    case AttentionNormalizer::kRelu:
      MapScores(d, count, scores, [d](VF s) ATTEND_INLINE_LAMBDA { return ReluWeight(d, s); });
      break;
    case AttentionNormalizer::kRelu2:
      MapScores(d, count, scores, [d](VF s) ATTEND_INLINE_LAMBDA { return Relu2Weight(d, s); });
      break;
    case AttentionNormalizer::kSigmoid:
      MapScores(d, count, scores, [d](VF s) ATTEND_INLINE_LAMBDA { return SigmoidWeight(d, s); });
      break;
    default:
      MapScores(d, count, scores, [d](VF s) ATTEND_INLINE_LAMBDA { return PlainWeight(d, s); });
      break;
  }
}

// The weights of whole blocks of rows become pairs.
HWY_INLINE void NarrowWeights(F32 d, size_t count, float* weights) {
  for (size_t i = 0; i < count; i += kBlock) {
    StoreWeights<true>(d, hn::Load(d, weights + i), 0, weights + i);
  }
}

// Weights instead of scores, in pairs of bf16 if kPairs, and the states of the rows.
template <bool kPairs, size_t kR>
HWY_INLINE void NormalizeRows(F32 d, const Head& head, const KeyWalk& walk, bool first,
                              float* scores, RowStates& states) {
  const KeyChunk& chunk = walk.chunk();
  const AttentionSpec& spec = *head.args->spec;
  float most[kMaxAttentionRows];
  MaskScores<kR>(d, walk, scores);
  const bool adjusted = AddBiases(head, chunk, kR, scores, most);
  if (IsSoftmax(spec.normalizer)) {
    const bool extra = spec.normalizer == AttentionNormalizer::kSoftmax1;
    ExpRows<kPairs, kR>(d, extra, first, chunk, adjusted ? most : nullptr, scores, states);
    return;
  }
  MapScores(spec.normalizer, chunk.blocks * kR * kBlock, scores);
  if constexpr (kPairs) NarrowWeights(d, chunk.blocks * kR * kBlock, scores);
  for (size_t r = 0; r < kR; ++r) {
    const int64_t count = spec.divide_by_seen && chunk.last ? walk.Count(r) : 1;
    states.rescale[r] = 1.0f;
    states.factor[r] = count == 0 ? 0.0f : 1.0f / static_cast<float>(count);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_ATTENTION_WEIGHTS_INL_H_
