// Sums of rows.
#ifndef ATTEND_KERNELS_RESIDUAL_H_
#define ATTEND_KERNELS_RESIDUAL_H_

#include <cstdint>

namespace attend {

struct ResidualArgs {
  const float* x = nullptr;         // [R, D; ldx]
  const float* residual = nullptr;  // [R, D; ld_residual]
  float* out = nullptr;             // [R, D; ld_out]; may be either input
  int64_t rows = 0, width = 0, ldx = 0, ld_residual = 0, ld_out = 0;
};
using ResidualFn = void (*)(const ResidualArgs&);
// out = x + residual. Exact: rounded once.
ResidualFn BindResidual();

}  // namespace attend

#endif  // ATTEND_KERNELS_RESIDUAL_H_
