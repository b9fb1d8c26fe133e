// As gemm_highway.cc, in integers: two of K side by side, rows as int16, weights as int8 that are
// widened when they are loaded. A multiply-add of pairs (pmaddwd) is exact for any numbers of int8;
// the one that takes bytes (pmaddubsw) saturates on some, and counted in instructions is not faster
// here, since what it gives has to be widened too.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/gemm_highway.h"
#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_int8.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
// math-inl.h comes first.
#include "kernels/gemm_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {  // the names are those of the other GEMMs

using I32 = hn::RebindToSigned<F32>;
using I16 = hn::Repartition<int16_t, I32>;
using I8 = hn::Rebind<int8_t, I16>;  // half a vector

// Pairs of a group of K, which have a scale.
constexpr size_t kGroupPairs = static_cast<size_t>(kQuantizeGroup) / 2;

// 512 pairs of rows of a strip of AVX2 are 16 KiB, half of L1.
constexpr size_t kDepth = 512;
static_assert(kDepth % kGroupPairs == 0);

// What a block of rows is multiplied with: kStrips strips, pairs [begin, end) of their K rows.
struct Block {
  const float* a;             // [rows; lda]: the scales of the groups, then pairs
  const int8_t* w;            // the first strip's first pair of all
  const float* column_scale;  // [columns]
  const float* bias;          // [columns]
  float* c;                   // [rows, columns; ldc]; holds the totals between groups
  size_t lda, ldc;
  size_t strip_stride;  // bytes from one strip to the next
  size_t begin, end, pairs;
  Ahead ahead = {};

  static constexpr size_t kBytes = 2 * kStrip;  // of a pair of K in a strip
  size_t Depth() const { return end - begin; }
  const char* Part() const { return reinterpret_cast<const char*>(w) + begin * kBytes; }
  size_t PartBytes() const { return Depth() * kBytes; }
  void Skip(size_t rows) {
    a += rows * lda;
    c += rows * ldc;
  }
};

// Two int16 of a row in every lane.
HWY_INLINE hn::Vec<I16> BroadcastPair(const float* pair) {
  int32_t bits;
  std::memcpy(&bits, pair, sizeof(bits));
  return hn::BitCast(I16(), hn::Set(I32(), bits));
}

// Sums up one group of at most kGroupPairs pairs and adds it to the totals. There are not enough
// registers for both, so the totals stay in C.
template <size_t kR, size_t kStrips>
HWY_INLINE void MultiplyGroup(const Block& block, size_t begin) {
  const F32 d;
  const I32 di;
  constexpr size_t kVectors = 2 * kStrips;
  const size_t group = begin / kGroupPairs, end = std::min(begin + kGroupPairs, block.end);
  const size_t groups = (block.pairs + kGroupPairs - 1) / kGroupPairs;
  VI sums[kR * kVectors];
  Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA { sums[i] = hn::Zero(di); });
  const float* a[kR];
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA { a[r] = block.a + r * block.lda + groups; });
  VI unused = hn::Zero(di);
  if constexpr (kStrips == 1) block.ahead.FetchAll(begin - block.begin, end - begin);
  for (size_t i = begin; i < end; ++i) {
    hn::Vec<I16> columns[kVectors];
    Unroll<kStrips>([&](auto s) ATTEND_INLINE_LAMBDA {
      const int8_t* strip = block.w + s * block.strip_stride + i * Block::kBytes;
      columns[2 * s] = hn::PromoteTo(I16(), hn::Load(I8(), strip));
      columns[2 * s + 1] = hn::PromoteTo(I16(), hn::Load(I8(), strip + kStrip));
      if constexpr (kStrips > 1) FetchNear(strip);
    });
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      const hn::Vec<I16> pair = BroadcastPair(a[r] + i);
      Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
        constexpr size_t s = r * kVectors + v;
        sums[s] = hn::ReorderWidenMulAccumulate(di, columns[v], pair, sums[s], unused);
        KeepInRegister(sums[s]);
      });
    });
  }
  VF totals[kR * kVectors];
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
    const VF row_scale = hn::Set(d, block.a[r * block.lda + group]);
    Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
      constexpr size_t s = r * kVectors + v;
      totals[s] = hn::Mul(hn::ConvertTo(d, sums[s]), row_scale);
    });
  });
  const auto c_at = [&](auto s) ATTEND_INLINE_LAMBDA {
    return block.c + s / kVectors * block.ldc + s % kVectors * kLanes;
  };
  if (begin > 0) {
    Unroll<kR * kVectors>([&](auto s) ATTEND_INLINE_LAMBDA {
      totals[s] = hn::Add(hn::LoadU(d, c_at(s)), totals[s]);
    });
  }
  if (end == block.pairs) {
    Unroll<kR * kVectors>([&](auto s) ATTEND_INLINE_LAMBDA {
      const VF scale = hn::LoadU(d, block.column_scale + s % kVectors * kLanes);
      const VF bias = hn::LoadU(d, block.bias + s % kVectors * kLanes);
      totals[s] = hn::Add(hn::Mul(totals[s], scale), bias);
    });
  }
  Unroll<kR * kVectors>([&](auto s) ATTEND_INLINE_LAMBDA { hn::StoreU(totals[s], d, c_at(s)); });
}

struct Multiply {
  template <size_t kR, size_t kStrips>
  static HWY_NOINLINE void Run(const Block& block) {
    for (size_t i = block.begin; i < block.end; i += kGroupPairs) {
      MultiplyGroup<kR, kStrips>(block, i);
    }
  }
};

size_t RoundToStrip(size_t columns) { return (columns + kStrip - 1) / kStrip * kStrip; }

void GemmPanel(const GemmPanelArgs& args) {
  const size_t rows = static_cast<size_t>(args.rows), columns = static_cast<size_t>(args.columns);
  const size_t pairs = (static_cast<size_t>(args.k) + 1) / 2;
  const size_t strips = columns / kStrip, strip_stride = 2 * kStrip * pairs;
  const auto* const packed = static_cast<const int8_t*>(args.packed);
  const float* const scales =
      reinterpret_cast<const float*>(packed + 2 * pairs * RoundToStrip(columns));
  const size_t together = StripsTogether(rows), depth = rows <= kMostRows ? pairs : kDepth;
  const auto block_at = [&](size_t strip) {
    return Block{.a = args.a,
                 .w = packed + strip * strip_stride,
                 .column_scale = scales + strip * kStrip,
                 .bias = args.bias + strip * kStrip,
                 .c = args.c + strip * kStrip,
                 .lda = static_cast<size_t>(QuantizedRowFloats(args.k)),
                 .ldc = columns,
                 .strip_stride = strip_stride,
                 .begin = 0,
                 .end = pairs,
                 .pairs = pairs};
  };
  size_t strip = 0;
  while (strip < strips) {
    const size_t some = strips - strip >= together ? together : 1;
    Block block = block_at(strip);
    for (size_t i = 0; i < pairs; i += depth) {
      block.begin = i;
      block.end = std::min(i + depth, pairs);
      MultiplyStrips<Multiply>(block, rows, some);
    }
    strip += some;
  }
  if (strips * kStrip < columns) {
    // The scales go on to the strip's end.
    MultiplyTail<Multiply>(block_at(strips), &Block::bias, args, strips * kStrip,
                           columns - strips * kStrip);
  }
}

// Of one column: max|w| / 127, so that 127 times it is finite.
float ColumnScale(const float* w, size_t k) {
  float largest = 0;
  for (size_t i = 0; i < k; ++i) largest = std::max(largest, std::fabs(w[i]));
  const float scale = largest / 127.0f;
  return std::isfinite(scale * 127.0f) ? scale : std::nextafter(scale, 0.0f);
}

// A column so small that its scale is 0 is one of zeros.
int8_t QuantizeWeight(float w, float scale) {
  if (scale == 0) return 0;
  const hn::CappedTag<float, 1> d;
  const int32_t q = hn::GetLane(hn::NearestInt(hn::Set(d, w / scale)));
  return static_cast<int8_t>(std::clamp(q, -127, 127));
}

void PackPanel(const PackPanelArgs& args) {
  const size_t k = static_cast<size_t>(args.k), columns = static_cast<size_t>(args.columns);
  const size_t pairs = (k + 1) / 2;
  auto* const packed = static_cast<int8_t*>(args.packed);
  float* const scales = reinterpret_cast<float*>(packed + 2 * pairs * RoundToStrip(columns));
  for (size_t column = 0; column < RoundToStrip(columns); ++column) {
    const float* const w = args.w + column * k;
    const float scale = column < columns ? ColumnScale(w, k) : 0.0f;
    scales[column] = scale;
    int8_t* const to =
        packed + column / kStrip * kStrip * 2 * pairs + column % kStrip * 2;  // then every strip
    for (size_t i = 0; i < 2 * pairs; ++i) {
      const bool there = column < columns && i < k;
      to[i / 2 * (2 * kStrip) + i % 2] = there ? QuantizeWeight(w[i], scale) : int8_t{0};
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
GemmKernels BindGemmInt8() {
  return {.pack = ATTEND_BIND(PackPanel), .run = ATTEND_BIND(GemmPanel), .prepare = BindQuantize()};
}

}  // namespace attend
#endif  // HWY_ONCE
