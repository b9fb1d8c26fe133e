// What the kernel benchmarks share: the ISA from the environment, memory, counters.
#ifndef ATTEND_BENCH_BENCH_H_
#define ATTEND_BENCH_BENCH_H_

#include <benchmark/benchmark.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>
#include <vector>

#include "kernels/isa.h"

namespace attend::bench {

// Binds the ISA that the environment variable ATTEND_ISA names; without it, the best. A name that
// cannot be bound ends the run of `state` with the error.
inline bool BindIsa(benchmark::State& state) {
  const char* name = std::getenv("ATTEND_ISA");
  if (name != nullptr) {
    const Result<Isa> isa = ParseIsa(name);
    const Status status = isa.ok() ? LimitIsa(*isa) : isa.status();
    if (!status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return false;
    }
  }
  state.SetLabel(IsaName(BoundIsa()));
  return true;
}

// The numbers of threads to run with: 1 and 2, or the one that the environment variable
// ATTEND_THREADS names.
inline std::vector<int> ThreadCounts() {
  const char* text = std::getenv("ATTEND_THREADS");
  if (text == nullptr) return {1, 2};
  const std::string_view number(text);
  int threads = -1;  // what is no number stays that, and Create refuses it
  std::from_chars(number.data(), number.data() + number.size(), threads);
  return {threads};
}

// 64-byte aligned floats with values between -2 and 2 that no kernel can simplify.
class Floats {
 public:
  explicit Floats(int64_t count)
      : data_(static_cast<float*>(
            ::operator new (static_cast<size_t>(count) * sizeof(float), std::align_val_t{64}))) {
    uint32_t x = 1;
    for (int64_t i = 0; i < count; ++i) {
      x = x * 1664525u + 1013904223u;
      data_[i] = static_cast<float>(static_cast<int32_t>(x)) * 0x1p-30f;
    }
  }
  ~Floats() { ::operator delete (data_, std::align_val_t{64}); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  float* data() { return data_; }

 private:
  float* data_;
};

// Per iteration; printed per second with the unit's prefix.
inline void CountBytes(benchmark::State& state, double bytes) {
  state.counters["bytes"] =
      benchmark::Counter(bytes, benchmark::Counter::kIsIterationInvariantRate);
}
inline void CountFlops(benchmark::State& state, double flops) {
  state.counters["FLOP"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace attend::bench

#endif  // ATTEND_BENCH_BENCH_H_
