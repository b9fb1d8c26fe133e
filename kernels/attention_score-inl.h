// The first stage of attention: scores of a few rows against the keys of a chunk, by dot product or
// additive. Scores lie as [block of the chunk][row][16].
#if defined(ATTEND_KERNELS_ATTENTION_SCORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ATTENTION_SCORE_INL_H_
#undef ATTEND_KERNELS_ATTENTION_SCORE_INL_H_
#else
#define ATTEND_KERNELS_ATTENTION_SCORE_INL_H_
#endif

#include <algorithm>

#include "kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// f of rows of q, as [kR, columns; kPackedRow].
template <size_t kR, class F>
HWY_INLINE void PackQ(F32 d, const Head& head, size_t column, size_t columns, float* packed,
                      const F& f) {
  const size_t ldq = static_cast<size_t>(head.args->ldq);
  for (size_t row = 0; row < kR; ++row, packed += kPackedRow) {
    const float* q = head.q + row * ldq + column;
    size_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) hn::Store(f(hn::LoadU(d, q + i)), d, packed + i);
    if (i < columns) hn::Store(f(LoadTail(d, q + i, columns - i)), d, packed + i);
  }
}

#if HWY_TARGET == HWY_AVX3
// Rows of scale q in pairs of bf16.
template <size_t kR>
HWY_INLINE void PackQPairs(F32 d, const Head& head, size_t column, size_t columns, float* packed) {
  const size_t ldq = static_cast<size_t>(head.args->ldq);
  const hn::Rebind<uint16_t, F32> d16;
  const VF scale = hn::Set(d, head.scale);
  for (size_t row = 0; row < kR; ++row, packed += kPackedRow) {
    const float* q = head.q + row * ldq + column;
    auto* const to = reinterpret_cast<uint16_t*>(packed);
    size_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      hn::StoreU(NarrowToBf16(hn::Mul(hn::LoadU(d, q + i), scale)), d16, to + i);
    }
    if (i < columns) {
      hn::StoreU(NarrowToBf16(hn::Mul(LoadTail(d, q + i, columns - i), scale)), d16, to + i);
    }
  }
}
#endif

// Column `column` of the key that stands at place `key` of the chunk; its neighbours follow.
HWY_INLINE const float* KeyAt(const KeyChunk& chunk, size_t key, size_t column) {
  return chunk.k[key / kBlock] + column * kBlock + key % kBlock;
}

// Scores of kR rows against kVectors vectors of keys, the first of them at place `key`.
// Columns behind the first round add to the scores that are there.
template <bool kPairs, size_t kR, size_t kVectors>
HWY_INLINE void DotTile(F32 d, const KeyChunk& chunk, const float* q, size_t column, size_t columns,
                        size_t key, float* scores) {
  VF sums[kR * kVectors];
  const float* k[kVectors];
  float* to[kVectors];
  Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
    const size_t j = key + v * kLanes;
    k[v] = KeyAt(chunk, j, column);
    to[v] = scores + (j / kBlock) * kR * kBlock + j % kBlock;
  });
  if (column != 0) {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
      sums[i] = hn::Load(d, to[i % kVectors] + (i / kVectors) * kBlock);
    });
  } else {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA { sums[i] = hn::Zero(d); });
  }
  for (size_t e = 0; e < columns; ++e) {
    VF keys[kVectors];
    Unroll<kVectors>([&](auto v)
                         ATTEND_INLINE_LAMBDA { keys[v] = hn::LoadU(d, k[v] + e * kBlock); });
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
        constexpr size_t i = r * kVectors + v;
        AddProduct<kPairs>(keys[v], q + r * kPackedRow + e, sums[i]);
      });
    });
  }
  Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
    hn::Store(sums[i], d, to[i % kVectors] + (i / kVectors) * kBlock);
  });
}

template <bool kPairs, size_t kR>
HWY_INLINE void DotScores(F32 d, const Head& head, const KeyChunk& chunk, bool first, float* q,
                          float* scores) {
  // Few rows: more vectors of keys at a time, so that enough sums are under way.
  constexpr size_t kVectors = kR >= 4 ? 2 : 4;
  const size_t keys = chunk.blocks * kBlock;
  for (size_t column = 0; column < head.key_dim; column += kColumnChunk) {
    const size_t columns = std::min(kColumnChunk, head.key_dim - column);
    if (first || head.key_dim > kColumnChunk) {
      if constexpr (kPairs) {
        PackQPairs<kR>(d, head, column, columns, q);
      } else {
        const VF scale = hn::Set(d, head.scale);
        PackQ<kR>(d, head, column, columns, q,
                  [&](VF x) ATTEND_INLINE_LAMBDA { return hn::Mul(x, scale); });
      }
    }
    // What lies in a float: a column, or a pair of them.
    const size_t at = kPairs ? column / 2 : column, count = kPairs ? (columns + 1) / 2 : columns;
    size_t key = 0;
    for (; key + kVectors * kLanes <= keys; key += kVectors * kLanes) {
      DotTile<kPairs, kR, kVectors>(d, chunk, q, at, count, key, scores);
    }
    for (; key < keys; key += kLanes) {
      DotTile<kPairs, kR, 1>(d, chunk, q, at, count, key, scores);
    }
  }
}

// ---- Additive: sum_a v_a tanh(q_a + k_a) ----
//
// tanh(q + k) = 1 - 2 / (1 + e^2q e^2k): one power for each element of q and k, and for a pair only
// a product and a quotient, of which two share a division:
//   v0 / x0 + v1 / x1 = (v0 x1 + v1 x0) / (x0 x1)
// Powers are kept finite by bounds on their arguments. That of k does no harm as long as |q| is at
// most kMaxQ: where |k| exceeds its bound, |q + k| exceeds 10, and tanh is 1 to 4e-9. A row with a
// larger q, which no trained model has, takes the tanh itself (AdditiveRow). The choice follows
// from the row alone.
// Error of a score: 1e-6 sum |v_a|, for any q and k.
constexpr float kMaxQ = 33.0f, kMaxK = 43.0f;

// e^2x for x in [-bound, bound], and beyond what it is there; NaN stays.
HWY_INLINE VF BoundedExp2x(F32 d, VF x, float bound) {
  const VF low = hn::Max(hn::Set(d, -bound), x);
  return ExpBounded(d, hn::Mul(hn::Min(hn::Set(d, bound), low), hn::Set(d, 2.0f)));
}

// kR rows against one vector of keys. With `last`, the sums become scores.
template <size_t kR>
HWY_INLINE void AdditiveTile(F32 d, const Head& head, const KeyChunk& chunk, const float* q,
                             size_t column, size_t columns, size_t key, float* scores) {
  const VF one = hn::Set(d, 1.0f);
  // Beyond this e^2(q + k) changes tanh by less than 2e-9; the product of two stays finite.
  const VF most = hn::Set(d, 1e9f);
  const float* k = KeyAt(chunk, key, column);
  const float* weights = head.additive + column;
  float* to = scores + (key / kBlock) * kR * kBlock + key % kBlock;
  VF sums[kR];
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
    sums[r] = column != 0 ? hn::Load(d, to + r * kBlock) : hn::Zero(d);
  });
  const auto denominator = [&](VF keys, const float* qe) ATTEND_INLINE_LAMBDA {
    return hn::Add(one, hn::Min(most, hn::Mul(keys, hn::Set(d, *qe))));
  };
  size_t a = 0;
  for (; a + 2 <= columns; a += 2) {
    const VF k0 = BoundedExp2x(d, hn::LoadU(d, k + a * kBlock), kMaxK);
    const VF k1 = BoundedExp2x(d, hn::LoadU(d, k + (a + 1) * kBlock), kMaxK);
    const VF w0 = hn::Set(d, weights[a]), w1 = hn::Set(d, weights[a + 1]);
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      const VF x0 = denominator(k0, q + r * kPackedRow + a),
               x1 = denominator(k1, q + r * kPackedRow + a + 1);
      const VF numerator = hn::MulAdd(w0, x1, hn::Mul(w1, x0));
      sums[r] = hn::Add(sums[r], hn::Div(numerator, hn::Mul(x0, x1)));
    });
  }
  if (a < columns) {
    const VF k0 = BoundedExp2x(d, hn::LoadU(d, k + a * kBlock), kMaxK);
    const VF w0 = hn::Set(d, weights[a]);
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      sums[r] = hn::Add(sums[r], hn::Div(w0, denominator(k0, q + r * kPackedRow + a)));
    });
  }
  if (column + columns == head.key_dim) {
    const VF unit = hn::Set(d, head.unit), sum = hn::Set(d, head.additive_sum);
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      sums[r] = hn::Mul(unit, hn::NegMulAdd(hn::Set(d, 2.0f), sums[r], sum));
    });
  }
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA { hn::Store(sums[r], d, to + r * kBlock); });
}

// Whether a row has an element beyond kMaxQ.
HWY_INLINE bool ExceedsMaxQ(F32 d, const float* q, size_t columns) {
  VF most = hn::Zero(d);
  size_t a = 0;
  for (; a + kLanes <= columns; a += kLanes) most = hn::Max(hn::Abs(hn::LoadU(d, q + a)), most);
  if (a < columns) most = hn::Max(hn::Abs(LoadTail(d, q + a, columns - a)), most);
  return hn::GetLane(hn::MaxOfLanes(d, most)) > kMaxQ;
}

// Scores of one row by tanh itself. `stride`: floats from one block's scores to the next's.
HWY_NOINLINE void AdditiveRow(const Head& head, const KeyChunk& chunk, const float* q,
                              size_t stride, float* scores) {
  const F32 d;
  for (size_t key = 0; key < chunk.blocks * kBlock; key += kLanes) {
    const float* k = KeyAt(chunk, key, 0);
    VF sum = hn::Zero(d);
    for (size_t a = 0; a < head.key_dim; ++a) {
      const VF t = Tanh(d, hn::Add(hn::LoadU(d, k + a * kBlock), hn::Set(d, q[a])));
      sum = hn::MulAdd(t, hn::Set(d, head.additive[a]), sum);
    }
    hn::Store(hn::Mul(sum, hn::Set(d, head.unit)), d,
              scores + (key / kBlock) * stride + key % kBlock);
  }
}

template <size_t kR>
HWY_INLINE void AdditiveScores(F32 d, const Head& head, const KeyChunk& chunk, bool first, float* q,
                               float* scores) {
  const size_t keys = chunk.blocks * kBlock;
  for (size_t column = 0; column < head.key_dim; column += kColumnChunk) {
    const size_t columns = std::min(kColumnChunk, head.key_dim - column);
    if (first || head.key_dim > kColumnChunk) {
      PackQ<kR>(d, head, column, columns, q,
                [&](VF x) ATTEND_INLINE_LAMBDA { return BoundedExp2x(d, x, kMaxQ); });
    }
    for (size_t key = 0; key < keys; key += kLanes) {
      AdditiveTile<kR>(d, head, chunk, q, column, columns, key, scores);
    }
  }
  for (size_t r = 0; r < kR; ++r) {
    const float* row = head.q + r * static_cast<size_t>(head.args->ldq);
    if (ExceedsMaxQ(d, row, head.key_dim)) {
      AdditiveRow(head, chunk, row, kR * kBlock, scores + r * kBlock);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_ATTENTION_SCORE_INL_H_
