// Weights on their way into a packed panel of bf16 or int8, one at a time.
// Included once per target, after kernels/math-inl.h.
#if defined(ATTEND_KERNELS_GEMM_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_GEMM_WEIGHTS_INL_H_
#undef ATTEND_KERNELS_GEMM_WEIGHTS_INL_H_
#else
#define ATTEND_KERNELS_GEMM_WEIGHTS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// To the nearest, ties to even, and never to infinity.
inline uint32_t NarrowBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t narrow = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return (narrow & 0x7F80u) == 0x7F80u ? narrow - 1 : narrow;
}

// Two of K of a column of bf16, from the i-th on; zeros behind K.
inline uint32_t NarrowPair(const float* w, size_t i, size_t k) {
  if (i >= k) return 0;
  return NarrowBf16(w[i]) | (i + 1 < k ? NarrowBf16(w[i + 1]) << 16 : 0);
}

// Of one column of int8: max|w| / 127, so that 127 times it is finite.
inline float ColumnScale(const float* w, size_t k) {
  float largest = 0;
  for (size_t i = 0; i < k; ++i) largest = std::max(largest, std::fabs(w[i]));
  const float scale = largest / 127.0f;
  return std::isfinite(scale * 127.0f) ? scale : std::nextafter(scale, 0.0f);
}

// A column so small that its scale is 0 is one of zeros.
inline int8_t QuantizeWeight(float w, float scale) {
  if (scale == 0) return 0;
  const hn::CappedTag<float, 1> d;
  const int32_t q = hn::GetLane(hn::NearestInt(hn::Set(d, w / scale)));
  return static_cast<int8_t>(std::clamp(q, -127, 127));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_GEMM_WEIGHTS_INL_H_
