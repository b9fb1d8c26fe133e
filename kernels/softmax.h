// Softmax of rows, for answers (inside attention it is fused: attention.h).
#ifndef ATTEND_KERNELS_SOFTMAX_H_
#define ATTEND_KERNELS_SOFTMAX_H_

#include <cstdint>

namespace attend {

struct SoftmaxArgs {
  float* x = nullptr;  // [R, C; ldx], replaced by its softmax; all -inf gives zeros
  int64_t rows = 0, width = 0, ldx = 0;
};
using SoftmaxFn = void (*)(const SoftmaxArgs&);
SoftmaxFn BindSoftmax();

}  // namespace attend

#endif  // ATTEND_KERNELS_SOFTMAX_H_
