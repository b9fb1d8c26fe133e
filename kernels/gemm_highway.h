// Packed GEMMs of our own: of f32 for the instruction sets on which oneDNN 2.6 neither packs
// weights nor keeps the bits of a row (AVX2, SSE4), of bf16 and int8 for all of them.
// kernels/gemm.h is what others use.
//
// The columns of a panel are cut into strips of two vectors; a strip of W is packed as [K][strip]
// (bf16, int8: two of K side by side, or four), so that the inner loop reads it from front to back.
// The bits of an output depend on its row, its column, the type and the ISA alone:
//
// - f32: one chain of multiply-adds over K in order, beginning with the bias.
// - bf16: the same chain over weights and rows that were rounded to bf16, in f32. A product of two
//   bf16 is exact in f32, so that with and without a fused multiply-add it is the same: all ISAs
//   without a bf16 unit give the same bits (unless a product is denormal); weights are widened by a
//   shift on their way from memory. The unit of AVX-512 BF16 takes K in pairs, as its instruction
//   defines it: first the second of a pair, then the first, each rounded, denormals as zero. Tiles
//   (AMX) add up 32 of K at a time, as their instruction defines it, and then add that to the sum.
// - int8: for each group of K (kQuantizeGroup) a sum of int32, exact, nothing saturates: pairs of
//   int16 by pmaddwd, or quads of bytes by vpdpbusd. Then total = total + float(sum) * s_row_group,
//   from 0 and group by group, and once total * s_column + bias; each operation rounded by itself.
//   All ISAs give the same bits.
#ifndef ATTEND_KERNELS_GEMM_HIGHWAY_H_
#define ATTEND_KERNELS_GEMM_HIGHWAY_H_

#include <cstdint>

#include "kernels/gemm_type.h"
#include "kernels/quantize.h"

namespace attend {

// Bytes of a packed panel of `columns` output columns, a multiple of 64.
int64_t PackedPanelBytes(GemmType type, int64_t columns, int64_t k);

// Packs W [columns, K] into `packed` [PackedPanelBytes].
// bf16: rounded to the nearest, ties to even; what would become infinity, to the largest number.
// int8: a scale for each column, s = max|w| / 127, and round(w / s), ties to even.
// Requires: W finite.
struct PackPanelArgs {
  const float* w = nullptr;
  void* packed = nullptr;  // 64-byte aligned
  int64_t columns = 0, k = 0;
};
using PackPanelFn = void (*)(const PackPanelArgs&);

// C = A W^T + b for the columns of one panel.
// Error, against sums of exact products: f32 and bf16 (of rounded weights and rows)
// K 2^-24 sum |a w| at most, a random walk of it in practice; int8 (of quantised ones) G 2^-23 of
// the sum of |sum s_row_group s_column| over the G groups, and of |bias|.
// Edges: int8: a row with a NaN or infinity gives a row of NaN.
// Cost: 2 rows columns K FLOPs; reads W once a tile of up to 64 rows.
struct GemmPanelArgs {
  const float* a = nullptr;      // f32: [rows, K]; else as GemmKernels::prepare leaves it
  const void* packed = nullptr;  // W
  const float* bias = nullptr;   // [columns]
  float* c = nullptr;            // [rows, columns]
  int64_t rows = 0, columns = 0, k = 0;
};
using GemmPanelFn = void (*)(const GemmPanelArgs&);

// The functions of one type for the bound ISA.
struct GemmKernels {
  PackPanelFn pack = nullptr;
  GemmPanelFn run = nullptr;
  PrepareRowsFn prepare = nullptr;             // null: run reads the rows as they are
  int64_t (*row_floats)(int64_t k) = nullptr;  // of a prepared row; null with `prepare`
};
GemmKernels BindGemm(GemmType type);

// Floats of a row behind GemmKernels::prepare; 0 of f32.
int64_t PreparedRowFloats(GemmType type, int64_t k);

GemmKernels BindGemmF32();   // gemm_highway.cc
GemmKernels BindGemmBf16();  // gemm_bf16.cc
GemmKernels BindGemmInt8();  // gemm_int8.cc
// Where the CPU has AMX: gemm_tiles.cc.
GemmKernels BindTilesBf16();
GemmKernels BindTilesInt8();

}  // namespace attend

#endif  // ATTEND_KERNELS_GEMM_HIGHWAY_H_
