// A plain read loop: what reading can be at best, for the limit.
#ifndef ATTEND_BENCH_HARNESS_READ_RATE_H_
#define ATTEND_BENCH_HARNESS_READ_RATE_H_

#include <cstdint>

namespace attend::bench {

// The sum of `count` floats (a multiple of 128), in eight chains so that only reading holds it up.
using SumFloatsFn = float (*)(const float* values, int64_t count);
SumFloatsFn BindSumFloats();

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_READ_RATE_H_
