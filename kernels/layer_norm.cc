#include "kernels/layer_norm.h"

#include <cmath>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// Four sums side by side hide the latency of an addition; they are folded in one fixed order.
struct Sums {
  VF s0, s1, s2, s3;
};

HWY_INLINE float Fold(F32 d, const Sums& sums) {
  const VF all = hn::Add(hn::Add(sums.s0, sums.s1), hn::Add(sums.s2, sums.s3));
  return hn::GetLane(hn::SumOfLanes(d, all));
}

// The sum over i of term(x[i] - shift), where term(v) is v or v^2.
template <bool kSquare>
HWY_INLINE float SumRow(F32 d, const float* x, size_t width, float shift) {
  const VF c = hn::Set(d, shift);
  const VF zero = hn::Zero(d);
  Sums sums{zero, zero, zero, zero};
  const auto add = [&](VF sum, VF v) HWY_ATTR {
    if constexpr (!kSquare) return hn::Add(sum, v);
    const VF centred = hn::Sub(v, c);
    return hn::MulAdd(centred, centred, sum);
  };
  size_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
    sums.s0 = add(sums.s0, hn::LoadU(d, x + i));
    sums.s1 = add(sums.s1, hn::LoadU(d, x + i + kLanes));
    sums.s2 = add(sums.s2, hn::LoadU(d, x + i + 2 * kLanes));
    sums.s3 = add(sums.s3, hn::LoadU(d, x + i + 3 * kLanes));
  }
  for (; i + kLanes <= width; i += kLanes) sums.s0 = add(sums.s0, hn::LoadU(d, x + i));
  if (i < width) {
    const size_t n = width - i;
    const VF tail = add(zero, LoadTail(d, x + i, n));
    sums.s1 = hn::Add(sums.s1, hn::IfThenElseZero(hn::FirstN(d, n), tail));
  }
  return Fold(d, sums);
}

// s = x + residual, written to `out`.
HWY_INLINE void AddRow(F32 d, const float* x, const float* residual, float* out, size_t width) {
  size_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, residual + i)), d, out + i);
  }
  if (i < width) {
    const size_t n = width - i;
    StoreTail(hn::Add(LoadTail(d, x + i, n), LoadTail(d, residual + i, n)), d, out + i, n);
  }
}

// out = (s - shift) * factor * weight + bias.
template <bool kWeight, bool kBias>
HWY_INLINE void ScaleRow(F32 d, const float* s, const NormArgs& args, float shift, float factor,
                         float* out) {
  const VF c = hn::Set(d, shift);
  const VF f = hn::Set(d, factor);
  const size_t width = static_cast<size_t>(args.width);
  size_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    VF y = hn::Mul(hn::Sub(hn::LoadU(d, s + i), c), f);
    if constexpr (kWeight) y = hn::Mul(y, hn::LoadU(d, args.weight + i));
    if constexpr (kBias) y = hn::Add(y, hn::LoadU(d, args.bias + i));
    hn::StoreU(y, d, out + i);
  }
  if (i < width) {
    const size_t n = width - i;
    VF y = hn::Mul(hn::Sub(LoadTail(d, s + i, n), c), f);
    if constexpr (kWeight) y = hn::Mul(y, LoadTail(d, args.weight + i, n));
    if constexpr (kBias) y = hn::Add(y, LoadTail(d, args.bias + i, n));
    StoreTail(y, d, out + i, n);
  }
}

template <bool kCentre>
HWY_INLINE void Norm(const NormArgs& args) {
  const F32 d;
  const size_t width = static_cast<size_t>(args.width);
  const float n = static_cast<float>(args.width);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* s = args.x + row * args.ldx;
    float* out = args.out + row * args.ld_out;
    if (args.residual != nullptr) {
      AddRow(d, s, args.residual + row * args.ld_residual, out, width);
      s = out;
    }
    const float mean = kCentre ? SumRow<false>(d, s, width, 0.0f) / n : 0.0f;
    const float variance = SumRow<true>(d, s, width, mean) / n;
    const float factor = 1.0f / std::sqrt(variance + args.eps);
    if (args.weight != nullptr && args.bias != nullptr) {
      ScaleRow<true, true>(d, s, args, mean, factor, out);
    } else if (args.weight != nullptr) {
      ScaleRow<true, false>(d, s, args, mean, factor, out);
    } else if (args.bias != nullptr) {
      ScaleRow<false, true>(d, s, args, mean, factor, out);
    } else {
      ScaleRow<false, false>(d, s, args, mean, factor, out);
    }
  }
}

void LayerNorm(const NormArgs& args) { Norm<true>(args); }
void RmsNorm(const NormArgs& args) { Norm<false>(args); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(LayerNorm);
HWY_EXPORT(RmsNorm);
NormFn BindLayerNorm() { return ATTEND_BIND(LayerNorm); }
NormFn BindRmsNorm() { return ATTEND_BIND(RmsNorm); }

}  // namespace attend
#endif  // HWY_ONCE
