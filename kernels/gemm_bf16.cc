// As gemm_highway.cc, with weights in bf16: two of K side by side in a lane of 32 bits. The first
// of them becomes a float by a shift, the second by clearing what lies below it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/gemm_highway.h"
#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_bf16.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {  // the names are those of the other GEMMs

using U32 = hn::RebindToUnsigned<F32>;

// Columns of a strip.
constexpr size_t kStrip = 2 * kLanes;

// Rows at a time, as in gemm_highway.cc.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kMostRows = 12;
#elif HWY_TARGET == HWY_AVX2
constexpr size_t kMostRows = 6;
#else
constexpr size_t kMostRows = 4;
#endif

// 256 pairs of rows of a strip of AVX2 are 16 KiB, half of L1.
constexpr size_t kDepth = 256;

// Lanes ahead of the ones in work that are fetched: 2 KiB.
constexpr size_t kAhead = 512;

// What a block of rows is multiplied with: kStrips strips, `depth` pairs of their K rows.
struct Block {
  const float* a;      // [rows, 2 depth; lda]
  const uint32_t* w;   // the first strip
  const float* start;  // what the sums begin with: the bias [columns; ld 0], or C [rows; ldc]
  float* c;            // [rows, columns; ldc]
  size_t lda, ldc, ld_start;
  size_t strip_stride;  // lanes from one strip to the next
  size_t depth;
};

HWY_INLINE VF FirstOfPair(const uint32_t* w) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::Load(U32(), w)));
}
// By two shifts: a mask would take a register that there is not.
HWY_INLINE VF SecondOfPair(const uint32_t* w) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::ShiftRight<16>(hn::Load(U32(), w))));
}

// The compiler finishes `v` before whatever stands behind.
HWY_INLINE void KeepInRegister(VF& v) { asm volatile("" : "+v"(v.raw)); }

template <size_t kR, size_t kStrips>
HWY_NOINLINE void MultiplyBlock(const Block& block) {
  const F32 d;
  constexpr size_t kVectors = 2 * kStrips;
  VF sums[kR * kVectors];
  Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
    sums[i] = hn::LoadU(d, block.start + i / kVectors * block.ld_start + i % kVectors * kLanes);
  });
  const float* a[kR];
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA { a[r] = block.a + r * block.lda; });
  const auto add_products = [&](const VF* columns, size_t at) ATTEND_INLINE_LAMBDA {
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      const VF element = hn::Set(d, a[r][at]);
      Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
        constexpr size_t s = r * kVectors + v;
        sums[s] = hn::MulAdd(columns[v], element, sums[s]);
      });
    });
  };
  for (size_t i = 0; i < block.depth; ++i) {
    const uint32_t* pairs = block.w + i * kStrip;
    const auto lanes_at = [&](auto v) ATTEND_INLINE_LAMBDA {
      return pairs + v / 2 * block.strip_stride + v % 2 * kLanes;
    };
    VF columns[kVectors];
    Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA { columns[v] = FirstOfPair(lanes_at(v)); });
    Unroll<kStrips>([&](auto s) ATTEND_INLINE_LAMBDA {
      hwy::Prefetch(pairs + s * block.strip_stride + kAhead);
    });
    add_products(columns, 2 * i);
    // The pairs are loaded again from L1, and nothing of the second half is begun early: either
    // would take more registers than there are, and sums would go to memory.
    Unroll<kR * kVectors>([&](auto s) ATTEND_INLINE_LAMBDA { KeepInRegister(sums[s]); });
    asm volatile("" : "+r"(pairs), "+r"(i));
    Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA { columns[v] = SecondOfPair(lanes_at(v)); });
    add_products(columns, 2 * i + 1);
  }
  Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
    hn::StoreU(sums[i], d, block.c + i / kVectors * block.ldc + i % kVectors * kLanes);
  });
}

using MultiplyFn = void (*)(const Block&);
template <size_t... kI>
constexpr std::array<MultiplyFn, sizeof...(kI)> MakeMultiplies(std::index_sequence<kI...> /*i*/) {
  return {&MultiplyBlock<kI + 1, 1>...};
}
constexpr auto kMultiplies = MakeMultiplies(std::make_index_sequence<kMostRows>());

// All rows times `block`'s one strip.
void MultiplyRows(Block block, size_t rows) {
  size_t blocks = (rows + kMostRows - 1) / kMostRows;
  for (; blocks > 0; --blocks) {
    const size_t count = (rows + blocks - 1) / blocks;
    kMultiplies[count - 1](block);
    block.a += count * block.lda;
    block.c += count * block.ldc;
    block.start += count * block.ld_start;
    rows -= count;
  }
}

// The columns behind the last whole strip, by way of a strip of our own.
void MultiplyTail(const GemmPanelArgs& args, const uint32_t* w, size_t column, size_t count) {
  const size_t lda = static_cast<size_t>(RoundedRowFloats(args.k));
  const size_t columns = static_cast<size_t>(args.columns);
  alignas(64) float bias[kStrip] = {};
  alignas(64) float c[kMostRows * kStrip];
  std::memcpy(bias, args.bias + column, count * sizeof(float));
  const size_t rows = static_cast<size_t>(args.rows);
  for (size_t row = 0; row < rows; row += kMostRows) {
    const size_t some = std::min(kMostRows, rows - row);
    kMultiplies[some - 1]({.a = args.a + row * lda,
                           .w = w,
                           .start = bias,
                           .c = c,
                           .lda = lda,
                           .ldc = kStrip,
                           .ld_start = 0,
                           .strip_stride = 0,
                           .depth = lda / 2});
    for (size_t r = 0; r < some; ++r) {
      std::memcpy(args.c + (row + r) * columns + column, c + r * kStrip, count * sizeof(float));
    }
  }
}

void GemmPanel(const GemmPanelArgs& args) {
  const size_t rows = static_cast<size_t>(args.rows), columns = static_cast<size_t>(args.columns);
  const size_t lda = static_cast<size_t>(RoundedRowFloats(args.k)), pairs = lda / 2;
  const size_t strips = columns / kStrip, strip_stride = kStrip * pairs;
  const auto* const packed = static_cast<const uint32_t*>(args.packed);
  // One or two rows: several strips at a time, so that enough sums are under way.
  const size_t together = rows == 1 ? 4 : rows == 2 ? 2 : 1;
  size_t strip = 0;
  while (strip < strips) {
    const bool wide = together > 1 && strips - strip >= together;
    const size_t depth = rows <= kMostRows ? pairs : kDepth;
    for (size_t i = 0; i < pairs; i += depth) {
      float* const c = args.c + strip * kStrip;
      const Block block{.a = args.a + 2 * i,
                        .w = packed + strip * strip_stride + i * kStrip,
                        .start = i == 0 ? args.bias + strip * kStrip : c,
                        .c = c,
                        .lda = lda,
                        .ldc = columns,
                        .ld_start = i == 0 ? 0 : columns,
                        .strip_stride = strip_stride,
                        .depth = std::min(depth, pairs - i)};
      if (!wide) {
        MultiplyRows(block, rows);
      } else if (rows == 1) {
        MultiplyBlock<1, 4>(block);
      } else {
        MultiplyBlock<2, 2>(block);
      }
    }
    strip += wide ? together : 1;
  }
  if (strips * kStrip < columns) {
    MultiplyTail(args, packed + strips * strip_stride, strips * kStrip, columns - strips * kStrip);
  }
}

// To the nearest, ties to even, and never to infinity.
inline uint32_t NarrowBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t narrow = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return (narrow & 0x7F80u) == 0x7F80u ? narrow - 1 : narrow;
}

void PackPanel(const PackPanelArgs& args) {
  const size_t k = static_cast<size_t>(args.k), columns = static_cast<size_t>(args.columns);
  const size_t pairs = (k + 1) / 2;
  for (size_t column = 0; column < columns; column += kStrip) {
    const size_t count = std::min(kStrip, columns - column);
    uint32_t* const strip = static_cast<uint32_t*>(args.packed) + column * pairs;
    for (size_t i = 0; i < pairs; ++i) {
      for (size_t j = 0; j < kStrip; ++j) {
        uint32_t pair = 0;
        if (j < count) {
          const float* const w = args.w + (column + j) * k + 2 * i;
          pair = NarrowBf16(w[0]) | (2 * i + 1 < k ? NarrowBf16(w[1]) << 16 : 0);
        }
        strip[i * kStrip + j] = pair;
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
  return {
      .pack = ATTEND_BIND(PackPanel), .run = ATTEND_BIND(GemmPanel), .prepare = BindRoundBf16()};
}

}  // namespace attend
#endif  // HWY_ONCE
