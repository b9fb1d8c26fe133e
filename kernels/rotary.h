// Rotary positions: pairs of columns of every head are turned by an angle that grows with the
// position. Su et al. 2021, in the half-split layout of Llama.
#ifndef ATTEND_KERNELS_ROTARY_H_
#define ATTEND_KERNELS_ROTARY_H_

#include <cstdint>

namespace attend {

// cos and sin of `positions` positions from 0 on: table[p] holds R / 2 cosines of the angles
// p * frequencies[i], then R / 2 sines, computed in double and rounded.
// Shapes: frequencies [R / 2], table [positions, R]. Requires: R even.
void FillRotaryTable(const double* frequencies, int64_t dims, int64_t positions, float* table);

struct RotaryArgs {
  float* x = nullptr;                  // [rows, heads * E; ldx], changed in place
  const int32_t* positions = nullptr;  // [rows]
  const float* table = nullptr;        // of FillRotaryTable, beyond every position
  int64_t rows = 0, ldx = 0;
  int64_t heads = 0, head_dim = 0;  // E
  int64_t dims = 0;                 // R <= E, even: what is behind column R of a head stays
};
using RotaryFn = void (*)(const RotaryArgs&);

// In every head of every row, with c and s the cosine and sine of angle i of its position:
//   (x_i, x_{i + R/2}) <- (x_i c - x_{i + R/2} s, x_{i + R/2} c + x_i s), i < R / 2
// A row's bits depend on that row and its position alone.
// Error: 3e-7 (|x_i| + |x_{i + R/2}|).
RotaryFn BindRotary();

}  // namespace attend

#endif  // ATTEND_KERNELS_ROTARY_H_
