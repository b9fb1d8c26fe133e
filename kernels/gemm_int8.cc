// As gemm_highway.cc, in integers, by one of two instructions, both exact for any numbers of int8:
//
// - Pairs: two of K side by side, rows as int16, weights as int8 that are widened when they are
//   loaded; a multiply-add of pairs (pmaddwd). The one that takes bytes (pmaddubsw) saturates on
//   some, and counted in instructions is not faster here, since what it gives has to be widened
//   too.
// - Quads, where the CPU has VNNI: four of K side by side; vpdpbusd adds the four products of
//   unsigned and signed bytes to a sum of int32. Weights are the unsigned ones, w + 128, and a sum
//   begins with -128 times the sum of the row's group, which makes up for it.
#include <algorithm>
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
#include "kernels/gemm_weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {  // the names are those of the other GEMMs

using I32 = hn::RebindToSigned<F32>;
using I16 = hn::Repartition<int16_t, I32>;
using I8 = hn::Rebind<int8_t, I16>;  // half a vector

// What both share of a group of K, which has a scale, and of a strip's part, one byte each.
constexpr size_t kGroup = static_cast<size_t>(kQuantizeGroup);
constexpr size_t kPartDepth = kPartBytes / kStrip;
static_assert(kPartDepth % kGroup == 0);

struct Pairs {
  static constexpr size_t kRows = kMostRows;
  static constexpr bool kFetchesEvenly = false;  // the loop has no room for more instructions
  static constexpr size_t kEach = 2;             // of K side by side: an element
  static constexpr int kWeightOffset = 0;        // what is added to a packed weight
  using Columns = hn::Vec<I16>;
  static size_t RowFloats(int64_t k) { return static_cast<size_t>(QuantizedRowFloats(k)); }
  // A group of a prepared row of `groups`: its scale, its elements.
  static HWY_INLINE const float* Scale(const float* row, size_t group) { return row + group; }
  static HWY_INLINE const float* Elements(const float* row, size_t group, size_t groups) {
    return row + groups + group * (kGroup / kEach);
  }
  static HWY_INLINE Columns Load(const void* w) {
    return hn::PromoteTo(I16(), hn::Load(I8(), static_cast<const int8_t*>(w)));
  }
  // What sums begin with.
  static HWY_INLINE VI Start(const float* /*scale*/) { return hn::Zero(I32()); }
  // Two int16 of a row in every lane.
  template <size_t kStrips>
  static HWY_INLINE hn::Vec<I16> Broadcast(const float* pair) {
    int32_t bits;
    std::memcpy(&bits, pair, sizeof(bits));
    return hn::BitCast(I16(), hn::Set(I32(), bits));
  }
  static HWY_INLINE void Add(Columns columns, hn::Vec<I16> pair, VI& sum) {
    VI unused = hn::Zero(I32());
    sum = hn::ReorderWidenMulAccumulate(I32(), columns, pair, sum, unused);
  }
};

#if HWY_TARGET == HWY_AVX3
struct Quads {
  // Few enough that the totals are in registers too.
  static constexpr size_t kRows = 7;
  static constexpr bool kFetchesEvenly = true;
  static constexpr size_t kEach = 4;
  static constexpr int kWeightOffset = 128;
  using Columns = VI;
  static size_t RowFloats(int64_t k) { return static_cast<size_t>(QuantizedQuadsFloats(k)); }
  static HWY_INLINE const float* Scale(const float* row, size_t group) {
    return row + group * (2 + kGroup / kEach);
  }
  static HWY_INLINE const float* Elements(const float* row, size_t group, size_t /*groups*/) {
    return Scale(row, group) + 2;
  }
  static HWY_INLINE Columns Load(const void* w) {
    VI quads = hn::Load(I32(), static_cast<const int32_t*>(w));
    KeepInRegister(quads);  // or it is loaded again for every row
    return quads;
  }
  static HWY_INLINE VI Start(const float* scale) {
    int32_t start;
    std::memcpy(&start, scale + 1, sizeof(start));
    return hn::Set(I32(), start);
  }
  // A quad of a row in every lane. With one strip each instruction reads it, which is the fastest
  // where there are many products for a column that is loaded; with more of them, loads would take
  // longer than the products.
  template <size_t kStrips>
  static HWY_INLINE auto Broadcast(const float* quad) {
    if constexpr (kStrips == 1) {
      return quad;
    } else {
      int32_t bits;
      std::memcpy(&bits, quad, sizeof(bits));
      return hn::Set(I32(), bits);
    }
  }
  template <class Quad>
  static HWY_INLINE void Add(Columns columns, Quad quad, VI& sum) {
    AddQuadProducts(columns, quad, sum);
  }
};
#endif

// What a block of rows is multiplied with: kStrips strips, elements [begin, end) of their K rows.
template <class Unit>
struct Block {
  const float* a;             // [rows; lda]: the scales of the groups, and more, then elements
  const int8_t* w;            // the first strip's first element of all
  const float* column_scale;  // [columns]
  const float* bias;          // [columns]
  float* c;                   // [rows, columns; ldc]; holds the totals between groups
  size_t lda, ldc;
  size_t strip_stride;  // bytes from one strip to the next
  size_t begin, end, elements;
  Ahead ahead = {};

  static constexpr size_t kBytes = Unit::kEach * kStrip;  // of an element of K in a strip
  size_t Depth() const { return end - begin; }
  const char* Part() const { return reinterpret_cast<const char*>(w) + begin * kBytes; }
  size_t PartBytes() const { return Depth() * kBytes; }
  void Skip(size_t rows) {
    a += rows * lda;
    c += rows * ldc;
  }
};

// Sums up one group of K and adds it to the totals.
template <class Unit, size_t kR, size_t kStrips>
HWY_INLINE void AddGroup(const Block<Unit>& block, size_t begin, Ahead& ahead, VF* totals) {
  const F32 d;
  constexpr size_t kVectors = 2 * kStrips, kElements = kGroup / Unit::kEach;
  const size_t group = begin / kElements, count = std::min(kElements, block.end - begin);
  const size_t groups = (block.elements + kElements - 1) / kElements;
  const int8_t* const w = block.w + begin * Block<Unit>::kBytes;
  const float *scale[kR], *a[kR];
  VI sums[kR * kVectors];
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
    scale[r] = Unit::Scale(block.a + r * block.lda, group);
    a[r] = Unit::Elements(block.a + r * block.lda, group, groups);
    const VI start = Unit::Start(scale[r]);
    Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA { sums[r * kVectors + v] = start; });
  });
  if constexpr (kStrips == 1 && !Unit::kFetchesEvenly) ahead.FetchAll(count);
  for (size_t i = 0; i < count; ++i) {
    typename Unit::Columns columns[kVectors];
    Unroll<kStrips>([&](auto s) ATTEND_INLINE_LAMBDA {
      const int8_t* strip = w + s * block.strip_stride + i * Block<Unit>::kBytes;
      columns[2 * s] = Unit::Load(strip);
      columns[2 * s + 1] = Unit::Load(strip + kLanes * Unit::kEach);
      if constexpr (kStrips > 1) FetchNear(strip);
    });
    if constexpr (kStrips == 1 && Unit::kFetchesEvenly) ahead.FetchNext();
    Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
      const auto element = Unit::template Broadcast<kStrips>(a[r] + i);
      Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
        constexpr size_t s = r * kVectors + v;
        Unit::Add(columns[v], element, sums[s]);
        KeepInRegister(sums[s]);
      });
    });
  }
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
    const VF row_scale = hn::Set(d, *scale[r]);
    Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
      constexpr size_t s = r * kVectors + v;
      totals[s] = hn::Add(totals[s], hn::Mul(hn::ConvertTo(d, sums[s]), row_scale));
    });
  });
}

template <class Unit>
struct Multiply {
  static constexpr size_t kRows = Unit::kRows;

  template <size_t kR, size_t kStrips>
  static HWY_NOINLINE void Run(const Block<Unit>& block) {
    const F32 d;
    constexpr size_t kVectors = 2 * kStrips, kSums = kR * kVectors;
    const auto c_at = [&](auto s) ATTEND_INLINE_LAMBDA {
      return block.c + s / kVectors * block.ldc + s % kVectors * kLanes;
    };
    Ahead ahead = block.ahead;
    VF totals[kSums];
    Unroll<kSums>([&](auto s) ATTEND_INLINE_LAMBDA {
      totals[s] = block.begin > 0 ? hn::LoadU(d, c_at(s)) : hn::Zero(d);
    });
    for (size_t i = block.begin; i < block.end; i += kGroup / Unit::kEach) {
      // Sums take all registers here: totals are kept out of them, or some of each are moved about.
      if constexpr (Unit::kRows == kMostRows) asm volatile("" : : "r"(totals) : "memory");
      AddGroup<Unit, kR, kStrips>(block, i, ahead, totals);
    }
    if (block.end == block.elements) {
      Unroll<kSums>([&](auto s) ATTEND_INLINE_LAMBDA {
        const VF scale = hn::LoadU(d, block.column_scale + s % kVectors * kLanes);
        const VF bias = hn::LoadU(d, block.bias + s % kVectors * kLanes);
        totals[s] = hn::Add(hn::Mul(totals[s], scale), bias);
      });
    }
    Unroll<kSums>([&](auto s) ATTEND_INLINE_LAMBDA { hn::StoreU(totals[s], d, c_at(s)); });
  }
};

size_t RoundToStrip(size_t columns) { return (columns + kStrip - 1) / kStrip * kStrip; }

template <class Unit>
size_t Elements(int64_t k) {
  return (static_cast<size_t>(k) + Unit::kEach - 1) / Unit::kEach;
}

// Of a part, in elements: of whole groups, and parts alike, or what is fetched ahead of a short
// part is too little of the next one.
template <class Unit>
size_t PartElements(size_t rows, size_t elements) {
  constexpr size_t kElements = kGroup / Unit::kEach, kMost = kPartDepth / Unit::kEach;
  if (rows <= Unit::kRows || elements <= kMost) return elements;
  const size_t parts = (elements + kMost - 1) / kMost;
  return (elements + parts * kElements - 1) / (parts * kElements) * kElements;
}

template <class Unit>
void RunIntegerPanel(const GemmPanelArgs& args) {
  const size_t rows = static_cast<size_t>(args.rows), columns = static_cast<size_t>(args.columns);
  const size_t elements = Elements<Unit>(args.k);
  const size_t strips = columns / kStrip, strip_stride = Block<Unit>::kBytes * elements;
  const auto* const packed = static_cast<const int8_t*>(args.packed);
  const float* const scales =
      reinterpret_cast<const float*>(packed + Unit::kEach * elements * RoundToStrip(columns));
  const size_t together = StripsTogether(rows);
  const size_t depth = PartElements<Unit>(rows, elements);
  const auto block_at = [&](size_t strip) {
    return Block<Unit>{.a = args.a,
                       .w = packed + strip * strip_stride,
                       .column_scale = scales + strip * kStrip,
                       .bias = args.bias + strip * kStrip,
                       .c = args.c + strip * kStrip,
                       .lda = Unit::RowFloats(args.k),
                       .ldc = columns,
                       .strip_stride = strip_stride,
                       .begin = 0,
                       .end = elements,
                       .elements = elements};
  };
  size_t strip = 0;
  while (strip < strips) {
    const size_t some = strips - strip >= together ? together : 1;
    Block<Unit> block = block_at(strip);
    for (size_t i = 0; i < elements; i += depth) {
      block.begin = i;
      block.end = std::min(i + depth, elements);
      MultiplyStrips<Multiply<Unit>>(block, rows, some);
    }
    strip += some;
  }
  if (strips * kStrip < columns) {
    // The scales go on to the strip's end.
    MultiplyTail<Multiply<Unit>>(block_at(strips), &Block<Unit>::bias, args, strips * kStrip,
                                 columns - strips * kStrip);
  }
}

template <class Unit>
void PackIntegerPanel(const PackPanelArgs& args) {
  const size_t k = static_cast<size_t>(args.k), columns = static_cast<size_t>(args.columns);
  constexpr size_t each = Unit::kEach;
  const size_t elements = Elements<Unit>(args.k);
  auto* const packed = static_cast<uint8_t*>(args.packed);
  float* const scales = reinterpret_cast<float*>(packed + each * elements * RoundToStrip(columns));
  for (size_t column = 0; column < RoundToStrip(columns); ++column) {
    const float* const w = args.w + column * k;
    const float scale = column < columns ? ColumnScale(w, k) : 0.0f;
    scales[column] = scale;
    uint8_t* const to = packed + column / kStrip * kStrip * each * elements +
                        column % kStrip * each;  // then every strip
    for (size_t i = 0; i < each * elements; ++i) {
      const bool there = column < columns && i < k;
      const int q = there ? QuantizeWeight(w[i], scale) : 0;
      to[i / each * (each * kStrip) + i % each] = static_cast<uint8_t>(q + Unit::kWeightOffset);
    }
  }
}

void PackPanel(const PackPanelArgs& args) { PackIntegerPanel<Pairs>(args); }
void GemmPanel(const GemmPanelArgs& args) { RunIntegerPanel<Pairs>(args); }

#if HWY_TARGET == HWY_AVX3
void PackQuads(const PackPanelArgs& args) { PackIntegerPanel<Quads>(args); }
void GemmQuads(const GemmPanelArgs& args) { RunIntegerPanel<Quads>(args); }
#endif

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
  if (BoundIsa() >= Isa::kAmx) return BindTilesInt8();
  if (BoundIsa() >= Isa::kAvx512Vnni) {
    return {.pack = N_AVX3::PackQuads,
            .run = N_AVX3::GemmQuads,
            .prepare = BindQuantizeQuads(),
            .row_floats = QuantizedQuadsFloats};
  }
  return {.pack = ATTEND_BIND(PackPanel),
          .run = ATTEND_BIND(GemmPanel),
          .prepare = BindQuantize(),
          .row_floats = QuantizedRowFloats};
}

}  // namespace attend
#endif  // HWY_ONCE
