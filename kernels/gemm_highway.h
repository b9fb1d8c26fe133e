// A packed GEMM of our own, for the instruction sets on which oneDNN 2.6 neither packs weights nor
// keeps the bits of a row (AVX2, SSE4). kernels/gemm.h is what others use.
//
// The columns of a panel are cut into strips of two vectors; a strip of W is packed as [K][strip],
// so that the inner loop reads it from front to back. Each output is one chain of multiply-adds
// over K in order, beginning with the bias: its bits depend on its row, its column and the ISA
// alone.
#ifndef ATTEND_KERNELS_GEMM_HIGHWAY_H_
#define ATTEND_KERNELS_GEMM_HIGHWAY_H_

#include <cstdint>

namespace attend {

// Floats of a packed panel of `columns` output columns.
int64_t PackedPanelFloats(int64_t columns, int64_t k);

// Packs W [columns, K] into `packed` [PackedPanelFloats(columns, K)].
struct PackPanelArgs {
  const float* w = nullptr;
  float* packed = nullptr;  // 64-byte aligned
  int64_t columns = 0, k = 0;
};
using PackPanelFn = void (*)(const PackPanelArgs&);
PackPanelFn BindPackPanel();

// C = A W^T + b for the columns of one panel.
// Error: K 2^-24 sum |a w| at most; a random walk of it in practice.
// Cost: 2 rows columns K FLOPs; reads W once a tile of up to 64 rows.
struct GemmPanelArgs {
  const float* a = nullptr;       // [rows, K]
  const float* packed = nullptr;  // W
  const float* bias = nullptr;    // [columns]
  float* c = nullptr;             // [rows, columns]
  int64_t rows = 0, columns = 0, k = 0;
};
using GemmPanelFn = void (*)(const GemmPanelArgs&);
GemmPanelFn BindGemmPanel();

}  // namespace attend

#endif  // ATTEND_KERNELS_GEMM_HIGHWAY_H_
