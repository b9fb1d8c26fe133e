// Encoders made on the spot, for what does not depend on the weights.
#ifndef ATTEND_BENCH_HARNESS_TINY_MODEL_H_
#define ATTEND_BENCH_HARNESS_TINY_MODEL_H_

#include <cstdint>

#include "attend/attend.h"
#include "attend/status.h"

namespace attend::bench {

struct EncoderSize {
  int64_t width = 0, layers = 0, heads = 0, ffn = 0;
};

// An encoder in the manner of BERT with weights that look like noise and are always the same.
Result<Model> MakeEncoder(const EncoderSize& size);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_TINY_MODEL_H_
