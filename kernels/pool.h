// One vector out of the rows of a sequence.
#ifndef ATTEND_KERNELS_POOL_H_
#define ATTEND_KERNELS_POOL_H_

#include <cstdint>

namespace attend {

struct PoolArgs {
  const float* x = nullptr;  // [L, D; ldx], L >= 1
  float* out = nullptr;      // [D]
  int64_t rows = 0, width = 0, ldx = 0;
};
using PoolFn = void (*)(const PoolArgs&);
PoolFn BindPoolMean();  // rows are summed in order, then divided by L
PoolFn BindPoolMax();

// x [R, D; ldx], each row divided by max(its Euclidean length, 1e-12), in place.
struct NormalizeArgs {
  float* x = nullptr;
  int64_t rows = 0, width = 0, ldx = 0;
};
using NormalizeFn = void (*)(const NormalizeArgs&);
NormalizeFn BindNormalize();

}  // namespace attend

#endif  // ATTEND_KERNELS_POOL_H_
