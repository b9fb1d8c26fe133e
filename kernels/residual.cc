// The skeleton: the smallest whole kernel file. kernels/README.md walks through it.
#include "kernels/residual.h"

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/residual.cc"
#include "hwy/foreach_target.h"  // compiles the rest of this file once per target
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

void Residual(const ResidualArgs& args) {
  const F32 d;
  const size_t width = static_cast<size_t>(args.width);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.ldx;
    const float* residual = args.residual + row * args.ld_residual;
    float* out = args.out + row * args.ld_out;
    size_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, residual + i)), d, out + i);
    }
    if (i < width) {
      const size_t n = width - i;
      StoreTail(hn::Add(LoadTail(d, x + i, n), LoadTail(d, residual + i, n)), d, out + i, n);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Residual);
ResidualFn BindResidual() { return ATTEND_BIND(Residual); }

}  // namespace attend
#endif  // HWY_ONCE
