// The arithmetic of measuring: percentiles, intervals, arrivals. All of it is a function of its
// arguments; what is random takes a seed.
#ifndef ATTEND_BENCH_HARNESS_STATS_H_
#define ATTEND_BENCH_HARNESS_STATS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attend::bench {

// The smallest value that at least the part `p` (0 .. 1) of `values` does not exceed (nearest
// rank). Requires: not empty.
double Percentile(std::span<const double> values, double p);

// The middle value, or the mean of the two. Requires: not empty.
double Median(std::span<const double> values);

struct Interval {
  double low = 0, high = 0;
};

// The 95 % interval of the median: that of the medians of `resamples` samples drawn from `values`
// with replacement (Efron's percentile bootstrap). Requires: not empty.
Interval BootstrapMedian(std::span<const double> values, int resamples, uint64_t seed);

// When `count` requests arrive, in seconds from the start: a Poisson process of `rate` a second.
// The same numbers for the same seed, whatever the standard library.
std::vector<double> PoissonArrivals(int64_t count, double rate, uint64_t seed);

// A generator whose numbers are the same everywhere (SplitMix64, Steele, Lea and Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  double NextUnit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }  // [0, 1)
  // [0, bound). The bias, bound / 2^64, does not matter here.
  uint64_t Below(uint64_t bound) { return Next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_STATS_H_
