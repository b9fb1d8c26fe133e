// A block of rows times a strip of columns is summed up in registers. Blocks are as equal as they
// can be (8 rows are 4 + 4, not 6 + 2), since a block of few rows has too few sums under way. K is
// cut so that a strip's part stays in L1 while all blocks of rows pass it; between the parts the
// sums wait in C.
#include "kernels/gemm_highway.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_highway.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// Columns of a strip.
constexpr size_t kStrip = 2 * kLanes;

// Rows at a time: with two vectors of sums each, two of W and a broadcast they fill the registers
// (32 on AVX-512; 16 on AVX2; on SSE4 a product needs one of its own).
#if HWY_TARGET == HWY_AVX3
constexpr size_t kMostRows = 12;
#elif HWY_TARGET == HWY_AVX2
constexpr size_t kMostRows = 6;
#else
constexpr size_t kMostRows = 4;
#endif

// 256 rows of a strip of AVX2 are 16 KiB, half of L1.
constexpr size_t kDepth = 256;

// Floats ahead of the ones in work that are fetched: W comes from L2 or memory, once.
constexpr size_t kAhead = 512;

// What a block of rows is multiplied with: kStrips strips, `depth` of their K rows.
struct Block {
  const float* a;      // [rows, depth; lda]
  const float* w;      // the first strip
  const float* start;  // what the sums begin with: the bias [columns; ld 0], or C [rows; ldc]
  float* c;            // [rows, columns; ldc]
  size_t lda, ldc, ld_start;
  size_t strip_stride;  // floats from one strip to the next
  size_t depth;
};

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
  const float* w[kStrips];
  Unroll<kStrips>([&](auto s) ATTEND_INLINE_LAMBDA { w[s] = block.w + s * block.strip_stride; });
  for (size_t i = 0; i < block.depth; ++i) {
    VF columns[kVectors];
    Unroll<kStrips>([&](auto s) ATTEND_INLINE_LAMBDA {
      const float* strip = w[s] + i * kStrip;
      columns[2 * s] = hn::Load(d, strip);
      columns[2 * s + 1] = hn::Load(d, strip + kLanes);
      hwy::Prefetch(strip + kAhead);
    });
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      const VF element = hn::Set(d, a[r][i]);
      Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
        constexpr size_t s = r * kVectors + v;
        sums[s] = hn::MulAdd(columns[v], element, sums[s]);
      });
    });
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
void MultiplyTail(const GemmPanelArgs& args, const float* w, size_t column, size_t count) {
  const size_t k = static_cast<size_t>(args.k), columns = static_cast<size_t>(args.columns);
  alignas(64) float bias[kStrip] = {};
  alignas(64) float c[kMostRows * kStrip];
  std::memcpy(bias, args.bias + column, count * sizeof(float));
  const size_t rows = static_cast<size_t>(args.rows);
  for (size_t row = 0; row < rows; row += kMostRows) {
    const size_t some = std::min(kMostRows, rows - row);
    kMultiplies[some - 1]({.a = args.a + row * k,
                           .w = w,
                           .start = bias,
                           .c = c,
                           .lda = k,
                           .ldc = kStrip,
                           .ld_start = 0,
                           .strip_stride = 0,
                           .depth = k});
    for (size_t r = 0; r < some; ++r) {
      std::memcpy(args.c + (row + r) * columns + column, c + r * kStrip, count * sizeof(float));
    }
  }
}

void GemmPanel(const GemmPanelArgs& args) {
  const size_t rows = static_cast<size_t>(args.rows), k = static_cast<size_t>(args.k);
  const size_t columns = static_cast<size_t>(args.columns);
  const size_t strips = columns / kStrip, strip_stride = kStrip * k;
  const float* const packed = static_cast<const float*>(args.packed);
  // One or two rows: several strips at a time, so that enough sums are under way.
  const size_t together = rows == 1 ? 4 : rows == 2 ? 2 : 1;
  size_t strip = 0;
  while (strip < strips) {
    const bool wide = together > 1 && strips - strip >= together;
    const size_t depth = rows <= kMostRows ? k : kDepth;
    for (size_t i = 0; i < k; i += depth) {
      float* const c = args.c + strip * kStrip;
      const Block block{.a = args.a + i,
                        .w = packed + strip * strip_stride + i * kStrip,
                        .start = i == 0 ? args.bias + strip * kStrip : c,
                        .c = c,
                        .lda = k,
                        .ldc = columns,
                        .ld_start = i == 0 ? 0 : columns,
                        .strip_stride = strip_stride,
                        .depth = std::min(depth, k - i)};
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
  const int64_t even = (k + 1) / 2 * 2;
  switch (type) {
    case GemmType::kBf16:
      return wide * even * 2;
    case GemmType::kInt8:
      return wide * even + wide * 4;  // and the scales
    default:
      return wide * k * 4;
  }
}

int64_t PreparedRowFloats(GemmType type, int64_t k) {
  switch (type) {
    case GemmType::kBf16:
      return RoundedRowFloats(k);
    case GemmType::kInt8:
      return QuantizedRowFloats(k);
    default:
      return 0;
  }
}

}  // namespace attend
#endif  // HWY_ONCE
