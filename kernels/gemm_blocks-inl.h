// How the GEMMs of our own cut a panel, whatever the type of its numbers; a file of one type adds
// the inner loop and the packing. Included once per target, after kernels/math-inl.h.
//
// A block of rows times a strip of columns is summed up in registers. Blocks are as equal as they
// can be (8 rows are 4 + 4, not 6 + 2), since a block of few rows has too few sums under way. K is
// cut so that a strip's part stays near while all blocks of rows pass it; between the parts the
// sums wait in C.
//
// The inner loop is a struct with the most rows of a block, kRows, and a function of kR rows and
// kStrips strips:
//   template <size_t kR, size_t kStrips> static void Run(const Block& block);
// and a Block has `a` and its `lda`, `c` and its `ldc`, `ahead`, the Part() of a strip that it
// multiplies with its Depth() and PartBytes(), and Skip(rows), which goes on to the next rows.
#if defined(ATTEND_KERNELS_GEMM_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_GEMM_BLOCKS_INL_H_
#undef ATTEND_KERNELS_GEMM_BLOCKS_INL_H_
#else
#define ATTEND_KERNELS_GEMM_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/gemm_highway.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// Columns of a strip.
constexpr size_t kStrip = 2 * kLanes;

// The compiler finishes `v` before whatever stands behind: it likes to begin all products at once,
// and keeps the sums in memory for it.
template <class V>
HWY_INLINE void KeepInRegister(V& v) {
  asm volatile("" : "+v"(v.raw));
}

// Of a part of a strip. Half of an L1 of 32 KiB; with AVX-512 the sums wait in C less often
// instead, and a part comes from L2 in time.
constexpr size_t kPartBytes = HWY_TARGET == HWY_AVX3 ? 65536 : 16384;

// Bytes ahead of the ones in work that are fetched into L1 or L2 where a strip is read once.
constexpr size_t kNearBytes = 8192;

// Of several strips that are read at once.
HWY_INLINE void FetchNear(const void* strip) {
  hwy::Prefetch(static_cast<const char*>(strip) + kNearBytes);
}

// Where W goes on behind the part of a strip that is multiplied. It is read once a tile and comes
// from memory or L3: fetched into L2 evenly over the time that the part takes, a block of rows
// after the other, instead of by the first block of the next part, which would wait for it.
// (Measured, docs/performance.md.)
struct Ahead {
  const char* at = nullptr;
  size_t step = 0;  // bytes with each element of K

  // With each element; its row of a strip has `kBytes`.
  template <size_t kBytes>
  HWY_INLINE void Fetch() {
    __builtin_prefetch(at, 0, 2);
    if constexpr (kBytes > 64) __builtin_prefetch(at + 64, 0, 2);  // of one block: two lines a step
    at += step;
  }

  // The same, where a step is often less than a line.
  HWY_INLINE void FetchNext() {
    __builtin_prefetch(at, 0, 2);
    if (step > 64) __builtin_prefetch(at + 64, 0, 2);
    at += step;
  }

  // With `count` elements at once, where a loop over them has no room for more instructions.
  HWY_INLINE void FetchAll(size_t count) {
    for (size_t i = 0; i < count * step; i += 64) __builtin_prefetch(at + i, 0, 2);
    at += count * step;
  }
};

template <class Multiply, class Block, size_t... kI>
constexpr std::array<void (*)(const Block&), sizeof...(kI)> MakeMultiplies(
    std::index_sequence<kI...> /*rows*/) {
  return {&Multiply::template Run<kI + 1, 1>...};
}
// Of one strip, by the number of rows less one.
template <class Multiply, class Block>
constexpr auto kMultiplies =
    MakeMultiplies<Multiply, Block>(std::make_index_sequence<Multiply::kRows>());

// All rows times `block`'s one strip.
template <class Multiply, class Block>
void MultiplyRows(Block block, size_t rows) {
  size_t blocks = (rows + Multiply::kRows - 1) / Multiply::kRows;
  const size_t bytes = block.PartBytes(), depth = block.Depth();
  block.ahead.at = block.Part() + (blocks == 1 ? kNearBytes : bytes);
  block.ahead.step = (bytes / depth + blocks - 1) / blocks;
  for (; blocks > 0; --blocks) {
    const size_t count = (rows + blocks - 1) / blocks;
    kMultiplies<Multiply, Block>[count - 1](block);
    block.Skip(count);
    block.ahead.at += depth * block.ahead.step;
    rows -= count;
  }
}

// One or two rows: several strips at a time, so that enough sums are under way.
inline size_t StripsTogether(size_t rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

// All rows times `strips` strips: StripsTogether(rows), or one.
template <class Multiply, class Block>
void MultiplyStrips(const Block& block, size_t rows, size_t strips) {
  if (strips == 1) {
    MultiplyRows<Multiply>(block, rows);
  } else if (rows == 1) {
    Multiply::template Run<1, 4>(block);
  } else {
    Multiply::template Run<2, 2>(block);
  }
}

// The `count` columns from `column` on, behind the last whole strip, by way of a strip of our own.
// `block` is of all their K; `bias` is its member that reads the bias, and does not move with rows.
template <class Multiply, class Block>
void MultiplyTail(Block block, const float* Block::*bias, const GemmPanelArgs& args, size_t column,
                  size_t count) {
  const size_t columns = static_cast<size_t>(args.columns), rows = static_cast<size_t>(args.rows);
  alignas(64) float whole_bias[kStrip] = {};
  alignas(64) float c[Multiply::kRows * kStrip];
  std::memcpy(whole_bias, args.bias + column, count * sizeof(float));
  block.*bias = whole_bias;
  block.c = c;
  block.ldc = kStrip;
  block.ahead.at = block.Part();  // nothing comes behind it
  for (size_t row = 0; row < rows; row += Multiply::kRows) {
    const size_t some = std::min(Multiply::kRows, rows - row);
    kMultiplies<Multiply, Block>[some - 1](block);
    for (size_t r = 0; r < some; ++r) {
      std::memcpy(args.c + (row + r) * columns + column, c + r * kStrip, count * sizeof(float));
    }
    block.a += some * block.lda;
  }
}

// What a block of rows is multiplied with where sums are floats: strips, and `depth` lanes of W,
// each of which holds kPerLane of K.
template <class W, size_t kPerLane>
struct FloatBlock {
  const float* a;      // [rows, kPerLane * depth; lda]
  const W* w;          // the first strip
  const float* start;  // what the sums begin with: the bias [columns; ld 0], or C [rows; ldc]
  float* c;            // [rows, columns; ldc]
  size_t lda, ldc, ld_start;
  size_t strip_stride;  // lanes from one strip to the next
  size_t depth;
  Ahead ahead = {};

  static constexpr size_t kBytes = kStrip * sizeof(W);  // of a lane of K in a strip
  size_t Depth() const { return depth; }
  const char* Part() const { return reinterpret_cast<const char*>(w); }
  size_t PartBytes() const { return depth * kBytes; }
  void Skip(size_t rows) {
    a += rows * lda;
    c += rows * ldc;
    start += rows * ld_start;
  }

  // kR rows of kVectors vectors of sums.
  template <size_t kR, size_t kVectors>
  HWY_INLINE void LoadSums(VF* sums) const {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
      sums[i] = hn::LoadU(F32(), start + i / kVectors * ld_start + i % kVectors * kLanes);
    });
  }
  template <size_t kR, size_t kVectors>
  HWY_INLINE void StoreSums(const VF* sums) const {
    Unroll<kR * kVectors>([&](auto i) ATTEND_INLINE_LAMBDA {
      hn::StoreU(sums[i], F32(), c + i / kVectors * ldc + i % kVectors * kLanes);
    });
  }
};

// Adds element `at` of each of kR rows times `columns` to the sums.
template <size_t kR, size_t kVectors>
HWY_INLINE void AddProducts(const float* const* rows, size_t at, const VF* columns, VF* sums) {
  Unroll<kR>([&](auto r) ATTEND_INLINE_LAMBDA {
    const VF element = hn::Set(F32(), rows[r][at]);
    Unroll<kVectors>([&](auto v) ATTEND_INLINE_LAMBDA {
      constexpr size_t s = r * kVectors + v;
      sums[s] = hn::MulAdd(columns[v], element, sums[s]);
    });
  });
}

// A GEMM of FloatBlocks over rows of `lda` floats.
template <class Multiply, class W, size_t kPerLane>
void RunFloatPanel(const GemmPanelArgs& args, size_t lda) {
  using Block = FloatBlock<W, kPerLane>;
  constexpr size_t kDepth = kPartBytes / Block::kBytes;
  const size_t rows = static_cast<size_t>(args.rows), columns = static_cast<size_t>(args.columns);
  const size_t lanes = lda / kPerLane;
  const size_t strips = columns / kStrip, strip_stride = kStrip * lanes;
  const auto* const packed = static_cast<const W*>(args.packed);
  const size_t together = StripsTogether(rows);
  // Parts alike: what is fetched ahead of a short part would be too little of the next one.
  const size_t parts = rows <= Multiply::kRows ? 1 : (lanes + kDepth - 1) / kDepth;
  const size_t depth = (lanes + parts - 1) / parts;
  size_t strip = 0;
  while (strip < strips) {
    const size_t some = strips - strip >= together ? together : 1;
    float* const c = args.c + strip * kStrip;
    for (size_t i = 0; i < lanes; i += depth) {
      MultiplyStrips<Multiply>(Block{.a = args.a + kPerLane * i,
                                     .w = packed + strip * strip_stride + i * kStrip,
                                     .start = i == 0 ? args.bias + strip * kStrip : c,
                                     .c = c,
                                     .lda = lda,
                                     .ldc = columns,
                                     .ld_start = i == 0 ? 0 : columns,
                                     .strip_stride = strip_stride,
                                     .depth = std::min(depth, lanes - i)},
                               rows, some);
    }
    strip += some;
  }
  if (strips * kStrip < columns) {
    const Block block{.a = args.a,
                      .w = packed + strips * strip_stride,
                      .start = nullptr,
                      .c = nullptr,
                      .lda = lda,
                      .ldc = 0,
                      .ld_start = 0,
                      .strip_stride = 0,
                      .depth = lanes};
    MultiplyTail<Multiply>(block, &Block::start, args, strips * kStrip, columns - strips * kStrip);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_GEMM_BLOCKS_INL_H_
