// Where the time of a run goes, thread by thread and step by step. A plan that is given one takes
// the time between steps (a clock's call, some 30 ns, for each step of a tile); others run a walk
// without any of it.
#ifndef ATTEND_ENGINE_STEP_TIMES_H_
#define ATTEND_ENGINE_STEP_TIMES_H_

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

  StepTimes(int num_threads, size_t steps) : threads(static_cast<size_t>(num_threads)) {
    for (Thread& thread : threads) {
      thread.ns.resize(steps);
      thread.tiles.resize(steps);
    }
  }
};

// What a walk tells of its way: this one notes it, from one call to the next.
class StepClock {
 public:
  explicit StepClock(StepTimes::Thread* times) : times_(times), last_(Now()) {}
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
  void Waited() {}
  void Ran(int) {}
};

}  // namespace attend

#endif  // ATTEND_ENGINE_STEP_TIMES_H_
