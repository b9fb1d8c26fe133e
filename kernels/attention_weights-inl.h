// The second stage of attention: scores of a chunk become weights. Keys that a row does not see get
// the score -inf, biases are added (with the largest score taken in the same pass), and the
// normaliser makes weights. Each bias and each normaliser is one struct or function here and one
// line in AdjustScores or NormalizeRows.
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

// The scores of a group of rows against a chunk.
struct Scores {
  const KeyChunk& chunk;
  float* data;  // [block][row][16]
  size_t rows;
  size_t stride() const { return rows * kBlock; }
  float* row(size_t r) const { return data + r * kBlock; }
};

// ---- Structure ----

// -inf where a row does not see a key, whatever lies there.
HWY_INLINE void MaskScores(F32 d, const KeyWalk& walk, const Scores& scores) {
  const hn::RebindToSigned<F32> di;
  HWY_ALIGN static constexpr int32_t kBits[kBlock] = {
      1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
      1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  for (size_t b = 0; b < scores.chunk.blocks; ++b) {
    if (walk.AllSee(scores.chunk, b)) continue;
    for (size_t r = 0; r < scores.rows; ++r) {
      const auto lanes = hn::Set(di, static_cast<int32_t>(walk.Lanes(scores.chunk, b, r)));
      float* p = scores.row(r) + b * scores.stride();
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
  NoBias(const Head&, size_t) {}
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

// Adds the bias to every row, and finds the largest score of each.
template <class Bias>
HWY_INLINE void AddBias(F32 d, const Head& head, const Scores& scores, float* most) {
  for (size_t r = 0; r < scores.rows; ++r) {
    const Bias bias(head, r);
    float* p = scores.row(r);
    VF largest = hn::Set(d, -kInfinity);
    for (size_t b = 0; b < scores.chunk.blocks; ++b, p += scores.stride()) {
      const int64_t key = scores.chunk.logical[b] * kKeyBlock;
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
    most[r] = hn::GetLane(hn::MaxOfLanes(d, largest));
  }
}

// Biases, if any, and `most`, if it is asked for.
HWY_INLINE void AdjustScores(F32 d, const Head& head, const Scores& scores, bool need_most,
                             float* most) {
  bool known = false;
  if (head.alibi_slope != nullptr) AddBias<AlibiBias>(d, head, scores, most), known = true;
  if (head.distance_bias != nullptr) AddBias<DistanceBias>(d, head, scores, most), known = true;
  if (head.dense_bias != nullptr) AddBias<DenseBias>(d, head, scores, most), known = true;
  if (need_most && !known) AddBias<NoBias>(d, head, scores, most);
}

// ---- Normalisers ----

// Finite inputs may overflow to a score of +inf; it counts as the largest number, so that
// inf - inf makes no NaN.
HWY_NOINLINE float ClampRow(const Scores& scores, size_t r) {
  float most = -kInfinity;
  for (size_t b = 0; b < scores.chunk.blocks; ++b) {
    float* p = scores.row(r) + b * scores.stride();
    for (size_t i = 0; i < kBlock; ++i) {
      if (p[i] > kLargest) p[i] = kLargest;
      if (p[i] > most) most = p[i];
    }
  }
  return most;
}

// Scores become 2^(score - largest so far), and the states of the rows are brought up to date. The
// extra key of softmax1 is what the states begin with.
HWY_INLINE void ExpRows(F32 d, const Scores& scores, float* most, RowStates& states) {
  for (size_t r = 0; r < scores.rows; ++r) {
    // Overflow, or a NaN in the last lanes.
    if (!(most[r] <= kLargest)) most[r] = ClampRow(scores, r);
    float rescale = 0.0f, before = 0.0f;
    if (states.most[r] != -kInfinity) {
      most[r] = std::max(most[r], states.most[r]);
      rescale = hn::GetLane(Exp2Nonpositive(d, hn::Set(d, states.most[r] - most[r])));
      before = states.sum[r] * rescale;
    }
    states.rescale[r] = rescale;
    states.most[r] = most[r];
    // Nothing to see so far: any finite shift makes all weights 0.
    const VF shift = hn::Set(d, most[r] == -kInfinity ? 0.0f : most[r]);
    VF sum = hn::Zero(d);
    float* p = scores.row(r);
    for (size_t b = 0; b < scores.chunk.blocks; ++b, p += scores.stride()) {
      for (size_t i = 0; i < kBlock; i += kLanes) {
        const VF weight = Exp2Nonpositive(d, hn::Sub(hn::Load(d, p + i), shift));
        sum = hn::Add(sum, weight);
        hn::Store(weight, d, p + i);
      }
    }
    states.sum[r] = before + hn::GetLane(hn::SumOfLanes(d, sum));
    states.factor[r] = states.sum[r] == 0.0f ? 0.0f : 1.0f / states.sum[r];
  }
}

// Scores become f(score), which is 0 at -inf.
template <class F>
HWY_INLINE void MapRows(F32 d, const Scores& scores, const F& f) {
  float* p = scores.data;
  for (float* end = p + scores.chunk.blocks * scores.stride(); p != end; p += kBlock) {
    for (size_t i = 0; i < kBlock; i += kLanes) hn::Store(f(hn::Load(d, p + i)), d, p + i);
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
  const VF e = Exp2Nonpositive(d, hn::Neg(hn::Abs(s)));
  return hn::Div(hn::IfThenElse(hn::Lt(s, hn::Zero(d)), e, one), hn::Add(one, e));
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

HWY_INLINE void BeginStates(const AttentionSpec& spec, size_t rows, RowStates& states) {
  const bool extra = spec.normalizer == AttentionNormalizer::kSoftmax1;
  for (size_t r = 0; r < rows; ++r) {
    states.most[r] = extra ? 0.0f : -kInfinity;
    states.sum[r] = extra ? 1.0f : 0.0f;
    states.rescale[r] = 1.0f;
    states.factor[r] = 1.0f;
  }
}

// Weights instead of scores, and the states of the rows. Not inlined: one copy serves any number of
// rows.
HWY_NOINLINE void NormalizeRows(const Head& head, const KeyWalk& walk, const Scores& scores,
                                RowStates& states) {
  const F32 d;
  const AttentionSpec& spec = *head.args->spec;
  float most[kMaxAttentionRows];
  MaskScores(d, walk, scores);
  AdjustScores(d, head, scores, IsSoftmax(spec.normalizer), most);
  switch (spec.normalizer) {
    case AttentionNormalizer::kSoftmax:
    case AttentionNormalizer::kSoftmax1:
      ExpRows(d, scores, most, states);
      break;
    case AttentionNormalizer::kRelu:
      MapRows(d, scores, [d](VF s) ATTEND_INLINE_LAMBDA { return ReluWeight(d, s); });
      break;
    case AttentionNormalizer::kRelu2:
      MapRows(d, scores, [d](VF s) ATTEND_INLINE_LAMBDA { return Relu2Weight(d, s); });
      break;
    case AttentionNormalizer::kSigmoid:
      MapRows(d, scores, [d](VF s) ATTEND_INLINE_LAMBDA { return SigmoidWeight(d, s); });
      break;
    case AttentionNormalizer::kNone:
      MapRows(d, scores, [d](VF s) ATTEND_INLINE_LAMBDA { return PlainWeight(d, s); });
      break;
  }
  if (!spec.divide_by_seen) return;
  for (size_t r = 0; r < scores.rows; ++r) {
    const int64_t count = walk.Count(r);
    states.factor[r] = count == 0 ? 0.0f : 1.0f / static_cast<float>(count);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_ATTENTION_WEIGHTS_INL_H_
