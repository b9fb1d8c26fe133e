// As gemm_highway.cc, with weights in bf16: two of K side by side in a lane of 32 bits. Where the
// CPU has a unit for bf16, rows are packed like that too, and it adds the products of two pairs at
// once. Elsewhere the first of a pair becomes a float by a shift, the second by clearing what lies
// below it.
#include <algorithm>

#include "kernels/gemm_highway.h"
#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_bf16.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
// math-inl.h comes first.
#include "kernels/gemm_blocks-inl.h"
#include "kernels/gemm_weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {  // the names are those of the other GEMMs

using U32 = hn::RebindToUnsigned<F32>;

using Block = FloatBlock<uint32_t, 2>;  // a lane is a pair of K

HWY_INLINE VF FirstOfPair(const uint32_t* w) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::Load(U32(), w)));
}
// By two shifts: a mask would take a register that there is not.
HWY_INLINE VF SecondOfPair(const uint32_t* w) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::ShiftRight<16>(hn::Load(U32(), w))));
}

struct Multiply {
  static constexpr size_t kRows = kMostRows;
  template <size_t kR, size_t kStrips>
  static HWY_NOINLINE void Run(const Block& block) {
    constexpr size_t kVectors = 2 * kStrips;
    VF sums[kR * kVectors];
    block.LoadSums<kR, kVectors>(sums);
    const float* a[kR];
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA { a[r] = block.a + r * block.lda; });
    Ahead ahead = block.ahead;
    for (size_t i = 0; i < block.depth; ++i) {
      if constexpr (kStrips == 1) ahead.Fetch<Block::kBytes>();
      const uint32_t* pairs = block.w + i * kStrip;
      const auto lanes_at = [&](auto v) ATTEND_INLINE_LAMBDA {
        return pairs + v / 2 * block.strip_stride + v % 2 * kLanes;
      };
      VF columns[kVectors];
      Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA { columns[v] = FirstOfPair(lanes_at(v)); });
      if constexpr (kStrips > 1) {
        Unroll<kStrips>([&](auto s)
                            ATTEND_INLINE_LAMBDA { FetchNear(pairs + s * block.strip_stride); });
      }
      AddProducts<kR, kVectors>(a, 2 * i, columns, sums);
      // The pairs are loaded again from L1, and nothing of the second half is begun early: either
      // would take more registers than there are, and sums would go to memory.
      Unroll<kR * kVectors>([&](auto s) ATTEND_INLINE_LAMBDA { KeepInRegister(sums[s]); });
      asm volatile("" : "+r"(pairs), "+r"(i));
      Unroll<kVectors>([&](auto v)
                           ATTEND_INLINE_LAMBDA { columns[v] = SecondOfPair(lanes_at(v)); });
      AddProducts<kR, kVectors>(a, 2 * i + 1, columns, sums);
    }
    block.StoreSums<kR, kVectors>(sums);
  }
};

void GemmPanel(const GemmPanelArgs& args) {
  RunFloatPanel<Multiply, uint32_t, 2>(args, static_cast<size_t>(RoundedRowFloats(args.k)));
}

#if HWY_TARGET == HWY_AVX3
// With the unit.
using PairBlock = FloatBlock<uint32_t, 1>;  // of rows too, a lane is a pair of K

struct MultiplyPairs {
  static constexpr size_t kRows = kMostRows;
  template <size_t kR, size_t kStrips>
  static HWY_NOINLINE void Run(const PairBlock& block) {
    constexpr size_t kVectors = 2 * kStrips;
    VF sums[kR * kVectors];
    block.LoadSums<kR, kVectors>(sums);
    const float* a[kR];
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA { a[r] = block.a + r * block.lda; });
    Ahead ahead = block.ahead;
    for (size_t i = 0; i < block.depth; ++i) {
      if constexpr (kStrips == 1) ahead.Fetch<PairBlock::kBytes>();
      hn::Vec<U32> columns[kVectors];
      Unroll<kStrips>([&](auto s) ATTEND_INLINE_LAMBDA {
        const uint32_t* strip = block.w + s * block.strip_stride + i * kStrip;
        columns[2 * s] = hn::Load(U32(), strip);
        columns[2 * s + 1] = hn::Load(U32(), strip + kLanes);
        if constexpr (kStrips > 1) FetchNear(strip);
      });
      Unroll<kR * kVectors>([&](auto s) ATTEND_INLINE_LAMBDA {
        AddPairProducts(columns[s % kVectors], a[s / kVectors] + i, sums[s]);
      });
    }
    block.StoreSums<kR, kVectors>(sums);
  }
};

void GemmPairs(const GemmPanelArgs& args) {
  RunFloatPanel<MultiplyPairs, uint32_t, 1>(args, static_cast<size_t>(PairedRowFloats(args.k)));
}
#endif

void PackPanel(const PackPanelArgs& args) {
  const size_t k = static_cast<size_t>(args.k), columns = static_cast<size_t>(args.columns);
  const size_t pairs = (k + 1) / 2;
  for (size_t column = 0; column < columns; column += kStrip) {
    const size_t count = std::min(kStrip, columns - column);
    uint32_t* const strip = static_cast<uint32_t*>(args.packed) + column * pairs;
    for (size_t i = 0; i < pairs; ++i) {
      for (size_t j = 0; j < kStrip; ++j) {
        strip[i * kStrip + j] = j < count ? NarrowPair(args.w + (column + j) * k, 2 * i, k) : 0;
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
GemmKernels BindGemmBf16() {
  if (BoundIsa() >= Isa::kAmx) return BindTilesBf16();
  if (BoundIsa() >= Isa::kAvx512Bf16) {
    return {.pack = N_AVX3::PackPanel,
            .run = N_AVX3::GemmPairs,
            .prepare = BindPairBf16(),
            .row_floats = PairedRowFloats};
  }
  return {.pack = ATTEND_BIND(PackPanel),
          .run = ATTEND_BIND(GemmPanel),
          .prepare = BindRoundBf16(),
          .row_floats = RoundedRowFloats};
}

}  // namespace attend
#endif  // HWY_ONCE
