// What this machine can do, measured at the start of a run: the rates that a share of the limit is
// counted against.
#ifndef ATTEND_BENCH_HARNESS_RATES_H_
#define ATTEND_BENCH_HARNESS_RATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"
#include "bench/harness/json.h"

namespace attend::bench {

// The best packed GEMM of a precision, the engine's or oneDNN's: 64 rows, weights in L2.
struct GemmRate {
  Precision precision = Precision::kF32;
  std::string implementation;  // "f32 attend:avx2", "oneDNN brg:avx512_core"
  int64_t n = 0, k = 0;        // the shape that was fastest
  double one_core = 0;         // FLOP/s of one thread alone
  double all = 0;              // and of all threads at once, together
};

// Reading, in order, from where `bytes` a thread fit.
struct ReadRate {
  std::string level;  // "L1", "L2", "L3", "memory"
  int64_t bytes = 0;
  int64_t holds = 0;    // what may be counted as living there, for all threads
  double one_core = 0;  // bytes a second
  double all = 0;
};

struct Rates {
  int threads = 1;
  std::vector<GemmRate> gemm = {};
  std::vector<ReadRate> read = {};  // from the nearest to memory

  const GemmRate* Gemm(Precision precision) const;
  // Where weights of `bytes` live: the nearest level that holds them.
  const ReadRate& HomeOf(double bytes) const;
  Json ToJson() const;
};

// Measures for about `seconds` each. Errors: as LinearKernel's.
Result<Rates> MeasureRates(int threads, double seconds);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_RATES_H_
