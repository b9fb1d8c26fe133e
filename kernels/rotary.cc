#include "kernels/rotary.h"

#include <cmath>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotary.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// The pairs of one head: x[i] and x[half + i].
HWY_INLINE void RotateHead(F32 d, const float* cosines, const float* sines, size_t half, float* x) {
  size_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const VF c = hn::LoadU(d, cosines + i), s = hn::LoadU(d, sines + i);
    const VF low = hn::LoadU(d, x + i), high = hn::LoadU(d, x + half + i);
    hn::StoreU(hn::NegMulAdd(high, s, hn::Mul(low, c)), d, x + i);
    hn::StoreU(hn::MulAdd(low, s, hn::Mul(high, c)), d, x + half + i);
  }
  if (i == half) return;
  const size_t n = half - i;
  const VF c = LoadTail(d, cosines + i, n), s = LoadTail(d, sines + i, n);
  const VF low = LoadTail(d, x + i, n), high = LoadTail(d, x + half + i, n);
  StoreTail(hn::NegMulAdd(high, s, hn::Mul(low, c)), d, x + i, n);
  StoreTail(hn::MulAdd(low, s, hn::Mul(high, c)), d, x + half + i, n);
}

void Rotary(const RotaryArgs& args) {
  const F32 d;
  const size_t half = static_cast<size_t>(args.dims) / 2;
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* cosines = args.table + args.positions[row] * args.dims;
    for (int64_t h = 0; h < args.heads; ++h) {
      RotateHead(d, cosines, cosines + half, half, args.x + row * args.ldx + h * args.head_dim);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Rotary);
RotaryFn BindRotary() { return ATTEND_BIND(Rotary); }

void FillRotaryTable(const double* frequencies, int64_t dims, int64_t positions, float* table) {
  const int64_t half = dims / 2;
  for (int64_t p = 0; p < positions; ++p, table += dims) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * frequencies[i];
      table[i] = static_cast<float>(std::cos(angle));
      table[half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace attend
#endif  // HWY_ONCE
