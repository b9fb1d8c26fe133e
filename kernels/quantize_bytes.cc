// Quantising to bytes, for a VNNI unit and for tiles. Four groups at a time: the largest of a
// group, and the sum, are one number out of 16 lanes, which takes a group alone eight steps, each
// waiting for the one before, and four together 13.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

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

// The bits of the largest magnitude in each group; they order as magnitudes do (quantize.cc).
HWY_INLINE hn::Vec<I32x4> LargestOfFour(const float* x) {
  const I32 d;
  const VI magnitude = hn::Set(d, 0x7FFFFFFF);
  VI largest[4];
  Unroll<4>([&](auto g) ATTEND_INLINE_LAMBDA {
    const auto at = [&](size_t i) ATTEND_INLINE_LAMBDA {
      return hn::And(hn::BitCast(d, hn::LoadU(F32(), x + (4 * g + i) * kLanes)), magnitude);
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

// Where the numbers of groups go, in floats: a scale, and behind it where sums start if kStarts; q.
template <bool kStarts>
struct Places {
  float* scale;
  float* q;
  size_t scale_step, q_step;  // to the next group's

  Places Of(size_t group) const {
    return {scale + group * scale_step, q + group * q_step, scale_step, q_step};
  }
};
Places<true> QuadPlaces(float* row) { return {row, row + 2, kGroupFloats, kGroupFloats}; }

// Four whole groups; `bits` are LargestOfFour(x).
template <bool kStarts>
HWY_INLINE void QuantizeFour(const float* x, hn::Vec<I32x4> bits, const Places<kStarts>& out) {
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
      scaled[i] = hn::Mul(hn::LoadU(d, x + (4 * g + i) * kLanes), hn::Set(d, inverse[g]));
    });
    const VI bytes = hn::And(RoundToBytes(scaled), hn::Set(di, kept[g]));
    hn::StoreU(bytes, di, reinterpret_cast<int32_t*>(out.q + g * out.q_step));
    if constexpr (kStarts) {
      sums[g] = hn::Zero(di);
      AddQuadProducts(hn::Set(di, static_cast<int32_t>(0x80808080u)), bytes, sums[g]);  // 128 each
    }
  });
  for (size_t g = 0; g < 4; ++g) out.scale[g * out.scale_step] = scales[g];
  if constexpr (!kStarts) return;
  const auto sum =
      ReduceFour(sums, [](auto a, auto b) ATTEND_INLINE_LAMBDA { return hn::Add(a, b); });
  hn::Store(hn::Neg(sum), di4, starts);
  for (size_t g = 0; g < 4; ++g) {
    std::memcpy(out.scale + g * out.scale_step + 1, starts + g, sizeof(float));
  }
}

// `rows` rows [k], each to places(row); `rest` is given the last of a row that are
// fewer than four whole groups: where they begin, how many elements they are, and their places.
template <bool kStarts, class At, class Rest>
HWY_INLINE void QuantizeRows(const float* x, size_t rows, size_t k, const At& places,
                             const Rest& rest) {
  constexpr size_t kFour = 4 * kGroup;
  for (size_t row = 0; row < rows; ++row, x += k) {
    const Places<kStarts> out = places(row);
    size_t i = 0;
    // The largest of the next four are on their way while four are divided and rounded.
    auto bits = k >= kFour ? LargestOfFour(x) : hn::Zero(I32x4());
    for (; i + kFour <= k; i += kFour) {
      const auto now = bits;
      if (i + 2 * kFour <= k) bits = LargestOfFour(x + i + kFour);
      QuantizeFour<kStarts>(x + i, now, out.Of(i / kGroup));
    }
    if (i < k) rest(x + i, k - i, out.Of(i / kGroup));
  }
}

// `count` elements, fewer than four groups, by way of four whole ones.
template <bool kStarts>
void QuantizeRest(const float* x, size_t count, const Places<kStarts>& out) {
  float whole[4 * kGroup] = {};
  std::memcpy(whole, x, count * sizeof(float));
  QuantizeFour<kStarts>(whole, LargestOfFour(whole), out);
}

void QuantizeQuads(const PrepareRowsArgs& args) {
  size_t rows = static_cast<size_t>(args.rows), k = static_cast<size_t>(args.k);
  // Rows of whole groups lie as one long row does.
  if (k % kGroup == 0) k *= std::exchange(rows, 1);
  const size_t ld = static_cast<size_t>(QuantizedQuadsFloats(static_cast<int64_t>(k)));
  QuantizeRows<true>(
      args.x, rows, k, [&](size_t row) { return QuadPlaces(args.out + row * ld); },
      [](const float* x, size_t count, const Places<true>& out) {
        float quantized[4 * kGroupFloats];
        QuantizeRest(x, count, QuadPlaces(quantized));
        const auto floats = QuantizedQuadsFloats(static_cast<int64_t>(count));
        std::memcpy(out.scale, quantized, static_cast<size_t>(floats) * sizeof(float));
      });
}

void QuantizeTiles(const PrepareRowsArgs& args) {
  const auto ld = static_cast<size_t>(TiledInt8RowFloats(args.k));
  const auto scales = static_cast<size_t>(TiledScaleFloats(args.k));
  constexpr size_t kFloats = kGroup / 4;  // of a group's q
  QuantizeRows<false>(
      args.x, static_cast<size_t>(args.rows), static_cast<size_t>(args.k),
      [&](size_t row) {
        float* const out = args.out + row * ld;
        return Places<false>{out, out + scales, 1, kFloats};
      },
      [](const float* x, size_t count, const Places<false>& out) {
        float some[4], q[4 * kFloats];
        QuantizeRest(x, count, Places<false>{some, q, 1, kFloats});
        const size_t groups = (count + kGroup - 1) / kGroup;
        std::memcpy(out.scale, some, groups * sizeof(float));
        std::memcpy(out.q, q, groups * kGroup);
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
