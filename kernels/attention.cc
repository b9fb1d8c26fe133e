// Blocked attention. One call walks its heads; for one head it takes kRows query rows at a time
// (less at the end) through three stages, each a function below:
//
//   Scores       s = scale q . k for kRows rows and all keys (or a chunk of them): a vector of keys
//                times a broadcast element of q, accumulated in registers over E
//   Normalize    row maximum, 2^(s - max), sum
//   WeightedSum  sum_j p_j v_j: a vector of columns times a broadcast weight, accumulated in
//                registers over the keys, times 1 / sum at the end
//
// Scores lie in scratch as [keys / 16][kRows][16], so that every access of the inner loops is one
// pointer plus a constant. Each score is one sum over e in order, each output one sum over j in
// order, whatever the number of rows or vectors that share the registers: that is why a row's bits
// do not depend on the block that it is in.
#include "kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

#ifndef ATTEND_KERNELS_ATTENTION_CONSTANTS_
#define ATTEND_KERNELS_ATTENTION_CONSTANTS_
namespace attend {
// Up to kMaxRowKeys keys a row's scores are all in scratch at once. Longer rows are cut, from their
// start, into chunks of kKeyChunk keys, and what was summed is rescaled when the maximum grows.
inline constexpr int64_t kMaxRowKeys = 2048;
inline constexpr int64_t kKeyChunk = 512;
// Elements of q that are packed at a time; wider heads take several rounds.
inline constexpr int64_t kColumnChunk = 256;
// The most query rows that any target takes at a time.
inline constexpr int64_t kMaxRows = 12;
}  // namespace attend
#endif

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr size_t kBlock = static_cast<size_t>(kKeyBlock);
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kLog2E = 1.44269504f;

// Query rows at a time: kRows times two vectors of accumulators, two operands and a broadcast fill
// the registers (32 on AVX-512; 16 on AVX2; on SSE4 a product needs one of its own).
#if HWY_TARGET == HWY_AVX3
constexpr size_t kRows = 12;
#elif HWY_TARGET == HWY_AVX2
constexpr size_t kRows = 6;
#else
constexpr size_t kRows = 4;
#endif
static_assert(kRows <= kMaxRows);

// Calls f with the constants 0 .. kCount - 1. A loop over an array of vectors is unrolled too late
// by g++ 12 for the array to live in registers; constant indices from the beginning are not.
template <size_t... kI, class F>
HWY_INLINE void UnrollSequence(std::index_sequence<kI...> /*sequence*/, F&& f) {
  (f(std::integral_constant<size_t, kI>()), ...);
}
template <size_t kCount, class F>
HWY_INLINE void Unroll(F&& f) {
  UnrollSequence(std::make_index_sequence<kCount>(), std::forward<F>(f));
}
#define ATTEND_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

// One head of one call, and the chunk of keys in work.
struct Head {
  const float* q;  // row 0 of the block in work
  const float* k;  // this head in block 0
  const float* v;
  float* out;  // row 0 of the block in work
  size_t ldq, ld_out;
  size_t block_stride;  // floats from one key block to the next: 16 G E
  size_t head_dim;      // E
  float scale;          // times log2 e: scores are in powers of two
};

// Rows of q, times scale, as [columns / 16][kR][16].
template <size_t kR>
HWY_INLINE void PackQ(F32 d, const Head& head, size_t column, size_t columns, float* packed) {
  const VF scale = hn::Set(d, head.scale);
  for (size_t row = 0; row < kR; ++row) {
    const float* q = head.q + row * head.ldq + column;
    size_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      float* to = packed + ((i / kBlock) * kR + row) * kBlock + i % kBlock;
      hn::Store(hn::Mul(hn::LoadU(d, q + i), scale), d, to);
    }
    if (i < columns) {
      float* to = packed + ((i / kBlock) * kR + row) * kBlock + i % kBlock;
      hn::Store(hn::Mul(LoadTail(d, q + i, columns - i), scale), d, to);
    }
  }
}

// Scores of kR rows against kVectors vectors of keys, the first of them key number `key`.
// `more`: adds to the scores that are there (a later round over the columns).
template <size_t kR, size_t kVectors>
HWY_INLINE void ScoreTile(F32 d, const Head& head, const float* q, size_t column, size_t columns,
                          size_t first_key, size_t key, bool more, float* scores) {
  VF sums[kR * kVectors];
  const float* k[kVectors];
  float* to[kVectors];
  Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
    const size_t j = key + v * kLanes;
    k[v] = head.k + ((first_key + j) / kBlock) * head.block_stride + column * kBlock + j % kBlock;
    to[v] = scores + (j / kBlock) * kR * kBlock + j % kBlock;
  });
  if (more) {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
      sums[i] = hn::Load(d, to[i % kVectors] + (i / kVectors) * kBlock);
    });
  } else {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA { sums[i] = hn::Zero(d); });
  }
  for (size_t e = 0; e < columns; ++e) {
    const float* qe = q + (e / kBlock) * kR * kBlock + e % kBlock;
    VF keys[kVectors];
    Unroll<kVectors>([&](auto v)
                         ATTEND_INLINE_LAMBDA { keys[v] = hn::LoadU(d, k[v] + e * kBlock); });
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      const VF element = hn::Set(d, qe[r * kBlock]);
      Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
        constexpr size_t i = r * kVectors + v;
        sums[i] = hn::MulAdd(keys[v], element, sums[i]);
      });
    });
  }
  Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
    hn::Store(sums[i], d, to[i % kVectors] + (i / kVectors) * kBlock);
  });
}

// Scores of kR rows against `keys` keys from `first_key`; the keys are rounded up to whole blocks,
// and what is behind the last key scores -inf, whatever lies there.
template <size_t kR>
HWY_INLINE void Scores(F32 d, const Head& head, size_t first_key, size_t keys, float* q,
                       float* scores) {
  // Few rows: more vectors of keys at a time, so that enough sums are under way.
  constexpr size_t kVectors = kR >= 4 ? 2 : 4;
  const size_t padded = (keys + kBlock - 1) / kBlock * kBlock;
  for (size_t column = 0; column < head.head_dim; column += kColumnChunk) {
    const size_t columns = std::min<size_t>(kColumnChunk, head.head_dim - column);
    PackQ<kR>(d, head, column, columns, q);
    const bool more = column != 0;
    size_t key = 0;
    for (; key + kVectors * kLanes <= padded; key += kVectors * kLanes) {
      ScoreTile<kR, kVectors>(d, head, q, column, columns, first_key, key, more, scores);
    }
    for (; key < padded; key += kLanes) {
      ScoreTile<kR, 1>(d, head, q, column, columns, first_key, key, more, scores);
    }
  }
  for (size_t row = 0; row < kR && keys < padded; ++row) {
    float* last = scores + ((padded / kBlock - 1) * kR + row) * kBlock;
    std::fill(last + keys % kBlock, last + kBlock, -kInfinity);
  }
}

// The largest score of a row; -inf if no key counts. Finite inputs may overflow to a score of +inf;
// it is clamped to the largest number, so that inf - inf makes no NaN.
template <size_t kR>
HWY_INLINE float RowMax(F32 d, float* row, size_t keys) {
  const size_t blocks = (keys + kBlock - 1) / kBlock;
  VF most = hn::Set(d, -kInfinity);
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t i = 0; i < kBlock; i += kLanes) {
      most = hn::Max(most, hn::Load(d, row + b * kR * kBlock + i));
    }
  }
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  if (largest <= kLargest) return largest;
  // Rare: +inf, or NaN, which stays in its lane and makes the row's sum NaN.
  float clamped = -kInfinity;
  for (size_t j = 0; j < keys; ++j) {
    float& score = row[(j / kBlock) * kR * kBlock + j % kBlock];
    if (score > kLargest) score = kLargest;
    if (score > clamped) clamped = score;
  }
  return clamped;
}

// Replaces the scores of a row by 2^(score - most) and returns their sum.
template <size_t kR>
HWY_INLINE float ExpRow(F32 d, float most, size_t keys, float* row) {
  const size_t blocks = (keys + kBlock - 1) / kBlock;
  const VF shift = hn::Set(d, most);
  VF sum = hn::Zero(d);
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t i = 0; i < kBlock; i += kLanes) {
      float* p = row + b * kR * kBlock + i;
      const VF weight = Exp2Nonpositive(d, hn::Sub(hn::Load(d, p), shift));
      sum = hn::Add(sum, weight);
      hn::Store(weight, d, p);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// What is known of the rows of a block so far.
template <size_t kR>
struct RowState {
  float most[kR];     // largest score
  float sum[kR];      // of the weights, relative to `most`
  float rescale[kR];  // what earlier sums are to be multiplied by
  float factor[kR];   // what the sums are multiplied by when they are stored
};

// Softmax without its division: weights instead of scores, and the state of each row brought up to
// date.
template <size_t kR>
HWY_INLINE void NormalizeRows(F32 d, size_t keys, bool first, bool last, float* scores,
                              RowState<kR>& state) {
  for (size_t r = 0; r < kR; ++r) {
    float* row = scores + r * kBlock;
    float most = RowMax<kR>(d, row, keys);
    state.rescale[r] = 0.0f;
    float before = 0.0f;
    if (!first && state.most[r] != -kInfinity) {
      most = std::max(most, state.most[r]);
      const VF shift = hn::Set(d, state.most[r] - most);
      state.rescale[r] = hn::GetLane(Exp2Nonpositive(d, shift));
      before = state.sum[r] * state.rescale[r];
    }
    state.most[r] = most;
    // Nothing to see so far: any finite shift makes all weights 0.
    state.sum[r] = before + ExpRow<kR>(d, most == -kInfinity ? 0.0f : most, keys, row);
    state.factor[r] = !last ? 1.0f : state.sum[r] == 0.0f ? 0.0f : 1.0f / state.sum[r];
  }
}

// kVectors vectors of columns of the output of kR rows, from column `column`. `tail`: the lanes
// that exist of the only vector, or 0 for all.
template <size_t kR, size_t kVectors, bool kTail>
HWY_INLINE void WeightedTile(F32 d, const Head& head, const float* weights, size_t first_key,
                             size_t keys, size_t column, size_t tail, bool first,
                             const RowState<kR>& state) {
  static_assert(!kTail || kVectors == 1);
  VF sums[kR * kVectors];
  if (first) {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA { sums[i] = hn::Zero(d); });
  } else {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
      const float* from =
          head.out + (i / kVectors) * head.ld_out + column + (i % kVectors) * kLanes;
      const VF before = kTail ? LoadTail(d, from, tail) : hn::LoadU(d, from);
      sums[i] = hn::Mul(before, hn::Set(d, state.rescale[i / kVectors]));
    });
  }
  for (size_t begin = 0; begin < keys; begin += kBlock) {
    const size_t count = std::min(kBlock, keys - begin);
    const float* v = head.v + ((first_key + begin) / kBlock) * head.block_stride + column;
    const float* p = weights + begin * kR;
    for (size_t j = 0; j < count; ++j) {
      VF values[kVectors];
      Unroll<kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
        values[i] = kTail ? LoadTail(d, v, tail) : hn::LoadU(d, v + i * kLanes);
      });
      Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
        const VF weight = hn::Set(d, p[r * kBlock]);
        Unroll<kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
          constexpr size_t s = r * kVectors + i;
          sums[s] = hn::MulAdd(values[i], weight, sums[s]);
        });
      });
      v += head.head_dim;
      ++p;
    }
  }
  Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
    float* to = head.out + (i / kVectors) * head.ld_out + column + (i % kVectors) * kLanes;
    const VF y = hn::Mul(sums[i], hn::Set(d, state.factor[i / kVectors]));
    if constexpr (kTail) {
      StoreTail(y, d, to, tail);
    } else {
      hn::StoreU(y, d, to);
    }
  });
}

template <size_t kR>
HWY_INLINE void WeightedSum(F32 d, const Head& head, const float* weights, size_t first_key,
                            size_t keys, bool first, const RowState<kR>& state) {
  constexpr size_t kVectors = kR >= 4 ? 2 : 4;
  const size_t columns = head.head_dim;
  size_t c = 0;
  for (; c + kVectors * kLanes <= columns; c += kVectors * kLanes) {
    WeightedTile<kR, kVectors, false>(d, head, weights, first_key, keys, c, 0, first, state);
  }
  for (; c + kLanes <= columns; c += kLanes) {
    WeightedTile<kR, 1, false>(d, head, weights, first_key, keys, c, 0, first, state);
  }
  if (c < columns) {
    WeightedTile<kR, 1, true>(d, head, weights, first_key, keys, c, columns - c, first, state);
  }
}

// kR rows of one head, all stages. Not inlined: one copy for each number of rows is code enough.
template <size_t kR>
HWY_NOINLINE void AttendRows(const Head& head, size_t num_keys, float* scratch) {
  const F32 d;
  float* q = scratch;
  float* scores = scratch + kMaxRows * kColumnChunk;
  const size_t chunk = num_keys <= kMaxRowKeys ? num_keys : static_cast<size_t>(kKeyChunk);
  RowState<kR> state{};
  for (size_t key = 0; key < num_keys; key += chunk) {
    const size_t keys = std::min(chunk, num_keys - key);
    const bool first = key == 0;
    const bool last = key + keys == num_keys;
    Scores<kR>(d, head, key, keys, q, scores);
    NormalizeRows<kR>(d, keys, first, last, scores, state);
    WeightedSum<kR>(d, head, scores, key, keys, first, state);
  }
}

// Takes blocks of kR rows while there are that many.
template <size_t kR>
HWY_INLINE size_t AttendBlocks(Head& head, size_t rows, size_t num_keys, float* scratch) {
  for (; rows >= kR; rows -= kR) {
    AttendRows<kR>(head, num_keys, scratch);
    head.q += kR * head.ldq;
    head.out += kR * head.ld_out;
  }
  return rows;
}

void Attention(const AttentionArgs& args) {
  const size_t head_dim = static_cast<size_t>(args.head_dim);
  const size_t group = static_cast<size_t>(args.heads / args.kv_heads);
  const size_t num_keys = static_cast<size_t>(args.num_keys);
  for (int64_t h = args.head_begin; h < args.head_end; ++h) {
    const size_t packed = static_cast<size_t>(h) / group * head_dim * kBlock;
    Head head{};
    head.q = args.q + h * args.head_dim;
    head.k = args.packed_k + packed;
    head.v = args.packed_v + packed;
    head.out = args.out + h * args.head_dim;
    head.ldq = static_cast<size_t>(args.ldq);
    head.ld_out = static_cast<size_t>(args.ld_out);
    head.block_stride = kBlock * static_cast<size_t>(args.kv_heads) * head_dim;
    head.head_dim = head_dim;
    head.scale = args.scale * kLog2E;
    size_t rows = static_cast<size_t>(args.query_count);
    rows = AttendBlocks<kRows>(head, rows, num_keys, args.scratch);
    if constexpr (kRows > 8) rows = AttendBlocks<8>(head, rows, num_keys, args.scratch);
    if constexpr (kRows > 4) rows = AttendBlocks<4>(head, rows, num_keys, args.scratch);
    rows = AttendBlocks<2>(head, rows, num_keys, args.scratch);
    AttendBlocks<1>(head, rows, num_keys, args.scratch);
  }
}

// Columns [0, E) of four consecutive rows of k, transposed in squares of 4 by 4 in 128-bit vectors;
// `to` is where the first of them stands in its block.
HWY_INLINE void TransposeFourRows(const float* k, size_t ldk, size_t columns, float* to) {
  const hn::Full128<float> d;
  const hn::Repartition<double, hn::Full128<float>> dd;
  size_t e = 0;
  for (; e + 4 <= columns; e += 4) {
    const auto r0 = hn::LoadU(d, k + e), r1 = hn::LoadU(d, k + ldk + e);
    const auto r2 = hn::LoadU(d, k + 2 * ldk + e), r3 = hn::LoadU(d, k + 3 * ldk + e);
    const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));
    const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));
    const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
    const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
    float* square = to + e * kBlock;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, low01, low23)), d, square);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23)), d, square + kBlock);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, high01, high23)), d, square + 2 * kBlock);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23)), d, square + 3 * kBlock);
  }
  for (; e < columns; ++e) {
    for (size_t row = 0; row < 4; ++row) to[e * kBlock + row] = k[row * ldk + e];
  }
}

void PackKv(const PackKvArgs& args) {
  const F32 d;
  const size_t head_dim = static_cast<size_t>(args.head_dim);
  const size_t head_floats = kBlock * head_dim;
  const size_t block_floats = head_floats * static_cast<size_t>(args.kv_heads);
  const size_t ldk = static_cast<size_t>(args.ldk), ldv = static_cast<size_t>(args.ldv);
  const size_t rows = static_cast<size_t>(args.rows);
  for (size_t row = 0; row < rows;) {
    const size_t position = static_cast<size_t>(args.position) + row;
    const size_t slot = position % kBlock;
    // Only slots of these rows are written: another thread may be writing their neighbours.
    const size_t count = (slot % 4 == 0 && rows - row >= 4) ? 4 : 1;
    for (int64_t g = args.head_begin; g < args.head_end; ++g) {
      const size_t source = static_cast<size_t>(g - args.head_begin) * head_dim;
      const size_t packed = position / kBlock * block_floats + static_cast<size_t>(g) * head_floats;
      const float* k = args.k + row * ldk + source;
      float* to_k = args.packed_k + packed + slot;
      if (count == 4) {
        TransposeFourRows(k, ldk, head_dim, to_k);
      } else {
        for (size_t e = 0; e < head_dim; ++e) to_k[e * kBlock] = k[e];
      }
      for (size_t r = 0; r < count; ++r) {
        const float* v = args.v + (row + r) * ldv + source;
        float* to_v = args.packed_v + packed + (slot + r) * head_dim;
        size_t e = 0;
        for (; e + kLanes <= head_dim; e += kLanes) hn::StoreU(hn::LoadU(d, v + e), d, to_v + e);
        if (e < head_dim) std::memcpy(to_v + e, v + e, (head_dim - e) * sizeof(float));
      }
    }
    row += count;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(PackKv);
HWY_EXPORT(Attention);
PackKvFn BindPackKv() { return ATTEND_BIND(PackKv); }
AttentionFn BindAttention() { return ATTEND_BIND(Attention); }

int64_t AttentionScratchFloats(int64_t num_keys) {
  const int64_t keys = num_keys <= kMaxRowKeys ? num_keys : std::max(kMaxRowKeys, kKeyChunk);
  const int64_t padded = (keys + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
  return kMaxRows * (kColumnChunk + padded);
}

}  // namespace attend
#endif  // HWY_ONCE
