#include "kernels/pool.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

struct SumOp {
  static HWY_INLINE VF Apply(VF sum, VF x) { return hn::Add(sum, x); }
  static HWY_INLINE VF Finish(VF sum, VF rows) { return hn::Div(sum, rows); }
};

struct MaxOp {
  // Max returns its second operand if one is NaN, so a NaN among the first must be kept by hand.
  static HWY_INLINE VF Apply(VF most, VF x) {
    return hn::IfThenElse(hn::IsNaN(most), most, hn::Max(most, x));
  }
  static HWY_INLINE VF Finish(VF most, VF /*rows*/) { return most; }
};

// Walks the columns in strips of four vectors that stay in registers over all rows.
template <class Op>
HWY_INLINE void Pool(const PoolArgs& args) {
  const F32 d;
  const VF rows = hn::Set(d, static_cast<float>(args.rows));
  const size_t width = static_cast<size_t>(args.width);
  size_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
    const float* x = args.x + i;
    VF y0 = hn::LoadU(d, x), y1 = hn::LoadU(d, x + kLanes);
    VF y2 = hn::LoadU(d, x + 2 * kLanes), y3 = hn::LoadU(d, x + 3 * kLanes);
    for (int64_t row = 1; row < args.rows; ++row) {
      x += args.ldx;
      y0 = Op::Apply(y0, hn::LoadU(d, x));
      y1 = Op::Apply(y1, hn::LoadU(d, x + kLanes));
      y2 = Op::Apply(y2, hn::LoadU(d, x + 2 * kLanes));
      y3 = Op::Apply(y3, hn::LoadU(d, x + 3 * kLanes));
    }
    hn::StoreU(Op::Finish(y0, rows), d, args.out + i);
    hn::StoreU(Op::Finish(y1, rows), d, args.out + i + kLanes);
    hn::StoreU(Op::Finish(y2, rows), d, args.out + i + 2 * kLanes);
    hn::StoreU(Op::Finish(y3, rows), d, args.out + i + 3 * kLanes);
  }
  for (; i < width; i += kLanes) {
    const size_t n = std::min(kLanes, width - i);
    const float* x = args.x + i;
    VF y = n == kLanes ? hn::LoadU(d, x) : LoadTail(d, x, n);
    for (int64_t row = 1; row < args.rows; ++row) {
      x += args.ldx;
      y = Op::Apply(y, n == kLanes ? hn::LoadU(d, x) : LoadTail(d, x, n));
    }
    y = Op::Finish(y, rows);
    if (n == kLanes) {
      hn::StoreU(y, d, args.out + i);
    } else {
      StoreTail(y, d, args.out + i, n);
    }
  }
}

void PoolMean(const PoolArgs& args) { Pool<SumOp>(args); }
void PoolMax(const PoolArgs& args) { Pool<MaxOp>(args); }

void Normalize(const NormalizeArgs& args) {
  const F32 d;
  const size_t width = static_cast<size_t>(args.width);
  for (int64_t row = 0; row < args.rows; ++row) {
    float* x = args.x + row * args.ldx;
    VF sum = hn::Zero(d);
    size_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      const VF v = hn::LoadU(d, x + i);
      sum = hn::MulAdd(v, v, sum);
    }
    if (i < width) {
      const VF v = LoadTail(d, x + i, width - i);
      sum = hn::MulAdd(v, v, sum);
    }
    const float length = std::sqrt(hn::GetLane(hn::SumOfLanes(d, sum)));
    // Written so that a NaN length stays NaN.
    const VF divisor = hn::Set(d, length < 1e-12f ? 1e-12f : length);
    for (i = 0; i + kLanes <= width; i += kLanes) {
      hn::StoreU(hn::Div(hn::LoadU(d, x + i), divisor), d, x + i);
    }
    if (i < width) {
      const size_t n = width - i;
      StoreTail(hn::Div(LoadTail(d, x + i, n), divisor), d, x + i, n);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(PoolMean);
HWY_EXPORT(PoolMax);
HWY_EXPORT(Normalize);
PoolFn BindPoolMean() { return ATTEND_BIND(PoolMean); }
PoolFn BindPoolMax() { return ATTEND_BIND(PoolMax); }
NormalizeFn BindNormalize() { return ATTEND_BIND(Normalize); }

}  // namespace attend
#endif  // HWY_ONCE
