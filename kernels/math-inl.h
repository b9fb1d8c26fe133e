// Elementary functions on vectors of f32, and loads and stores of the ends of rows. Included once
// per target, after kernels/simd.h and Highway; everything lives in attend::HWY_NAMESPACE.
//
// Each error below is measured by tests/activation_test.cc and tests/softmax_test.cc over many
// thousands of arguments on every target. Polynomials were fitted by linear programming on a grid
// of Chebyshev points (the smallest largest error), coefficients rounded to f32.
#if defined(ATTEND_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_MATH_INL_H_
#undef ATTEND_KERNELS_MATH_INL_H_
#else
#define ATTEND_KERNELS_MATH_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;
using VI = hn::Vec<hn::RebindToSigned<F32>>;
// Lanes of a vector, known when compiling on each of the three targets.
inline constexpr size_t kLanes = HWY_LANES(float);

// Rows of a matrix product at a time: times two vectors of sums, with two operands and a broadcast,
// they fill the registers (32 on AVX-512; 16 on AVX2; on SSE4 a product needs one of its own).
#if HWY_TARGET == HWY_AVX3
inline constexpr size_t kMostRows = 12;
#elif HWY_TARGET == HWY_AVX2
inline constexpr size_t kMostRows = 6;
#else
inline constexpr size_t kMostRows = 4;
#endif

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

// The first `n` < kLanes floats at `p`, zeros behind them. Touches nothing past p[n - 1]: Highway's
// MaskedLoad does so only from AVX2 on; on SSE4 it reads a whole vector.
HWY_INLINE VF LoadTail(F32 d, const float* p, size_t n) {
#if HWY_TARGET == HWY_SSE4
  alignas(16) float lanes[kLanes] = {};
  std::memcpy(lanes, p, n * sizeof(float));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#endif
}

HWY_INLINE void StoreTail(VF v, F32 d, float* p, size_t n) {
#if HWY_TARGET == HWY_SSE4
  alignas(16) float lanes[kLanes];
  hn::Store(v, d, lanes);
  std::memcpy(p, lanes, n * sizeof(float));
#else
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#endif
}

// The upper half of the bits is the bf16; adding just under half of its last place, and one more if
// it is odd, rounds to the nearest with ties to even and carries into the exponent as it should.
HWY_INLINE VF RoundToBf16(VF x) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFFu)), odd);
  // Of a NaN the carry could make a number: it is made quiet instead.
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000u));
  const auto kept = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
  return hn::BitCast(d, hn::And(kept, hn::Set(du, 0xFFFF0000u)));
}

#if HWY_TARGET == HWY_AVX3
// Of a CPU with AVX-512 BF16. Highway 1.0.3 has no names for these instructions, and its target
// does not enable them. A lane of a vector of pairs holds two bf16, the first in its low half.

// Rounds to bf16, as RoundToBf16 does but for denormals, which become 0.
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, F32>> NarrowToBf16(VF x) {
  hn::Vec<hn::Rebind<uint16_t, F32>> narrow;
  asm("vcvtneps2bf16 %1, %0" : "=v"(narrow.raw) : "v"(x.raw));
  return narrow;
}
// In each lane: sum += second * second of *pair, then sum += first * first of *pair; each product
// is exact, each sum rounded once, denormals are 0.
template <class V>
HWY_INLINE void AddPairProducts(V pairs, const float* pair, VF& sum) {
  asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum.raw) : "v"(pairs.raw), "m"(*pair));
}
// Of a CPU with AVX-512 VNNI. In each lane: sum += four unsigned bytes times four signed ones,
// which are those of `quads`, or *quad for every lane.
HWY_INLINE void AddQuadProducts(VI unsigned_quads, VI quads, VI& sum) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(unsigned_quads.raw), "v"(quads.raw));
}
HWY_INLINE void AddQuadProducts(VI unsigned_quads, const float* quad, VI& sum) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum.raw) : "v"(unsigned_quads.raw), "m"(*quad));
}
#endif

// x 2^n by adding n to the exponent's bits; x and the result are normal numbers. `n` is what the
// low bits of n + kRoundMagic hold.
inline constexpr float kRoundMagic = 12582912.0f;  // 1.5 2^23: adding it rounds to an integer
HWY_INLINE VF ScaleByPow2(VF x, VF n_plus_magic) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, n_plus_magic));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, x), exponent));
}

// 2^x for x <= 0; exactly 1 at 0, exactly 0 below -126 and at -inf (never a denormal, which would
// slow down all that it is multiplied with); NaN stays NaN.
// Error: 2e-7 relative.
HWY_INLINE VF Exp2Nonpositive(F32 d, VF x) {
  const VF magic = hn::Set(d, kRoundMagic);
  const VF shifted = hn::Add(x, magic);
  const VF r = hn::Sub(x, hn::Sub(shifted, magic));  // exact, in [-0.5, 0.5]
  VF p = hn::Set(d, 0.00132098549f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00967106316f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0555089302f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.240222588f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.693146944f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), ScaleByPow2(p, shifted));
}

// The same, by a polynomial for three digits less: for what is rounded to bf16 next.
// Error: 1.1e-4 relative, by the fit; what attention makes of it is held by its tests.
HWY_INLINE VF RoughExp2Nonpositive(F32 d, VF x) {
  const VF magic = hn::Set(d, kRoundMagic);
  const VF shifted = hn::Add(x, magic);
  const VF r = hn::Sub(x, hn::Sub(shifted, magic));
  VF p = hn::Set(d, 0.0550089329f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.242210969f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.693282902f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), ScaleByPow2(p, shifted));
}

// e^x for x in [-87.3, 88]; exactly 1 at 0; NaN stays.
// Error: 2e-7 relative.
HWY_INLINE VF ExpBounded(F32 d, VF x) {
  const VF magic = hn::Set(d, kRoundMagic);
  const VF shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const VF n = hn::Sub(shifted, magic);
  // ln 2 in two parts; n times the first is exact, also without a fused multiply-add.
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  VF p = hn::Set(d, 0.00138208456f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00836753193f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416678824f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16666542f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return ScaleByPow2(p, shifted);
}

// e^x for x <= 0; exactly 1 at 0, exactly 0 below -87.3 and at -inf (never a denormal); NaN stays.
// Error: 2e-7 relative.
HWY_INLINE VF ExpNonpositive(F32 d, VF x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), ExpBounded(d, x));
}

// 1 / (1 + e^-x). Error: 4e-7 relative for x > -87.3, exactly 0 below.
HWY_INLINE VF Sigmoid(F32 d, VF x) {
  const VF one = hn::Set(d, 1.0f);
  const VF e = ExpNonpositive(d, hn::Neg(hn::Abs(x)));
  const VF numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

// tanh x. Error: 4e-7 relative.
HWY_INLINE VF Tanh(F32 d, VF x) {
  const VF one = hn::Set(d, 1.0f);
  const VF a = hn::Abs(x);
  // Below 0.55 the formula at the end would cancel; there x + x^3 P(x^2).
  const VF u = hn::Mul(x, x);
  VF p = hn::Set(d, 0.0026471843f);
  p = hn::MulAdd(p, u, hn::Set(d, -0.00862547569f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.0218460746f));
  p = hn::MulAdd(p, u, hn::Set(d, -0.0539676286f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.133333325f));
  p = hn::MulAdd(p, u, hn::Set(d, -0.333333343f));
  const VF small = hn::MulAdd(hn::Mul(p, u), a, a);
  const VF e = ExpNonpositive(d, hn::Mul(a, hn::Set(d, -2.0f)));
  const VF large = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.55f)), small, large), x);
}

// The exact GELU, x Phi(x) = max(x, 0) - g(|x|), where g(a) = a erfc(a / sqrt 2) / 2 is a small
// bump that is 0 to the eye beyond 5.25: a polynomial of degree 15 there, no exp and no division.
// x = -inf gives 0.
// Error: 5e-7 absolute, and 2e-6 of the value where |x| < 0.25.
HWY_INLINE VF Gelu(F32 d, VF x) {
  const VF a = hn::Abs(x);
  const VF t = hn::MulAdd(a, hn::Set(d, 2.0f / 5.25f), hn::Set(d, -1.0f));
  VF p = hn::Set(d, -0.00387812103f);
  p = hn::MulAdd(p, t, hn::Set(d, 0.00585088693f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0173003785f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0376664214f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0164071545f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0987200141f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0634845495f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0957861096f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.196832344f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0976318493f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.121022381f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.257104725f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.225938946f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.115076229f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0334014185f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.00433243951f));
  const VF bump = hn::IfThenElseZero(hn::Lt(a, hn::Set(d, 5.25f)), hn::Mul(a, p));
  // Max returns its second operand if one is NaN.
  return hn::Sub(hn::Max(hn::Zero(d), x), bump);
}

// The same, by a polynomial for three digits less: for what is rounded to bf16 or int8 next.
// Error: 1.6e-5; where |x| < 0.25, 3e-4 |x Phi(x)|.
HWY_INLINE VF RoughGelu(F32 d, VF x) {
  const VF a = hn::Abs(x);
  const VF t = hn::MulAdd(a, hn::Set(d, 2.0f / 4.5f), hn::Set(d, -1.0f));
  VF p = hn::Set(d, -0.0191992372f);
  p = hn::MulAdd(p, t, hn::Set(d, 0.0290861093f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0498606898f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.128622591f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0371772274f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.15630731f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.246419221f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.180935517f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0713466704f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0122210328f));
  const VF bump = hn::IfThenElseZero(hn::Lt(a, hn::Set(d, 4.5f)), hn::Mul(a, p));
  // Max returns its second operand if one is NaN.
  return hn::Sub(hn::Max(hn::Zero(d), x), bump);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_MATH_INL_H_
