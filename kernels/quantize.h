// Rows of activations on their way into a GEMM of lower precision (kernels/gemm_highway.h): rounded
// to bf16, or quantised to int8 with a scale for each row.
#ifndef ATTEND_KERNELS_QUANTIZE_H_
#define ATTEND_KERNELS_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

namespace attend {

struct PrepareRowsArgs {
  const float* x = nullptr;  // [R, K]
  float* out = nullptr;      // [R, floats of a row: see below]
  int64_t rows = 0, k = 0;
  // Not 0: of K the columns [begin, begin + columns) alone, x [R, columns; ldx]. `begin` is a
  // multiple of kQuantizeGroup, and so is `columns`, unless K ends with them.
  int64_t begin = 0, columns = 0, ldx = 0;

  // Of x.
  size_t count() const { return static_cast<size_t>(columns > 0 ? columns : k); }
  size_t stride() const { return static_cast<size_t>(columns > 0 ? ldx : k); }
  bool ends_k() const { return begin + static_cast<int64_t>(count()) == k; }
};
using PrepareRowsFn = void (*)(const PrepareRowsArgs&);

// out = x rounded to the nearest bf16, ties to even, still as f32; behind an odd K one zero, since
// the GEMM takes two of K at a time. As IEEE has it: what is nearer to 2^128 than to the largest
// bf16 becomes infinity, NaN stays NaN, denormals are kept.
// Error: 2^-8 |x|, or 2^-134 where x is denormal.
constexpr int64_t RoundedRowFloats(int64_t k) { return (k + 1) / 2 * 2; }
PrepareRowsFn BindRoundBf16();

// The same as bf16, two for a float, the first in its low half; denormals become 0. By the CPU's
// unit: requires BoundIsa() >= kAvx512Bf16.
constexpr int64_t PairedRowFloats(int64_t k) { return (k + 1) / 2; }
PrepareRowsFn BindPairBf16();

// A row is cut into groups of kQuantizeGroup elements, from its start; each becomes integers q and
// a scale s, x = s q about: s = max|x| / 127, q = x (127 / max|x|) rounded to the nearest, ties to
// even; -127 to 127. A scale for the whole row would let one large element take the others' bits:
// MiniLM then loses twice as much (docs/performance.md). A row of `out` is the scales, then q as
// int16, two for a float; behind an odd K one zero. The bits are the same on every ISA.
// Edges: a group with max|x| below 2^-119 (where 127 / max|x| would be infinite) counts as zeros:
// s = 0, q = 0. One with a NaN or infinity gets s = NaN, q = 0: all that is made of it is NaN.
// Error: |x - s q| <= 0.5001 s.
inline constexpr int64_t kQuantizeGroup = 64;
inline constexpr float kSmallestQuantized = 0x1p-119f;
constexpr int64_t QuantizeGroups(int64_t k) { return (k + kQuantizeGroup - 1) / kQuantizeGroup; }
constexpr int64_t QuantizedRowFloats(int64_t k) { return QuantizeGroups(k) + (k + 1) / 2; }
PrepareRowsFn BindQuantize();

// The same scales and q for a VNNI unit, which multiplies q by weights + 128. A row of `out` is its
// groups one after the other: the scale, -128 times the sum of q as int32, q as int8, four for a
// float; behind K zeros up to a multiple of four. Requires BoundIsa() >= kAvx512Vnni.
constexpr int64_t QuantizedQuadsFloats(int64_t k) { return 2 * QuantizeGroups(k) + (k + 3) / 4; }
PrepareRowsFn BindQuantizeQuads();

// Both for the tiles of AMX, whose rows are lines of 64 bytes, zeros behind K: bf16 as
// BindPairBf16 has them; or the scales, up to the end of a line, then q as int8. An odd number of
// lines, so that rows do not collide in L1; what lies in a line for that alone is not written.
// They require BoundIsa() >= kAvx512Bf16 and kAvx512Vnni.
constexpr int64_t TiledBf16RowFloats(int64_t k) { return ((k + 31) / 32 | 1) * 16; }
constexpr int64_t TiledScaleFloats(int64_t k) { return (QuantizeGroups(k) + 15) / 16 * 16; }
constexpr int64_t TiledInt8RowFloats(int64_t k) {
  return ((TiledScaleFloats(k) / 16 + QuantizeGroups(k)) | 1) * 16;
}
PrepareRowsFn BindTiledBf16();
PrepareRowsFn BindTiledInt8();

}  // namespace attend

#endif  // ATTEND_KERNELS_QUANTIZE_H_
