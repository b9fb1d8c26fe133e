// The clock, and runs until there are enough of them.
#ifndef ATTEND_BENCH_HARNESS_TIMING_H_
#define ATTEND_BENCH_HARNESS_TIMING_H_

#include <chrono>
#include <thread>

namespace attend::bench {

// Seconds of a clock that never goes back.
inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void SleepFor(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

template <typename Function>
double Timed(const Function& function) {
  const double start = Now();
  function();
  return Now() - start;
}

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_TIMING_H_
