// Where the time of a run goes, thread by thread and step by step. A plan that is given one takes
// the time between steps (a clock's call, some 30 ns, for each step of a tile); others run a walk
// without any of it.
#ifndef ATTEND_ENGINE_STEP_TIMES_H_
#define ATTEND_ENGINE_STEP_TIMES_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace attend {

struct StepTimes {
  struct alignas(64) Thread {
    std::vector<int64_t> ns;     // by step of the plan
    std::vector<int64_t> tiles;  // how often it ran
    int64_t wait_ns = 0;         // at barriers
  };
  std::vector<Thread> threads;

  StepTimes() = default;
  StepTimes(int num_threads, size_t steps) : threads(static_cast<size_t>(num_threads)) {
    for (Thread& thread : threads) {
      thread.ns.resize(steps);
      thread.tiles.resize(steps);
    }
  }

  // What one of these takes beside itself.
  static size_t Bytes(int num_threads, size_t steps) {
    return static_cast<size_t>(num_threads) * (sizeof(Thread) + 2 * steps * sizeof(int64_t));
  }

  void Clear() {
    for (Thread& thread : threads) {
      std::fill(thread.ns.begin(), thread.ns.end(), 0);
      std::fill(thread.tiles.begin(), thread.tiles.end(), 0);
      thread.wait_ns = 0;
    }
  }
};

// What a walk tells of its way: that a segment begins or ends, that it waited, that a step ran.
// This one notes the times of the last two, from one call to the next.
class StepClock {
 public:
  explicit StepClock(StepTimes::Thread* times) : times_(times), last_(Now()) {}
  void Begins() {}
  void Ends(size_t) {}
  void Waited() { times_->wait_ns += Lap(); }
  void Ran(int step) {
    times_->ns[static_cast<size_t>(step)] += Lap();
    ++times_->tiles[static_cast<size_t>(step)];
  }

 private:
  static int64_t Now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  int64_t Lap() {
    const int64_t before = last_;
    last_ = Now();
    return last_ - before;
  }

  StepTimes::Thread* times_;
  int64_t last_;
};

// And this one does not listen.
struct NoClock {
  void Begins() {}
  void Ends(size_t) {}
  void Waited() {}
  void Ran(int) {}
};

}  // namespace attend

#endif  // ATTEND_ENGINE_STEP_TIMES_H_
