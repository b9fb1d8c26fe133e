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
// Rows are summed in order, then divided by L. Error: that of an f32 sum, L 2^-24 times the mean of
// |x|.
PoolFn BindPoolMean();
// Exact; NaN if there is one.
PoolFn BindPoolMax();

// x [R, D; ldx], each row divided by max(its Euclidean length, 1e-12), in place.
// Requires: |x| below 1e18, or squares overflow.
// Error: 1e-6 of each element.
struct NormalizeArgs {
  float* x = nullptr;
  int64_t rows = 0, width = 0, ldx = 0;
};
using NormalizeFn = void (*)(const NormalizeArgs&);
NormalizeFn BindNormalize();

}  // namespace attend

#endif  // ATTEND_KERNELS_POOL_H_
