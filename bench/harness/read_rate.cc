#include "bench/harness/read_rate.h"

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/harness/read_rate.cc"
#include "hwy/foreach_target.h"  // compiles the rest of this file once per target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attend::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

float SumFloats(const float* values, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (int64_t i = 0; i + 8 * lanes <= count; i += 8 * lanes) {
    const float* v = values + i;
    s0 = hn::Add(s0, hn::Load(d, v));
    s1 = hn::Add(s1, hn::Load(d, v + lanes));
    s2 = hn::Add(s2, hn::Load(d, v + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, v + 3 * lanes));
    s4 = hn::Add(s4, hn::Load(d, v + 4 * lanes));
    s5 = hn::Add(s5, hn::Load(d, v + 5 * lanes));
    s6 = hn::Add(s6, hn::Load(d, v + 6 * lanes));
    s7 = hn::Add(s7, hn::Load(d, v + 7 * lanes));
  }
  const auto low = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  const auto high = hn::Add(hn::Add(s4, s5), hn::Add(s6, s7));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::bench {

HWY_EXPORT(SumFloats);
SumFloatsFn BindSumFloats() { return ATTEND_BIND(SumFloats); }

}  // namespace attend::bench
#endif  // HWY_ONCE
