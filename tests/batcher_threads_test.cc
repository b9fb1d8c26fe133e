// Batcher under many threads: the bits of serial runs, an end at any moment, more requests than it
// can serve, nothing to do at all, and threads of somebody else's.
// ATTEND_REQUESTS=N requests a thread (100), ATTEND_ROUNDS=N ends (200).
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/batcher_testing.h"
#include "tests/sanitized.h"

namespace attend {
namespace {

using testing::Lone;
using testing::MakeBatcher;
using testing::MakeModel;
using testing::Plug;
using testing::Random;

int Setting(const char* name, int usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::atoi(text);
}

TEST(BatcherThreads, SixtyFourThreadsGetTheBitsOfSerialRuns) {
  const int requests = Setting("ATTEND_REQUESTS", ATTEND_TEST_SANITIZED ? 20 : 100);
  const Model model = MakeModel(testing::ClassifierConfig());
  const auto sequences = testing::Sequences(50, 24, 3);
  const std::vector<Lone> expected = testing::RunAlone(model, sequences);
  Batcher batcher = MakeBatcher(model, {.session = {.max_tokens = 256}, .num_workers = 3});
  std::atomic<int64_t> same{0}, other{0};
  const auto count = [&](size_t which, const Result<BatchAnswer>& answer) {
    const bool right = answer.ok() && testing::LoneOf(*answer) == expected[which];
    ++(right ? same : other);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t));
      for (int i = 0; i < requests; ++i) {
        const size_t which = static_cast<size_t>(random.Below(50));
        BatchRequest request = testing::RequestOf(sequences[which]);
        request.block_us = 60'000'000;
        request.priority = static_cast<int32_t>(random.Below(3));
        if (i % 3 == 0) {
          request.done = [&count, which](Result<BatchAnswer> answer) { count(which, answer); };
        }
        Result<PendingAnswer> pending = batcher.Submit(std::move(request));
        if (!pending.ok()) {
          ++other;
        } else if (i % 3 == 1) {
          count(which, pending->Wait());
        } else if (i % 3 == 2) {
          while (!pending->WaitFor(100)) {
          }
          count(which, pending->Wait());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(batcher.Drain());
  EXPECT_EQ(same, int64_t{64} * requests);
  EXPECT_EQ(other, 0);
  const BatcherStatistics s = batcher.statistics();
  EXPECT_EQ(s.answered, int64_t{64} * requests);
  EXPECT_GT(s.batch_sequences, s.batches) << "no batch had two";
}

// Each accepted request is answered once, whenever the end comes and whoever brings it.
class Ends {
 public:
  explicit Ends(uint64_t seed) : random_(seed), model_(Shared()) {}

  void Run() {
    Batcher batcher =
        MakeBatcher(model_, {.session = {.max_tokens = 48, .max_sequences = 8},
                             .num_workers = static_cast<int32_t>(1 + random_.Below(3)),
                             .max_queued_requests = static_cast<int32_t>(1 + random_.Below(40)),
                             .max_queued_tokens = 1000,
                             .linger_us = random_.Below(4) == 0 ? random_.Below(300) : 0});
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([this, &batcher, seed = random_.Next()] { Call(&batcher, seed); });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random_.Below(800)));
    const int64_t end = random_.Below(5);
    if (end == 0) batcher.Close();
    if (end == 1) batcher.CancelAll();
    if (end == 2) {
      EXPECT_TRUE(batcher.Drain());
    }
    if (end == 3) batcher.Drain(random_.Below(200));
    if (end == 4) batcher.statistics();
    stop_ = true;
    // Half of the time the Batcher ends while those that wait for answers still do.
    if (random_.Below(2) == 0) {
      for (std::thread& thread : threads) thread.join();
      { const Batcher gone = std::move(batcher); }
    } else {
      while (submitting_ > 0) std::this_thread::yield();
      { const Batcher gone = std::move(batcher); }
      for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(called_, by_call_);
    EXPECT_EQ(waited_, by_wait_);
  }

  int64_t answers() const { return called_ + waited_; }

 private:
  static const Model& Shared() {
    static const Model model = MakeModel(testing::ClassifierConfig(1));
    return model;
  }

  void Call(Batcher* batcher, uint64_t seed) {
    Random random(seed);
    std::vector<PendingAnswer> pending;
    ++submitting_;
    while (!stop_) {
      const std::vector<int32_t> ids =
          testing::Ids(static_cast<size_t>(1 + random.Below(20)), random.Next());
      BatchRequest request{.ids = ids, .priority = static_cast<int32_t>(random.Below(2))};
      if (random.Below(3) == 0) request.deadline_us = random.Below(500) - 20;
      if (random.Below(4) == 0) request.block_us = random.Below(100);
      const bool by_call = random.Below(2) == 0;
      if (by_call) request.done = [this](Result<BatchAnswer>) { ++called_; };
      Result<PendingAnswer> one = batcher->Submit(std::move(request));
      if (!one.ok()) continue;
      ++(by_call ? by_call_ : by_wait_);
      if (random.Below(4) == 0) one->Cancel();
      if (by_call) continue;  // and lets go of it
      if (random.Below(3) == 0) {
        if (one->WaitFor(random.Below(50)))
          ++waited_, static_cast<void>(one->Wait());
        else
          pending.push_back(*std::move(one));
      } else {
        pending.push_back(*std::move(one));
      }
    }
    --submitting_;
    for (PendingAnswer& one : pending) {
      static_cast<void>(one.Wait());
      EXPECT_TRUE(one.done());
      ++waited_;
    }
  }

  Random random_;
  const Model model_;
  std::atomic<bool> stop_{false};
  std::atomic<int> submitting_{0};
  std::atomic<int64_t> called_{0}, waited_{0}, by_call_{0}, by_wait_{0};
};

TEST(BatcherThreads, EndsAtAnyMoment) {
  const int rounds = Setting("ATTEND_ROUNDS", 200);
  int64_t answers = 0;
  for (int round = 0; round < rounds; ++round) {
    Ends ends(static_cast<uint64_t>(round));
    ends.Run();
    answers += ends.answers();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
  }
  EXPECT_GT(answers, rounds);
}

// Four callers for what one could bring: refusals come at once, memory stays within the bound, and
// all that is accepted is answered.
TEST(BatcherThreads, MoreThanItCanServe) {
  const Model model = MakeModel(testing::ClassifierConfig());
  const BatcherOptions options = {.session = {.max_tokens = 128},
                                  .num_workers = 1,
                                  .max_queued_requests = 64,
                                  .max_bytes = 200000};
  Batcher batcher = MakeBatcher(model, options);
  std::atomic<int64_t> accepted{0}, refused{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<int32_t> ids = testing::Ids(20, static_cast<uint64_t>(t));
      for (int i = 0; i < 2000; ++i) {
        const Result<PendingAnswer> one = batcher.Submit({.ids = ids});
        if (!one.ok()) {
          EXPECT_EQ(one.status().code(), ErrorCode::kBusy);
        }
        ++(one.ok() ? accepted : refused);
        if (i % 16 != 0) continue;
        const int64_t bytes = batcher.statistics().bytes;
        int64_t before = most;
        while (before < bytes && !most.compare_exchange_weak(before, bytes)) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(batcher.Drain());
  const BatcherStatistics s = batcher.statistics();
  EXPECT_GT(refused, 0);
  EXPECT_EQ(s.answered, accepted);
  EXPECT_EQ(s.refused, refused);
  EXPECT_EQ(s.bytes, 0);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, options.max_bytes);
}

double ProcessCpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(BatcherThreads, IdleWorkersSleep) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Batcher batcher =
      MakeBatcher(model, {.session = {.num_threads = 2, .max_tokens = 128}, .num_workers = 4});
  const std::vector<int32_t> ids = testing::Ids(100, 1);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(batcher.Submit({.ids = ids})->Wait().ok());
  testing::SleepMs(100);
  const double before = ProcessCpuSeconds();
  testing::SleepMs(400);
  EXPECT_LT(ProcessCpuSeconds() - before, 0.4 * 0.005);
}

// A pool of the host's: n-1 of its threads and the caller's own, or wait until there are as many.
class HostPool final : public Executor {
 public:
  explicit HostPool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~HostPool() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  int concurrency() const override { return static_cast<int>(threads_.size()) + 1; }
  void Run(int n, void (*task)(void*, int), void* argument) override {
    Call call{task, argument, n - 1};
    const std::lock_guard<std::mutex> turn(turn_);  // tasks of one run wait for each other
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      call_ = &call;
      next_ = 1;
      left_ = n - 1;
    }
    changed_.notify_all();
    task(argument, 0);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
    call_ = nullptr;
    ++runs;
  }
  std::atomic<int> runs{0};

 private:
  struct Call {
    void (*task)(void*, int);
    void* argument;
    int others;
  };
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || (call_ != nullptr && next_ <= call_->others); });
      if (stop_) return;
      const Call call = *call_;
      const int index = next_++;
      lock.unlock();
      call.task(call.argument, index);
      lock.lock();
      if (--left_ == 0) changed_.notify_all();
    }
  }

  std::mutex turn_, mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  bool stop_ = false;
  Call* call_ = nullptr;
  int next_ = 0, left_ = 0;
};

// Two models, three Sessions and a Batcher compute on three threads of the host's and those that
// call, and attend starts none.
TEST(BatcherThreads, ManyModelsShareThePoolOfTheHost) {
  const Model models[] = {MakeModel(testing::ClassifierConfig(), 1),
                          MakeModel(testing::EncoderConfig(64, 3, 4, 96), 2)};
  const auto sequences = testing::Sequences(10, 60, 9);
  const std::vector<Lone> expected[] = {testing::RunAlone(models[0], sequences),
                                        testing::RunAlone(models[1], sequences)};
  HostPool pool(3);
  const int threads = testing::ThreadsOfProcess();
  const SessionOptions options = {.num_threads = 4, .max_tokens = 64, .executor = &pool};
  std::vector<Session> sessions;
  for (const int which : {0, 1, 1}) {
    Result<Session> session = Session::Create(models[which], options);
    ASSERT_TRUE(session.ok());
    sessions.push_back(*std::move(session));
  }
  Batcher batcher = MakeBatcher(models[0], {.session = options, .num_workers = 1});
  EXPECT_EQ(testing::ThreadsOfProcess(), threads) << "attend started threads of its own";
  std::vector<std::thread> callers;
  std::atomic<int> same{0}, most{0};
  for (size_t s = 0; s < 3; ++s) {
    callers.emplace_back([&, s] {
      for (int round = 0; round < 10; ++round) {
        for (size_t i = 0; i < sequences.size(); ++i) {
          const int32_t offsets[] = {0, static_cast<int32_t>(sequences[i].size())};
          const TokenBatch batch{.ids = sequences[i], .offsets = offsets};
          if (testing::RunAlone(&sessions[s], batch) == expected[s == 0 ? 0 : 1][i]) ++same;
        }
      }
      most = std::max(most.load(), testing::ThreadsOfProcess());
    });
  }
  callers.emplace_back([&] { EXPECT_TRUE(batcher.Serve().ok()); });
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Result<BatchAnswer> answer = batcher.Submit(testing::RequestOf(sequences[i]))->Wait();
    ASSERT_TRUE(answer.ok());
    EXPECT_TRUE(testing::LoneOf(*answer) == expected[0][i]);
  }
  EXPECT_TRUE(batcher.Drain());
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(same, 300);
  EXPECT_LE(most, threads + 4);
  EXPECT_GT(pool.runs, 0);
}

}  // namespace
}  // namespace attend
