// Layer normalisation of rows, alone or after a residual sum.
#ifndef ATTEND_KERNELS_LAYER_NORM_H_
#define ATTEND_KERNELS_LAYER_NORM_H_

#include <cstdint>

namespace attend {

struct NormArgs {
  const float* x = nullptr;                      // [R, D; ldx]
  const float* residual = nullptr;               // [R, D; ld_residual] added to x first, or null
  const float* weight = nullptr;                 // [D], or null (all 1)
  const float* bias = nullptr;                   // [D], or null (all 0)
  float* out = nullptr;                          // [R, D; ld_out]; may be x or residual itself
  int64_t rows = 0;                              // R
  int64_t width = 0;                             // D >= 1
  int64_t ldx = 0, ld_residual = 0, ld_out = 0;  // elements, >= D
  float eps = 0;
};
using NormFn = void (*)(const NormArgs&);

// out = (s - mean(s)) / sqrt(variance(s) + eps) * weight + bias, s = x + residual.
// Mean and variance in two passes over the row; a row's bits depend on that row alone.
// Requires: |s| below 1e18, or squares overflow.
// Error: 3e-6 (1 + |out|) against s as rounded to f32, for rows whose mean is within a few standard
// deviations of 0; a mean of m deviations costs m 2^-23 more.
NormFn BindLayerNorm();

// out = s / sqrt(mean(s^2) + eps) * weight + bias. Requires and Error: as above.
NormFn BindRmsNorm();

}  // namespace attend

#endif  // ATTEND_KERNELS_LAYER_NORM_H_
