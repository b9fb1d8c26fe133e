#include "kernels/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;

void RoundBf16(const PrepareRowsArgs& args) {
  const F32 d;
  const size_t k = args.count(), begin = static_cast<size_t>(args.begin);
  const size_t ld = static_cast<size_t>(RoundedRowFloats(args.k));
  for (size_t row = 0; row < static_cast<size_t>(args.rows); ++row) {
    const float* x = args.x + row * args.stride();
    float* const out = args.out + row * ld + begin;
    size_t i = 0;
    for (; i + kLanes <= k; i += kLanes) {
      hn::StoreU(RoundToBf16(hn::LoadU(d, x + i)), d, out + i);
    }
    // kLanes is even, so an odd K has a tail, and the zero behind it comes with the tail's zeros.
    if (i < k) StoreTail(RoundToBf16(LoadTail(d, x + i, k - i)), d, out + i, ld - begin - i);
  }
}

#if HWY_TARGET == HWY_AVX3
// Rows of `ld` floats, with zeros behind K up to the `row_end`-th element.
HWY_INLINE void PairRows(const PrepareRowsArgs& args, size_t ld, size_t row_end) {
  const F32 d;
  const hn::Rebind<uint16_t, F32> d16;
  const size_t k = args.count(), begin = static_cast<size_t>(args.begin);
  const size_t end = args.ends_k() ? row_end - begin : k;
  for (size_t row = 0; row < static_cast<size_t>(args.rows); ++row) {
    const float* x = args.x + row * args.stride();
    auto* const out = reinterpret_cast<uint16_t*>(args.out + row * ld) + begin;
    size_t i = 0;
    for (; i + kLanes <= k; i += kLanes) {
      hn::StoreU(NarrowToBf16(hn::LoadU(d, x + i)), d16, out + i);
    }
    if (i < k) {
      alignas(64) uint16_t tail[kLanes];
      hn::Store(NarrowToBf16(LoadTail(d, x + i, k - i)), d16, tail);
      const size_t some = std::min(kLanes, end - i);
      std::memcpy(out + i, tail, some * sizeof(uint16_t));
      i += some;
    }
    if (i < end) std::memset(out + i, 0, (end - i) * sizeof(uint16_t));
  }
}

void PairBf16(const PrepareRowsArgs& args) {
  const size_t ld = static_cast<size_t>(PairedRowFloats(args.k));
  PairRows(args, ld, 2 * ld);
}
void TileBf16(const PrepareRowsArgs& args) {
  const size_t end = static_cast<size_t>((args.k + 31) / 32 * 32);
  PairRows(args, static_cast<size_t>(TiledBf16RowFloats(args.k)), end);
}
#endif

// The bits of the largest magnitude of `k` elements. Magnitudes order as their bits do, infinity
// above all numbers and NaN above infinity, so nothing is lost, as it would be by a maximum of
// floats.
HWY_INLINE int32_t LargestMagnitudeBits(const float* x, size_t k) {
  const F32 d;
  const I32 di;
  const auto magnitude = hn::Set(di, 0x7FFFFFFF);
  VI largest = hn::Zero(di);
  size_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    largest = hn::Max(largest, hn::And(hn::BitCast(di, hn::LoadU(d, x + i)), magnitude));
  }
  if (i < k) {
    largest = hn::Max(largest, hn::And(hn::BitCast(di, LoadTail(d, x + i, k - i)), magnitude));
  }
  return hn::GetLane(hn::MaxOfLanes(di, largest));
}

// Integers `Q`, and zeros behind them up to a multiple of kEach. Adding kRoundMagic rounds, ties to
// even, and leaves the integer in the low bits of the float.
template <class Q, size_t kEach>
HWY_INLINE void QuantizeElements(const float* x, size_t k, float inverse, Q* out) {
  const F32 d;
  const hn::Rebind<std::make_unsigned_t<Q>, F32> dq;
  auto* const to = reinterpret_cast<std::make_unsigned_t<Q>*>(out);
  const VF factor = hn::Set(d, inverse), magic = hn::Set(d, kRoundMagic);
  const auto quantize = [&](VF v) ATTEND_INLINE_LAMBDA {
    return hn::TruncateTo(dq, hn::BitCast(U32(), hn::Add(hn::Mul(v, factor), magic)));
  };
  size_t i = 0;
  for (; i + kLanes <= k; i += kLanes) hn::StoreU(quantize(hn::LoadU(d, x + i)), dq, to + i);
  if (i < k) {
    alignas(64) std::make_unsigned_t<Q> tail[kLanes];
    hn::StoreU(quantize(LoadTail(d, x + i, k - i)), dq, tail);
    std::memcpy(out + i, tail, (k - i + kEach - 1) / kEach * kEach * sizeof(Q));
  }
}

// One group [count]; returns its scale.
template <class Q, size_t kEach>
HWY_INLINE float QuantizeGroup(const float* x, size_t count, Q* out) {
  const float largest = std::bit_cast<float>(LargestMagnitudeBits(x, count));
  if (std::isfinite(largest) && largest >= kSmallestQuantized) {
    QuantizeElements<Q, kEach>(x, count, 127.0f / largest, out);
    return largest / 127.0f;
  }
  std::memset(out, 0, (count + kEach - 1) / kEach * kEach * sizeof(Q));
  return std::isfinite(largest) ? 0.0f : std::numeric_limits<float>::quiet_NaN();
}

// A row: the scales, and the integers.
template <class Q, size_t kEach>
HWY_INLINE void QuantizeRow(const float* x, size_t k, float* scales, Q* out) {
  constexpr size_t kGroup = static_cast<size_t>(kQuantizeGroup);
  for (size_t begin = 0; begin < k; begin += kGroup) {
    const size_t count = std::min(kGroup, k - begin);
    *scales++ = QuantizeGroup<Q, kEach>(x + begin, count, out + begin);
  }
}

void Quantize(const PrepareRowsArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    float* const scales = args.out + row * QuantizedRowFloats(args.k);
    auto* const out = reinterpret_cast<int16_t*>(scales + QuantizeGroups(args.k));
    QuantizeRow<int16_t, 2>(args.x + static_cast<size_t>(row) * args.stride(), args.count(),
                            scales + args.begin / kQuantizeGroup, out + args.begin);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(RoundBf16);
HWY_EXPORT(Quantize);
PrepareRowsFn BindRoundBf16() { return ATTEND_BIND(RoundBf16); }
PrepareRowsFn BindPairBf16() { return N_AVX3::PairBf16; }
PrepareRowsFn BindTiledBf16() { return N_AVX3::TileBf16; }
PrepareRowsFn BindQuantize() { return ATTEND_BIND(Quantize); }

}  // namespace attend
#endif  // HWY_ONCE
