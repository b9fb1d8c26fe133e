// Quantising to bytes, for a VNNI unit and for tiles. Four groups at a time: the largest of a
// group, and the sum, are one number out of 16 lanes, which takes a group alone eight steps, each
// waiting for the one before, and four together 13.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/quantize.h"
#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize_bytes.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3

using I32 = hn::RebindToSigned<F32>;
using F32x4 = hn::Half<hn::Half<F32>>;
using I32x4 = hn::RebindToSigned<F32x4>;

constexpr size_t kGroup = static_cast<size_t>(kQuantizeGroup);
constexpr size_t kGroupFloats = 2 + kGroup / 4;  // of a prepared row
static_assert(kGroup == 4 * kLanes);

// The lanes of each of four vectors made one by `op`.
template <class Op>
HWY_INLINE hn::Vec<I32x4> ReduceFour(const VI* v, const Op& op) {
  const I32 d;
  const hn::Repartition<int64_t, I32> d64;
  const hn::Half<I32> half;
  const auto halve = [&](VI a, VI b) ATTEND_INLINE_LAMBDA {
    return hn::BitCast(d64, op(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto ab = halve(v[0], v[1]), cd = halve(v[2], v[3]);
  const VI blocks = op(hn::BitCast(d, hn::InterleaveLower(d64, ab, cd)),
                       hn::BitCast(d, hn::InterleaveUpper(d64, ab, cd)));
  const auto two = op(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks));
  return op(hn::LowerHalf(I32x4(), two), hn::UpperHalf(I32x4(), two));
}

// A group of 64 elements, and where its numbers go: the scale, and behind it what sums start with,
// if kStarts; q.
struct Group {
  const float* x;
  float* scale;
  float* q;
};

// The bits of the largest magnitude in each group; they order as magnitudes do (quantize.cc).
HWY_INLINE hn::Vec<I32x4> LargestOfFour(const Group* groups) {
  const I32 d;
  const VI magnitude = hn::Set(d, 0x7FFFFFFF);
  VI largest[4];
  Unroll<4>([&](auto g) ATTEND_INLINE_LAMBDA {
    const auto at = [&](size_t i) ATTEND_INLINE_LAMBDA {
      return hn::And(hn::BitCast(d, hn::LoadU(F32(), groups[g].x + i * kLanes)), magnitude);
    };
    largest[g] = hn::Max(hn::Max(at(0), at(1)), hn::Max(at(2), at(3)));
  });
  return ReduceFour(largest, [](auto a, auto b) ATTEND_INLINE_LAMBDA { return hn::Max(a, b); });
}

// Rounded to the nearest, ties to even, as bytes in order.
HWY_INLINE VI RoundToBytes(const VF* v) {
  const auto round = [&](size_t i) ATTEND_INLINE_LAMBDA { return _mm512_cvtps_epi32(v[i].raw); };
  const __m512i low = _mm512_packs_epi32(round(0), round(1));
  const __m512i high = _mm512_packs_epi32(round(2), round(3));
  // A block of 16 bytes has four of each vector.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return VI{_mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high))};
}

// Four groups; `bits` are LargestOfFour(groups).
template <bool kStarts>
HWY_INLINE void QuantizeFour(const Group* groups, hn::Vec<I32x4> bits) {
  const F32 d;
  const I32 di;
  const F32x4 d4;
  const I32x4 di4;
  const float infinity = std::numeric_limits<float>::infinity();
  const auto finite = hn::Lt(bits, hn::Set(di4, std::bit_cast<int32_t>(infinity)));
  const auto counts =
      hn::And(finite, hn::Gt(bits, hn::Set(di4, std::bit_cast<int32_t>(kSmallestQuantized) - 1)));
  const auto most = hn::Set(d4, 127.0f);
  const auto largest = hn::IfThenElse(hn::RebindMask(d4, counts), hn::BitCast(d4, bits), most);
  const auto scale = hn::IfThenElseZero(hn::RebindMask(d4, counts), hn::Div(largest, most));
  alignas(16) float scales[4], inverse[4];
  alignas(16) int32_t kept[4], starts[4];
  hn::Store(hn::IfThenElse(hn::RebindMask(d4, finite), scale,
                           hn::Set(d4, std::numeric_limits<float>::quiet_NaN())),
            d4, scales);
  hn::Store(hn::Div(most, largest), d4, inverse);
  hn::Store(hn::VecFromMask(di4, counts), di4, kept);
  VI sums[4];
  Unroll<4>([&](auto g) ATTEND_INLINE_LAMBDA {
    VF scaled[4];
    Unroll<4>([&](auto i) ATTEND_INLINE_LAMBDA {
      scaled[i] = hn::Mul(hn::LoadU(d, groups[g].x + i * kLanes), hn::Set(d, inverse[g]));
    });
    const VI bytes = hn::And(RoundToBytes(scaled), hn::Set(di, kept[g]));
    hn::StoreU(bytes, di, reinterpret_cast<int32_t*>(groups[g].q));
    if constexpr (kStarts) {
      sums[g] = hn::Zero(di);
      AddQuadProducts(hn::Set(di, static_cast<int32_t>(0x80808080u)), bytes, sums[g]);  // 128 each
    }
  });
  for (size_t g = 0; g < 4; ++g) *groups[g].scale = scales[g];
  if constexpr (!kStarts) return;
  const auto sum =
      ReduceFour(sums, [](auto a, auto b) ATTEND_INLINE_LAMBDA { return hn::Add(a, b); });
  hn::Store(hn::Neg(sum), di4, starts);
  for (size_t g = 0; g < 4; ++g) {
    std::memcpy(groups[g].scale + 1, starts + g, sizeof(float));
  }
}

// All groups of the rows of `args`: at(row, group) is where the numbers of one go; of a last one
// that is not whole, q takes part_bytes.
template <bool kStarts, class At>
HWY_INLINE void QuantizeRows(const PrepareRowsArgs& args, size_t part_bytes, const At& at) {
  const size_t rows = static_cast<size_t>(args.rows), count = args.count();
  const size_t whole = count / kGroup, part = count % kGroup;
  Group four[4], next[4];
  size_t row = 0, group = 0;
  // The next four of all rows; behind the last group that one again.
  const auto take = [&](Group* groups) ATTEND_INLINE_LAMBDA {
    for (size_t i = 0; i < 4; ++i) {
      if (row == rows) {
        groups[i] = groups[i - 1];
        continue;
      }
      groups[i] = at(row, group);
      groups[i].x = args.x + row * args.stride() + group * kGroup;
      if (++group == whole) group = 0, ++row;
    }
  };
  if (whole > 0 && rows > 0) {
    // The largest of the next four are on their way while four are divided and rounded.
    take(four);
    auto bits = LargestOfFour(four);
    while (row < rows) {
      take(next);
      const auto now = bits;
      bits = LargestOfFour(next);
      QuantizeFour<kStarts>(four, now);
      std::copy_n(next, 4, four);
    }
    QuantizeFour<kStarts>(four, bits);
  }
  for (row = 0; row < rows && part > 0; ++row) {
    float x[kGroup] = {}, numbers[2], q[kGroup / 4];
    std::memcpy(x, args.x + row * args.stride() + whole * kGroup, part * sizeof(float));
    const Group padded = {x, numbers, q};
    std::fill_n(four, 4, padded);
    QuantizeFour<kStarts>(four, LargestOfFour(four));
    const Group to = at(row, whole);
    std::memcpy(to.scale, numbers, (kStarts ? 2 : 1) * sizeof(float));
    std::memcpy(to.q, q, part_bytes);
  }
}

void QuantizeQuads(const PrepareRowsArgs& args) {
  const size_t ld = static_cast<size_t>(QuantizedQuadsFloats(args.k));
  float* const first = args.out + static_cast<size_t>(args.begin) / kGroup * kGroupFloats;
  const size_t part_bytes = (args.count() % kGroup + 3) / 4 * 4;
  QuantizeRows<true>(args, part_bytes, [&](size_t row, size_t group) ATTEND_INLINE_LAMBDA {
    float* const out = first + row * ld + group * kGroupFloats;
    return Group{nullptr, out, out + 2};
  });
}

void QuantizeTiles(const PrepareRowsArgs& args) {
  const size_t ld = static_cast<size_t>(TiledInt8RowFloats(args.k));
  const size_t first = static_cast<size_t>(args.begin) / kGroup;
  const size_t scales = static_cast<size_t>(TiledScaleFloats(args.k));
  QuantizeRows<false>(args, kGroup, [&](size_t row, size_t group) ATTEND_INLINE_LAMBDA {
    float* const out = args.out + row * ld;
    return Group{nullptr, out + first + group, out + scales + (first + group) * (kGroup / 4)};
  });
}

#endif

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

PrepareRowsFn BindQuantizeQuads() { return N_AVX3::QuantizeQuads; }
PrepareRowsFn BindTiledInt8() { return N_AVX3::QuantizeTiles; }

}  // namespace attend
#endif  // HWY_ONCE
