// The GEMM of f32: the inner loop and the packing. How panels are cut: gemm_blocks-inl.h.
#include "kernels/gemm_highway.h"

#include <algorithm>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_highway.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
// math-inl.h comes first.
#include "kernels/gemm_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

namespace {  // the names are those of the other GEMMs

using Block = FloatBlock<float, 1>;

struct Multiply {
  // On AVX-512 twelve rows would fill the registers, but the pointers to them do not fit theirs.
  static constexpr size_t kRows = std::min<size_t>(kMostRows, 10);
  template <size_t kR, size_t kStrips>
  static HWY_NOINLINE void Run(const Block& block) {
    const F32 d;
    constexpr size_t kVectors = 2 * kStrips;
    VF sums[kR * kVectors];
    block.LoadSums<kR, kVectors>(sums);
    const float* a[kR];
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA { a[r] = block.a + r * block.lda; });
    const float* w[kStrips];
    Unroll<kStrips>([&](auto s) ATTEND_INLINE_LAMBDA { w[s] = block.w + s * block.strip_stride; });
    Ahead ahead = block.ahead;
    for (size_t i = 0; i < block.depth; ++i) {
      if constexpr (kStrips == 1) ahead.Fetch<Block::kBytes>();
      VF columns[kVectors];
      Unroll<kStrips>([&](auto s) ATTEND_INLINE_LAMBDA {
        const float* strip = w[s] + i * kStrip;
        columns[2 * s] = hn::Load(d, strip);
        columns[2 * s + 1] = hn::Load(d, strip + kLanes);
        if constexpr (kStrips > 1) FetchNear(strip);
      });
      AddProducts<kR, kVectors>(a, i, columns, sums);
    }
    block.StoreSums<kR, kVectors>(sums);
  }
};

void GemmPanel(const GemmPanelArgs& args) {
  RunFloatPanel<Multiply, float, 1>(args, static_cast<size_t>(args.k));
}

void PackPanel(const PackPanelArgs& args) {
  const size_t k = static_cast<size_t>(args.k), columns = static_cast<size_t>(args.columns);
  for (size_t column = 0; column < columns; column += kStrip) {
    const size_t count = std::min(kStrip, columns - column);
    float* const strip = static_cast<float*>(args.packed) + column * k;
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = 0; j < kStrip; ++j) {
        strip[i * kStrip + j] = j < count ? args.w[(column + j) * k + i] : 0.0f;
      }
    }
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(PackPanel);
HWY_EXPORT(GemmPanel);
GemmKernels BindGemmF32() {
  return {.pack = ATTEND_BIND(PackPanel), .run = ATTEND_BIND(GemmPanel)};
}

GemmKernels BindGemm(GemmType type) {
  switch (type) {
    case GemmType::kBf16:
      return BindGemmBf16();
    case GemmType::kInt8:
      return BindGemmInt8();
    default:
      return BindGemmF32();
  }
}

int64_t PackedPanelBytes(GemmType type, int64_t columns, int64_t k) {
  constexpr int64_t kWidestStrip = 32;  // that of AVX-512
  const int64_t wide = (columns + kWidestStrip - 1) / kWidestStrip * kWidestStrip;
  const bool tiles = BoundIsa() >= Isa::kAmx;  // whole ones
  const int64_t even = tiles ? (k + 31) / 32 * 32 : (k + 1) / 2 * 2;
  const int64_t fours = tiles ? (k + 63) / 64 * 64 : (k + 3) / 4 * 4;
  switch (type) {
    case GemmType::kBf16:
      return wide * even * 2;
    case GemmType::kInt8:
      return wide * fours + wide * 4;  // and the scales
    default:
      return wide * k * 4;
  }
}

int64_t PreparedRowFloats(GemmType type, int64_t k) {
  const GemmKernels kernels = BindGemm(type);
  return kernels.row_floats == nullptr ? 0 : kernels.row_floats(k);
}

}  // namespace attend
#endif  // HWY_ONCE
