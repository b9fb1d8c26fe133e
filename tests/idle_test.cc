// Idle means idle: from 100 ms after the last run on, no thread of a Session takes processor time,
// whichever backend it has.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "attend/attend.h"
#include "bench/harness/subject.h"
#include "bench/harness/tiny_model.h"

namespace attend {
namespace {

// Of all threads of this process.
double ProcessorMilliseconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
  };
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

double IdleMilliseconds(ThreadBackend backend, int threads) {
  const Result<Model> model =
      bench::MakeEncoder({.width = 64, .layers = 2, .heads = 4, .ffn = 256});
  EXPECT_TRUE(model.ok());
  Result<bench::Subject> subject = bench::Subject::Open(
      *model,
      {.num_threads = threads, .max_tokens = 256, .backend = backend, .share = Share::kColumns});
  EXPECT_TRUE(subject.ok());
  const bench::Batch batch = subject->MakeBatch(2, 64);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(subject->Run(batch).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double before = ProcessorMilliseconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return ProcessorMilliseconds() - before;
}

// A thread that spins would take 300 ms of the 300; what a sleeping process takes is a timer's
// tick.
TEST(Idle, NothingRunsWhenNothingRuns) {
  for (const ThreadBackend backend : {ThreadBackend::kDefault, ThreadBackend::kThread}) {
    for (const int threads : {2, 8}) {
      EXPECT_LT(IdleMilliseconds(backend, threads), 30)
          << "backend " << static_cast<int>(backend) << ", " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace attend
