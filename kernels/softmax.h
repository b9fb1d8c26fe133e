// Softmax of rows, for answers (inside attention it is fused: attention.h).
#ifndef ATTEND_KERNELS_SOFTMAX_H_
#define ATTEND_KERNELS_SOFTMAX_H_

#include <cstdint>

namespace attend {

// out = exp(x - max) / sum of exp(x - max). +inf counts as the largest finite number; a weight of
// an x more than 87.3 below the largest is exactly 0; a NaN makes its row NaN. A row's bits depend
// on that row alone. Error: (6e-7 + 7e-8 (max - x)) of each weight.
struct SoftmaxArgs {
  float* x = nullptr;  // [R, C; ldx], replaced by its softmax; all -inf gives zeros
  int64_t rows = 0, width = 0, ldx = 0;
};
using SoftmaxFn = void (*)(const SoftmaxArgs&);
SoftmaxFn BindSoftmax();

}  // namespace attend

#endif  // ATTEND_KERNELS_SOFTMAX_H_
