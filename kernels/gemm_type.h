// What linear layers are computed in.
#ifndef ATTEND_KERNELS_GEMM_TYPE_H_
#define ATTEND_KERNELS_GEMM_TYPE_H_

namespace attend {

// What weights and rows are multiplied in; most exact first. kernels/gemm_highway.h defines each.
enum class GemmType { kF32 = 0, kBf16 = 1, kInt8 = 2 };

}  // namespace attend

#endif  // ATTEND_KERNELS_GEMM_TYPE_H_
