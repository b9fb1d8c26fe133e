#include "bench/harness/stats.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace attend::bench {

double Percentile(std::span<const double> values, double p) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double count = static_cast<double>(sorted.size());
  // What rounding adds to p * count must not make it the next rank.
  const double rank = std::ceil(p * count - 1e-9);
  return sorted[static_cast<size_t>(std::clamp(rank, 1.0, count)) - 1];
}

double Median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  const size_t half = sorted.size() / 2;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(half), sorted.end());
  const double upper = sorted[half];
  if (sorted.size() % 2 == 1) return upper;
  return (upper +
          *std::max_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(half))) /
         2;
}

Interval BootstrapMedian(std::span<const double> values, int resamples, uint64_t seed) {
  Random random(seed);
  std::vector<double> medians, sample(values.size());
  medians.reserve(static_cast<size_t>(resamples));
  for (int i = 0; i < resamples; ++i) {
    for (double& value : sample) value = values[random.Below(values.size())];
    medians.push_back(Median(sample));
  }
  return {Percentile(medians, 0.025), Percentile(medians, 0.975)};
}

std::vector<double> PoissonArrivals(int64_t count, double rate, uint64_t seed) {
  Random random(seed);
  std::vector<double> arrivals;
  arrivals.reserve(static_cast<size_t>(count));
  double at = 0;
  for (int64_t i = 0; i < count; ++i) {
    at += -std::log1p(-random.NextUnit()) / rate;
    arrivals.push_back(at);
  }
  return arrivals;
}

uint64_t Random::Next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace attend::bench
