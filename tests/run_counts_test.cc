// What a run does is the same every time, and counted: barriers, steps, allocations, bytes packed.
// More of any of them is a regression that no clock is needed to see.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "bench/harness/subject.h"
#include "bench/harness/tiny_model.h"
#include "engine/session.h"
#include "tests/sanitized.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

#if !ATTEND_TEST_SANITIZED
// Not inlined: g++ would take what they call for a mismatch.
__attribute__((noinline)) void* operator new(size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace attend {
namespace {

struct Counts {
  int64_t barriers = 0;     // that all threads waited at
  int64_t linear = 0;       // linear steps run on a tile, by any thread
  int64_t others = 0;       // other steps
  int64_t allocations = 0;  // by operator new
  int64_t packed = 0;       // bytes of weights packed during the run
};

// Three layers of width 64; 5 sequences of 40 tokens, on two threads.
Counts CountRun(Share share) {
  const Result<Model> model =
      bench::MakeEncoder({.width = 64, .layers = 3, .heads = 4, .ffn = 256});
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  Result<bench::Subject> subject = bench::Subject::Open(
      *model,
      {.num_threads = 2, .max_tokens = 256, .backend = ThreadBackend::kThread, .share = share});
  EXPECT_TRUE(subject.ok()) << subject.status().ToString();
  const bench::Batch batch = subject->MakeBatch(5, 40);
  SessionData& data = subject->session().data();
  EXPECT_TRUE(subject->Run(batch).ok());
  const size_t weights = subject->session().weight_bytes();
  const int64_t before = allocations;
  EXPECT_TRUE(subject->Run(batch).ok());
  Counts counts{.barriers = data.workers.barrier.waits(), .allocations = allocations - before};
  counts.packed = static_cast<int64_t>(subject->session().weight_bytes() - weights);

  const Plan& plan = data.runner.plan();
  StepTimes times(2, plan.steps.size());
  data.runner.set_step_times(&times);
  EXPECT_TRUE(subject->Run(batch).ok());
  data.runner.set_step_times(nullptr);
  for (const StepTimes::Thread& thread : times.threads) {
    for (size_t i = 0; i < thread.tiles.size(); ++i) {
      (plan.steps[i]->cost().weight_bytes > 0 ? counts.linear : counts.others) += thread.tiles[i];
    }
  }
  return counts;
}

void ExpectCounts(Share share, const Counts& recorded) {
  const Counts counts = CountRun(share);
  EXPECT_EQ(counts.barriers, recorded.barriers);
  EXPECT_EQ(counts.linear, recorded.linear);
  EXPECT_EQ(counts.others, recorded.others);
  EXPECT_EQ(counts.packed, 0);
  // On AVX-512 oneDNN allocates (tests/allocation_test.cc tells whose an allocation is).
  if (std::string(CurrentIsa()).find("avx512") == std::string::npos && CurrentIsa() != "amx") {
    EXPECT_EQ(counts.allocations, 0);
  }
}

// 200 rows: two threads with two tiles each (64 and 56 rows of 120; 64 and 16 of 80). A tile passes
// 4 linear steps a layer, and 11 others: the embedding with its norm, attention and two norms a
// layer.
TEST(RunCounts, BySequences) {
  ExpectCounts(Share::kSequences, {.barriers = 0, .linear = 48, .others = 44});
}

// One wait a layer, before attention.
TEST(RunCounts, ByRows) { ExpectCounts(Share::kRows, {.barriers = 3, .linear = 48, .others = 44}); }

// One tile of 200 rows for both. Four waits a layer.
TEST(RunCounts, ByColumns) {
  ExpectCounts(Share::kColumns, {.barriers = 12, .linear = 24, .others = 22});
}

// Weights packed for a kernel of attend's own: columns in strips of two vectors, and biases.
TEST(RunCounts, PackedBytes) {
  const Result<Model> model =
      bench::MakeEncoder({.width = 64, .layers = 3, .heads = 4, .ffn = 256});
  ASSERT_TRUE(model.ok());
  const Result<Session> session = Session::Create(*model, {.max_tokens = 64});
  ASSERT_TRUE(session.ok());
  constexpr size_t kWeights = 3 * (4 * 64 * 64 + 2 * 64 * 256) * sizeof(float);
  // Biases and the vectors of norms: a few per cent of it.
  EXPECT_GE(session->weight_bytes(), kWeights);
  EXPECT_LE(session->weight_bytes(), kWeights * 103 / 100);
}

// The clock changes no bit, and what it says adds up: each thread's steps and waits are all there
// is.
TEST(RunCounts, TheClockChangesNothing) {
  const Result<Model> model =
      bench::MakeEncoder({.width = 64, .layers = 3, .heads = 4, .ffn = 256});
  ASSERT_TRUE(model.ok());
  for (const Share share : {Share::kSequences, Share::kRows, Share::kColumns}) {
    Result<bench::Subject> subject =
        bench::Subject::Open(*model, {.num_threads = 2, .max_tokens = 256, .share = share});
    ASSERT_TRUE(subject.ok());
    const bench::Batch batch = subject->MakeBatch(3, 50);
    const Result<Output> plain = subject->RunFor(batch);
    ASSERT_TRUE(plain.ok());
    const std::vector<float> expected(plain->hidden.begin(), plain->hidden.end());
    PlanRunner& runner = subject->session().data().runner;
    StepTimes times(2, runner.plan().steps.size());
    runner.set_step_times(&times);
    const Result<Output> timed = subject->RunFor(batch);
    runner.set_step_times(nullptr);
    ASSERT_TRUE(timed.ok());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), timed->hidden.begin()));
    for (const StepTimes::Thread& thread : times.threads) {
      for (size_t i = 0; i < thread.ns.size(); ++i) {
        EXPECT_GE(thread.ns[i], 0);
        EXPECT_GT(thread.tiles[i], 0) << i;
      }
    }
  }
}

}  // namespace
}  // namespace attend
