#include "kernels/softmax.h"

#include <limits>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// +inf counts as the largest finite number, so that inf - inf makes no NaN. Min and Max return
// their second operand if one is NaN: NaN stays.
HWY_INLINE VF ClampAbove(F32 d, VF x) {
  return hn::Min(hn::Set(d, std::numeric_limits<float>::max()), x);
}

HWY_INLINE float RowMax(F32 d, const float* x, size_t width) {
  VF most = hn::Set(d, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + kLanes <= width; i += kLanes) most = hn::Max(hn::LoadU(d, x + i), most);
  if (i < width) {
    const size_t n = width - i;
    most = hn::Max(hn::IfThenElse(hn::FirstN(d, n), LoadTail(d, x + i, n), most), most);
  }
  return hn::GetLane(hn::MaxOfLanes(d, ClampAbove(d, most)));
}

void Softmax(const SoftmaxArgs& args) {
  const F32 d;
  const size_t width = static_cast<size_t>(args.width);
  for (int64_t row = 0; row < args.rows; ++row) {
    float* x = args.x + row * args.ldx;
    const float row_max = RowMax(d, x, width);
    // A row of -inf: any finite value in place of its maximum makes all its weights 0.
    const VF most = hn::Set(d, row_max == -std::numeric_limits<float>::infinity() ? 0.0f : row_max);
    VF sum = hn::Zero(d);
    size_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      const VF e = ExpNonpositive(d, hn::Sub(ClampAbove(d, hn::LoadU(d, x + i)), most));
      sum = hn::Add(sum, e);
      hn::StoreU(e, d, x + i);
    }
    if (i < width) {
      const size_t n = width - i;
      const VF e = ExpNonpositive(d, hn::Sub(ClampAbove(d, LoadTail(d, x + i, n)), most));
      sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n), e));
      StoreTail(e, d, x + i, n);
    }
    const float total = hn::GetLane(hn::SumOfLanes(d, sum));
    const VF factor = hn::Set(d, total == 0.0f ? 0.0f : 1.0f / total);
    for (i = 0; i + kLanes <= width; i += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factor), d, x + i);
    }
    if (i < width) {
      const size_t n = width - i;
      StoreTail(hn::Mul(LoadTail(d, x + i, n), factor), d, x + i, n);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Softmax);
SoftmaxFn BindSoftmax() { return ATTEND_BIND(Softmax); }

}  // namespace attend
#endif  // HWY_ONCE
