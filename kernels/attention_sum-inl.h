// The third stage of attention: the weighted sums of the values of a chunk, added to what earlier
// chunks gave.
#if defined(ATTEND_KERNELS_ATTENTION_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ATTENTION_SUM_INL_H_
#undef ATTEND_KERNELS_ATTENTION_SUM_INL_H_
#else
#define ATTEND_KERNELS_ATTENTION_SUM_INL_H_
#endif

#include <algorithm>

#include "kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// What is taken of a vector of values: all lanes; of pairs also the first or the second halves.
constexpr uint32_t kWhole = ~0u, kFirst = 0xffffu, kSecond = 0xffff0000u;

// Calls add(weights, values, kWhole) for each key of the chunk in turn, or each pair: where the
// weights of the kR rows begin, and the value's column `column`. Values behind the last key are not
// touched: of a pair that has no second, only the first is added.
template <bool kPairs, size_t kR, class F>
HWY_INLINE void ForEachKey(const Head& head, const KeyChunk& chunk, const float* weights,
                           size_t column, const F& add) {
  const size_t width = head.value_dim;
  const float* p = weights;
  for (size_t b = 0; b < chunk.blocks; ++b, p += kR * kBlock) {
    const size_t keys = b + 1 < chunk.blocks ? kBlock : chunk.last_count;
    const size_t count = kPairs ? keys / 2 : keys;
    const float* v = chunk.v[b] + column;
    size_t j = 0;
    for (; j < count; ++j, v += width) add(p + j, v, kWhole);
    if (kPairs && keys % 2 != 0) add(p + j, v, kFirst);
  }
}

// The same for the keys of a row's edges alone.
template <bool kPairs, class F>
HWY_INLINE void ForEachEdge(const Head& head, const KeyChunk& chunk, const float* weights,
                            size_t column, const F& add) {
  constexpr size_t kEach = kPairs ? 2 : 1;
  for (size_t n = 0; n < chunk.places; ++n) {
    const size_t place = chunk.place[n], lane = place % kBlock;
    const float* v = chunk.v[place / kBlock] + lane / kEach * head.value_dim;
    uint32_t halves = kWhole;
    if (kPairs && (n + 1 == chunk.places || chunk.place[n + 1] / 2 != place / 2)) {
      halves = lane % 2 == 0 ? kFirst : kSecond;  // its weight alone is not 0
    } else if (kPairs) {
      ++n;
    }
    add(weights + place - lane + lane / kEach, v + column, halves);
  }
}

// kVectors vectors of columns of the output of kR rows, from column `column`. `tail`: the lanes
// that exist of the only vector, if kTail.
template <bool kPairs, size_t kR, size_t kVectors, bool kTail>
HWY_INLINE void WeightedTile(F32 d, const Head& head, const KeyChunk& chunk, const float* weights,
                             size_t column, bool first, const RowStates& states) {
  static_assert(!kTail || kVectors == 1);
  const size_t tail = head.value_dim - column;
  const size_t ld_out = static_cast<size_t>(head.args->ld_out);
  VF sums[kR * kVectors];
  if (first) {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA { sums[i] = hn::Zero(d); });
  } else {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
      const float* from = head.out + (i / kVectors) * ld_out + column + (i % kVectors) * kLanes;
      const VF before = kTail ? LoadTail(d, from, tail) : hn::LoadU(d, from);
      sums[i] = hn::Mul(before, hn::Set(d, states.rescale[i / kVectors]));
    });
  }
  const auto add = [&](const float* p, const float* v, uint32_t halves) ATTEND_INLINE_LAMBDA {
    VF values[kVectors];
    Unroll<kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
      values[i] = kTail ? LoadTail(d, v, tail) : hn::LoadU(d, v + i * kLanes);
      if (halves != kWhole) {
        const hn::RebindToUnsigned<F32> du;
        values[i] = hn::And(values[i], hn::BitCast(d, hn::Set(du, halves)));
      }
    });
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      Unroll<kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
        constexpr size_t s = r * kVectors + i;
        AddProduct<kPairs>(values[i], p + r * kBlock, sums[s]);
      });
    });
  };
  if (kR == 1 && head.args->edge_offsets != nullptr) {
    ForEachEdge<kPairs>(head, chunk, weights, column, add);
  } else {
    ForEachKey<kPairs, kR>(head, chunk, weights, column, add);
  }
  Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
    float* to = head.out + (i / kVectors) * ld_out + column + (i % kVectors) * kLanes;
    // Adding 0 makes +0 of -0, which a key of weight 0 could have turned either way.
    const VF y = hn::MulAdd(sums[i], hn::Set(d, states.factor[i / kVectors]), hn::Zero(d));
    if constexpr (kTail) {
      StoreTail(y, d, to, tail);
    } else {
      hn::StoreU(y, d, to);
    }
  });
}

template <bool kPairs, size_t kR>
HWY_INLINE void WeightedSum(F32 d, const Head& head, const KeyChunk& chunk, const float* weights,
                            bool first, const RowStates& states) {
  constexpr size_t kVectors = kR >= 4 ? 2 : 4;
  const size_t columns = head.value_dim;
  size_t c = 0;
  for (; c + kVectors * kLanes <= columns; c += kVectors * kLanes) {
    WeightedTile<kPairs, kR, kVectors, false>(d, head, chunk, weights, c, first, states);
  }
  for (; c + kLanes <= columns; c += kLanes) {
    WeightedTile<kPairs, kR, 1, false>(d, head, chunk, weights, c, first, states);
  }
  if (c < columns) WeightedTile<kPairs, kR, 1, true>(d, head, chunk, weights, c, first, states);
}

// What rows get that see nobody.
HWY_INLINE void ZeroRows(const Head& head, size_t rows) {
  for (size_t r = 0; r < rows; ++r) {
    std::fill_n(head.out + r * static_cast<size_t>(head.args->ld_out), head.value_dim, 0.0f);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_ATTENTION_SUM_INL_H_
