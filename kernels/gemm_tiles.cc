// As gemm_bf16.cc and gemm_int8.cc, by the tiles of AMX. A tile of rows holds 16 rows and 64 bytes
// of their K: a step, of 32 bf16 or of 64 int8, which are one group. W is packed as
// [16 columns][step], each a tile as it is loaded, with zeros where K or the columns end.
//
// - bf16: the sums of two by two tiles stay in tiles over a part of K, and wait in C between parts.
// - int8: each group's sums go by way of L1 into totals in registers, for 16 rows and 16 columns.
//
// Whole tiles of rows come first, those that are left are tiles of fewer rows: a row's sums are the
// same in either.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/gemm_highway.h"
#include "kernels/simd.h"
#include "kernels/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_tiles.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
// math-inl.h comes first.
#include "kernels/gemm_weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {  // the names are those of the other GEMMs

#if HWY_TARGET == HWY_AVX3

using I32 = hn::RebindToSigned<F32>;

constexpr size_t kColumns = kTileFloats;  // of a tile of W, and of sums
constexpr size_t kGroup = static_cast<size_t>(kQuantizeGroup);
static_assert(kGroup == kTileRowBytes, "a tile of int8 is one group");
static_assert(kLanes == kTileFloats);

size_t Bf16Steps(int64_t k) { return static_cast<size_t>(k + 31) / 32; }
size_t Int8Steps(int64_t k) { return static_cast<size_t>(QuantizeGroups(k)); }

// The tile of W behind the one at `w` by `bytes`, on its way from memory or L3 to L2.
HWY_INLINE void FetchTile(const uint8_t* w, size_t bytes) {
  for (size_t i = 0; i < kTileBytes; i += 64) __builtin_prefetch(w + bytes + i, 0, 2);
}

// ---- bf16 ----

// Of W for one pass over all rows: two tiles of columns of that are 32 KiB.
constexpr size_t kPartSteps = 16;

// What kA tiles of rows and kB tiles of columns are multiplied from.
struct Block {
  const float* a;  // [16 kA, 16 steps; lda]
  const uint8_t* w;
  const float* start;  // what sums begin with: the bias [16 kB; ld 0], or C
  float* c;            // [16 kA, 16 kB; ldc]
  size_t lda, ldc, ld_start;
  size_t w_stride;  // bytes from one tile of columns to the next
  size_t steps;
  size_t ahead;  // bytes from what is read of W to what is fetched, or 0
};

// Tiles: sums are 0 to 3, those of the second tile of rows from 2 on; 4 and 5 rows; 6 and 7
// columns.
template <size_t kA, size_t kB>
void MultiplyBlock(const Block& block) {
  static_assert(kA * kB <= 4);
  const auto each_sum = [](const auto& f) ATTEND_INLINE_LAMBDA {
    Unroll<kA>([&](auto i) ATTEND_INLINE_LAMBDA {
      Unroll<kB>([&](auto j)
                     ATTEND_INLINE_LAMBDA { f(i, j, std::integral_constant<int, 2 * i + j>()); });
    });
  };
  each_sum([&](auto i, auto j, auto tile) ATTEND_INLINE_LAMBDA {
    LoadTile<tile>(block.start + i * kTileRows * block.ld_start + j * kColumns,
                   block.ld_start * sizeof(float));
  });
  for (size_t step = 0; step < block.steps; ++step) {
    Unroll<kA>([&](auto i) ATTEND_INLINE_LAMBDA {
      LoadTile<4 + i>(block.a + i * kTileRows * block.lda + step * kTileFloats,
                      block.lda * sizeof(float));
    });
    Unroll<kB>([&](auto j) ATTEND_INLINE_LAMBDA {
      const uint8_t* const w = block.w + j * block.w_stride + step * kTileBytes;
      LoadTile<6 + j % 2>(w, kTileRowBytes);
      if (block.ahead != 0) FetchTile(w, block.ahead);
      Unroll<kA>([&](auto i) ATTEND_INLINE_LAMBDA { AddTileBf16<2 * i + j, 4 + i, 6 + j % 2>(); });
    });
  }
  each_sum([&](auto i, auto j, auto tile) ATTEND_INLINE_LAMBDA {
    StoreTile<tile>(block.c + i * kTileRows * block.ldc + j * kColumns, block.ldc * sizeof(float));
  });
}

// `blocks` blocks of kA tiles of rows, from row `first` on, times all columns. `last` is how many
// rows the last tile of each block has.
template <size_t kA>
void MultiplyRows(const GemmPanelArgs& args, size_t first, size_t blocks, size_t last) {
  TileShapes shapes;
  const size_t of_first = kA == 1 ? last : kTileRows;
  shapes.Set(0, 4, of_first);
  shapes.Set(4, 6, of_first);
  if constexpr (kA == 2) {
    shapes.Set(2, 4, last);
    shapes.Set(5, 6, last);
  }
  shapes.Set(6, 8, kTileRows);
  TileUse::Shape(shapes);
  constexpr size_t kTogether = 4 / kA, kRows = kA * kTileRows;
  const size_t columns = static_cast<size_t>(args.columns), steps = Bf16Steps(args.k);
  const size_t lda = static_cast<size_t>(TiledBf16RowFloats(args.k));
  const size_t whole = columns / kColumns, w_stride = steps * kTileBytes;
  const auto* const w = static_cast<const uint8_t*>(args.packed);
  const float* const a = args.a + first * lda;
  for (size_t tile = 0; tile < whole;) {
    const size_t together = whole - tile >= kTogether ? kTogether : 1;
    float* const c = args.c + first * columns + tile * kColumns;
    const size_t depth = blocks == 1 ? steps : kPartSteps;
    for (size_t step = 0; step < steps; step += depth) {
      Block block{.a = a + step * kTileFloats,
                  .w = w + tile * w_stride + step * kTileBytes,
                  .start = step == 0 ? args.bias + tile * kColumns : c,
                  .c = c,
                  .lda = lda,
                  .ldc = columns,
                  .ld_start = step == 0 ? 0 : columns,
                  .w_stride = w_stride,
                  .steps = std::min(depth, steps - step),
                  .ahead = step + depth < steps ? depth * kTileBytes
                                                : together * w_stride - step * kTileBytes};
      for (size_t i = 0; i < blocks; ++i) {
        if (together == 1) {
          MultiplyBlock<kA, 1>(block);
        } else {
          MultiplyBlock<kA, kTogether>(block);
        }
        block.ahead = 0;
        block.a += kRows * lda;
        block.c += kRows * columns;
        block.start += kRows * block.ld_start;
      }
    }
    tile += together;
  }
  // The columns behind the last whole tile, by way of one of our own.
  const size_t count = columns - whole * kColumns;
  if (count == 0) return;
  alignas(64) float bias[kColumns] = {}, sums[kRows * kColumns];
  std::memcpy(bias, args.bias + whole * kColumns, count * sizeof(float));
  for (size_t i = 0; i < blocks; ++i) {
    MultiplyBlock<kA, 1>({.a = a + i * kRows * lda,
                          .w = w + whole * w_stride,
                          .start = bias,
                          .c = sums,
                          .lda = lda,
                          .ldc = kColumns,
                          .ld_start = 0,
                          .w_stride = 0,
                          .steps = steps,
                          .ahead = 0});
    for (size_t row = 0; row < (kA - 1) * kTileRows + last; ++row) {
      std::memcpy(args.c + (first + i * kRows + row) * columns + whole * kColumns,
                  sums + row * kColumns, count * sizeof(float));
    }
  }
}

void GemmBf16(const GemmPanelArgs& args) {
  const TileUse use;
  const size_t rows = static_cast<size_t>(args.rows), left = rows % (2 * kTileRows);
  if (rows > left) MultiplyRows<2>(args, 0, rows / (2 * kTileRows), kTileRows);
  if (left > kTileRows) {
    MultiplyRows<2>(args, rows - left, 1, left - kTileRows);
  } else if (left > 0) {
    MultiplyRows<1>(args, rows - left, 1, left);
  }
}

void PackBf16(const PackPanelArgs& args) {
  const size_t k = static_cast<size_t>(args.k), columns = static_cast<size_t>(args.columns);
  const size_t steps = Bf16Steps(args.k);
  auto* to = static_cast<uint32_t*>(args.packed);
  for (size_t tile = 0; tile < columns; tile += kColumns) {
    for (size_t pair = 0; pair < steps * kTileRows; ++pair, to += kColumns) {
      for (size_t j = 0; j < kColumns; ++j) {
        to[j] = tile + j < columns ? NarrowPair(args.w + (tile + j) * k, 2 * pair, k) : 0;
      }
    }
  }
}

// ---- int8 ----

// Groups whose scales are at hand at a time.
constexpr size_t kPartGroups = 32;

// What a tile of rows and a tile of columns are multiplied from, groups [0, groups) of them.
struct IntegerBlock {
  const float* q;       // [rows, 16 groups; lda]: four integers each
  const float* scales;  // [groups][16]: of the rows
  const uint8_t* w;
  const float* column_scale;  // [16]
  const float* bias;          // [16]
  float* c;                   // [rows, 16; ldc]: totals between parts
  size_t lda, ldc;
  size_t groups;
  bool first, last;  // part of K
  bool fetch;        // W from memory
};

// Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 columns.
template <size_t kTile>
HWY_INLINE void SumGroup(const IntegerBlock& block, size_t group, int32_t* sums) {
  if (group >= block.groups) return;
  constexpr size_t kAhead = 8192, kRows = 4 + kTile % 2, kW = 6 + kTile % 2;
  const uint8_t* const w = block.w + group * kTileBytes;
  ZeroTile<kTile>();
  LoadTile<kRows>(block.q + group * kTileFloats, block.lda * sizeof(float));
  LoadTile<kW>(w, kTileRowBytes);
  if (block.fetch) FetchTile(w, kAhead);
  AddTileInt8<kTile, kRows, kW>();
  StoreTile<kTile>(sums + kTile * kTileRows * kColumns, kTileRowBytes);
}

// The totals of kR rows += their sums times the group's scales.
template <size_t kR>
HWY_INLINE void AddGroup(const int32_t* sums, const float* scales, VF* totals) {
  const F32 d;
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
    const VF sum = hn::ConvertTo(d, hn::Load(I32(), sums + r * kColumns));
    totals[r] = hn::Add(totals[r], hn::Mul(sum, hn::Set(d, scales[r])));
  });
}

template <size_t kR>
void MultiplyIntegers(const IntegerBlock& block) {
  const F32 d;
  alignas(64) int32_t sums[4 * kTileRows * kColumns];
  VF totals[kR];
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
    totals[r] = block.first ? hn::Zero(d) : hn::LoadU(d, block.c + r * block.ldc);
  });
  const auto add = [&](size_t group) ATTEND_INLINE_LAMBDA {
    if (group >= block.groups) return;
    AddGroup<kR>(sums + group % 4 * kTileRows * kColumns, block.scales + group * kTileRows, totals);
  };
  // Two groups are summed up while the two before them are added to the totals.
  SumGroup<0>(block, 0, sums);
  SumGroup<1>(block, 1, sums);
  for (size_t group = 0; group < block.groups; group += 4) {
    SumGroup<2>(block, group + 2, sums);
    SumGroup<3>(block, group + 3, sums);
    add(group);
    add(group + 1);
    SumGroup<0>(block, group + 4, sums);
    SumGroup<1>(block, group + 5, sums);
    add(group + 2);
    add(group + 3);
  }
  if (block.last) {
    const VF scale = hn::LoadU(d, block.column_scale), bias = hn::LoadU(d, block.bias);
    Unroll<kR>([&](auto r)
                   ATTEND_INLINE_LAMBDA { totals[r] = hn::Add(hn::Mul(totals[r], scale), bias); });
  }
  Unroll<kR>([&](auto r)
                 ATTEND_INLINE_LAMBDA { hn::StoreU(totals[r], d, block.c + r * block.ldc); });
}

// By the number of rows less one.
template <size_t... kI>
constexpr std::array<void (*)(const IntegerBlock&), sizeof...(kI)> MakeMultiplies(
    std::index_sequence<kI...> /*rows*/) {
  return {&MultiplyIntegers<kI + 1>...};
}
constexpr auto kMultiplies = MakeMultiplies(std::make_index_sequence<kTileRows>());

// `rows` rows, a tile at most, from row `first` on, times all columns.
void MultiplyIntegerRows(const GemmPanelArgs& args, size_t first, size_t rows) {
  const size_t columns = static_cast<size_t>(args.columns), groups = Int8Steps(args.k);
  const size_t lda = static_cast<size_t>(TiledInt8RowFloats(args.k));
  const size_t whole = columns / kColumns, w_stride = groups * kTileBytes;
  const auto* const w = static_cast<const uint8_t*>(args.packed);
  const float* const column_scales =
      reinterpret_cast<const float*>(w + (columns + kColumns - 1) / kColumns * w_stride);
  const float* const a = args.a + first * lda;
  const auto multiply = kMultiplies[rows - 1];
  alignas(64) float scales[kPartGroups * kTileRows];
  alignas(64) float bias[kColumns] = {}, tail[kTileRows * kColumns];
  const size_t count = columns - whole * kColumns;
  std::memcpy(bias, args.bias + whole * kColumns, count * sizeof(float));
  for (size_t begin = 0; begin < groups; begin += kPartGroups) {
    const size_t some = std::min(kPartGroups, groups - begin);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t g = 0; g < some; ++g) scales[g * kTileRows + r] = a[r * lda + begin + g];
    }
    IntegerBlock block{.q = a + TiledScaleFloats(args.k) + begin * kTileFloats,
                       .scales = scales,
                       .w = w + begin * kTileBytes,
                       .column_scale = column_scales,
                       .bias = args.bias,
                       .c = args.c + first * columns,
                       .lda = lda,
                       .ldc = columns,
                       .groups = some,
                       .first = begin == 0,
                       .last = begin + some == groups,
                       .fetch = first == 0};
    for (size_t tile = 0; tile < whole; ++tile) {
      multiply(block);
      block.w += w_stride;
      block.column_scale += kColumns;
      block.bias += kColumns;
      block.c += kColumns;
    }
    if (count == 0) continue;
    // The columns behind the last whole tile, by way of one of our own.
    block.bias = bias;
    block.c = tail;
    block.ldc = kColumns;
    multiply(block);
  }
  for (size_t r = 0; r < rows && count > 0; ++r) {
    std::memcpy(args.c + (first + r) * columns + whole * kColumns, tail + r * kColumns,
                count * sizeof(float));
  }
}

void GemmInt8(const GemmPanelArgs& args) {
  const TileUse use;
  const size_t rows = static_cast<size_t>(args.rows);
  size_t shaped = 0;
  for (size_t row = 0; row < rows; row += kTileRows) {
    const size_t count = std::min(kTileRows, rows - row);
    if (count != shaped) {
      TileShapes shapes;
      shapes.Set(0, 6, count);
      shapes.Set(6, 8, kTileRows);
      TileUse::Shape(shapes);
      shaped = count;
    }
    MultiplyIntegerRows(args, row, count);
  }
}

void PackInt8(const PackPanelArgs& args) {
  const size_t k = static_cast<size_t>(args.k), columns = static_cast<size_t>(args.columns);
  const size_t w_stride = Int8Steps(args.k) * kTileBytes, each = 4;
  const size_t wide = (columns + kColumns - 1) / kColumns * kColumns;
  auto* const packed = static_cast<int8_t*>(args.packed);
  auto* const scales = reinterpret_cast<float*>(packed + wide / kColumns * w_stride);
  std::memset(packed, 0, wide / kColumns * w_stride);
  for (size_t column = 0; column < wide; ++column) {
    const float* const w = args.w + column * k;
    scales[column] = column < columns ? ColumnScale(w, k) : 0.0f;
    if (column >= columns) continue;
    int8_t* const to = packed + column / kColumns * w_stride + column % kColumns * each;
    for (size_t i = 0; i < k; ++i) {
      to[i / each * kTileRowBytes + i % each] = QuantizeWeight(w[i], scales[column]);
    }
  }
}

#endif

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

GemmKernels BindTilesBf16() {
  return {.pack = N_AVX3::PackBf16,
          .run = N_AVX3::GemmBf16,
          .prepare = BindTiledBf16(),
          .row_floats = TiledBf16RowFloats};
}

GemmKernels BindTilesInt8() {
  return {.pack = N_AVX3::PackInt8,
          .run = N_AVX3::GemmInt8,
          .prepare = BindTiledInt8(),
          .row_floats = TiledInt8RowFloats};
}

}  // namespace attend
#endif  // HWY_ONCE
