// Batcher: requests that are late or cancelled never start, and stop within a layer if they run.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/batcher_testing.h"
#include "tests/decoder_testing.h"

namespace attend {
namespace {

using testing::ExpectError;
using testing::Lone;
using testing::MakeBatcher;
using testing::MakeModel;
using testing::Plug;
using testing::SinceUs;
using testing::SleepMs;

TEST(BatcherCancel, TenThousandThatAreOverNeverStart) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Batcher batcher = MakeBatcher(
      model, {.num_workers = 1, .max_queued_requests = 20000, .max_queued_tokens = 100000});
  const std::vector<int32_t> ids = {1, 2};
  std::atomic<int> expired{0}, others{0};
  const auto count = [&](Result<BatchAnswer> answer) {
    ++(answer.status().code() == ErrorCode::kDeadline ? expired : others);
  };
  std::vector<PendingAnswer> waited;
  {
    const Plug plug(&batcher);
    for (int i = 0; i < 10000; ++i) {
      // Some already over, some soon; some with a waiter, some with a function.
      const int64_t deadline = i % 3 == 0 ? -1 : 1 + i % 1000;
      Result<PendingAnswer> one =
          i % 2 == 0 ? batcher.Submit({.ids = ids, .deadline_us = deadline})
                     : batcher.Submit({.ids = ids, .deadline_us = deadline, .done = count});
      if (!one.ok()) {
        count(one.status());
      } else if (i % 2 == 0) {
        waited.push_back(*std::move(one));
      }
    }
    SleepMs(5);
    // Those that wait learn it while the worker is still busy.
    for (size_t i = 0; i < waited.size(); i += 2) count(waited[i].Wait());
  }
  for (size_t i = 1; i < waited.size(); i += 2) count(waited[i].Wait());
  EXPECT_TRUE(batcher.Drain());
  EXPECT_EQ(expired, 10000);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(batcher.statistics().batch_sequences, 1) << "only the plug may have started";
  EXPECT_EQ(batcher.statistics().expired, 10000);
}

TEST(BatcherCancel, CancelledRequestsNeverStart) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Batcher batcher = MakeBatcher(model, {.num_workers = 1});
  const std::vector<int32_t> ids = {1, 2};
  std::vector<PendingAnswer> pending;
  int called = 0;
  {
    const Plug plug(&batcher);
    for (int i = 0; i < 100; ++i) {
      pending.push_back(*batcher.Submit({.ids = ids}));
    }
    PendingAnswer by_call =
        *batcher.Submit({.ids = ids, .done = [&](Result<BatchAnswer> answer) {
                           EXPECT_EQ(answer.status().code(), ErrorCode::kCancelled);
                           ++called;
                         }});
    by_call.Cancel();
    EXPECT_EQ(called, 1);
    ExpectError(by_call.Wait().status(), ErrorCode::kInvalidArgument, "done");
    for (size_t i = 0; i < 100; i += 2) pending[i].Cancel();
    EXPECT_EQ(batcher.statistics().queued_requests, 50);
    ExpectError(pending[0].Wait().status(), ErrorCode::kCancelled, "cancelled");
  }
  for (size_t i = 1; i < 100; i += 2) EXPECT_TRUE(pending[i].Wait().ok());
  pending[1].Cancel();  // answered long ago: nothing happens
  EXPECT_EQ(batcher.statistics().batch_sequences, 51);
  EXPECT_EQ(batcher.statistics().cancelled, 51);
}

// A model of many layers: a batch of it takes long, a layer does not.
class Long : public ::testing::Test {
 protected:
  Model model_ = MakeModel(testing::ClassifierConfig(120));
  std::vector<int32_t> ids_ = testing::Ids(500, 3);
  Batcher batcher_ = MakeBatcher(model_, {.session = {.max_tokens = 500}, .num_workers = 1});
  int64_t whole_us_ = Measure();

  int64_t Measure() {
    EXPECT_TRUE(batcher_.Submit({.ids = ids_})->Wait().ok());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(batcher_.Submit({.ids = ids_})->Wait().ok());
    return SinceUs(begin);
  }
  // Starts a request, and returns when it runs.
  PendingAnswer Start(int64_t deadline_us = 0) {
    const int64_t batches = batcher_.statistics().batches;
    PendingAnswer pending = *batcher_.Submit({.ids = ids_, .deadline_us = deadline_us});
    while (batcher_.statistics().batches == batches) std::this_thread::yield();
    return pending;
  }
  int64_t UntilIdle() {
    const auto begin = std::chrono::steady_clock::now();
    while (batcher_.statistics().idle_workers == 0) std::this_thread::yield();
    return SinceUs(begin);
  }
};

TEST_F(Long, ARunningRequestThatIsCancelledStops) {
  int64_t most = 0;
  for (int i = 0; i < 5; ++i) {
    PendingAnswer pending = Start();
    pending.Cancel();
    EXPECT_TRUE(pending.done()) << "Cancel answers at once";
    most = std::max(most, UntilIdle());
  }
  RecordProperty("stopped_after_us", static_cast<int>(most));
  EXPECT_LT(most, whole_us_ / 2) << "of a run of " << whole_us_;
  EXPECT_TRUE(batcher_.Submit({.ids = ids_})->Wait().ok());
}

TEST_F(Long, ARunningRequestThatIsTooLateStops) {
  const auto begin = std::chrono::steady_clock::now();
  PendingAnswer pending = Start(whole_us_ / 8 + 1000);
  ExpectError(pending.Wait().status(), ErrorCode::kDeadline, "deadline");
  UntilIdle();
  EXPECT_LT(SinceUs(begin), whole_us_ / 2 + 4000) << "of a run of " << whole_us_;
  // Without anybody who waits, the run itself sees that it is late.
  std::atomic<bool> late{false};
  const auto again = std::chrono::steady_clock::now();
  ASSERT_TRUE(batcher_
                  .Submit({.ids = ids_,
                           .deadline_us = whole_us_ / 8 + 1000,
                           .done =
                               [&](Result<BatchAnswer> answer) {
                                 late = answer.status().code() == ErrorCode::kDeadline;
                                 late.notify_all();
                               }})
                  .ok());
  late.wait(false);
  EXPECT_LT(SinceUs(again), whole_us_ / 2 + 4000) << "of a run of " << whole_us_;
}

TEST_F(Long, OneOfABatchIsCancelledAndTheOthersAreAnswered) {
  const std::vector<int32_t> part = testing::Ids(100, 1);
  const Lone expected = testing::RunAlone(model_, {part}).front();
  std::vector<PendingAnswer> pending;
  {
    const Plug plug(&batcher_);
    for (int i = 0; i < 4; ++i) pending.push_back(*batcher_.Submit(testing::RequestOf(part)));
  }
  while (batcher_.statistics().queued_requests > 0) std::this_thread::yield();
  pending[2].Cancel();
  for (size_t i = 0; i < 4; ++i) {
    const Result<BatchAnswer> answer = pending[i].Wait();
    if (i == 2) {
      ExpectError(answer.status(), ErrorCode::kCancelled, "cancelled");
    } else {
      ASSERT_TRUE(answer.ok());
      EXPECT_TRUE(testing::LoneOf(*answer) == expected);
    }
  }
}

TEST_F(Long, TheDestructorDoesNotWaitForWholeRuns) {
  PendingAnswer running = Start();
  PendingAnswer waiting = *batcher_.Submit({.ids = ids_});
  const auto begin = std::chrono::steady_clock::now();
  { const Batcher gone = std::move(batcher_); }
  EXPECT_LT(SinceUs(begin), whole_us_ / 2) << "of a run of " << whole_us_;
  ExpectError(running.Wait().status(), ErrorCode::kCancelled, "cancelled");
  ExpectError(waiting.Wait().status(), ErrorCode::kCancelled, "cancelled");
}

// Under every share and on several threads, a flag that is set at any moment ends the run with an
// error or not at all, and the Session is as before.
TEST(Session, CancelledAtAnyMoment) {
  const Model model = MakeModel(testing::ClassifierConfig(6));
  const std::vector<int32_t> ids = testing::Ids(180, 2), offsets = {0, 50, 51, 180};
  const TokenBatch batch{.ids = ids, .offsets = offsets};
  int stopped = 0, whole = 0;
  for (const Share share : {Share::kSequences, Share::kRows, Share::kColumns}) {
    for (const int threads : {1, 2, 3}) {
      Result<Session> session = Session::Create(model, {.num_threads = threads,
                                                        .max_tokens = 180,
                                                        .max_sequences = 3,
                                                        .backend = ThreadBackend::kThread,
                                                        .share = share});
      ASSERT_TRUE(session.ok());
      const auto start = std::chrono::steady_clock::now();
      const Lone expected = testing::RunAlone(&*session, batch);
      const std::chrono::microseconds about = std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - start);
      std::atomic<bool> cancel{true};
      ExpectError(session->Run(batch, &cancel).status(), ErrorCode::kCancelled, "cancelled");
      testing::Random random(static_cast<uint64_t>(threads));
      for (int i = 0; i < 40; ++i) {
        cancel = false;
        const int64_t after = random.Below(2 * about.count() + 1);  // half of them too late
        std::thread other([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(after));
          cancel = true;
        });
        const Result<Output> output = session->Run(batch, &cancel);
        ++(output.ok() ? whole : stopped);
        if (!output.ok()) ExpectError(output.status(), ErrorCode::kCancelled, "cancelled");
        other.join();
        ASSERT_TRUE(testing::RunAlone(&*session, batch) == expected);
      }
    }
  }
  EXPECT_GT(stopped, 0);
  EXPECT_GT(whole, 0);
}

TEST(Session, CancelledBetweenEncoderAndDecoderOrIn) {
  const Model model = MakeModel(testing::EncoderDecoderConfig());
  Result<Session> session = Session::Create(model, {.max_tokens = 64});
  const std::vector<int32_t> ids(40, 3), offsets = {0, 40};
  const TokenBatch batch{
      .ids = ids, .offsets = offsets, .decoder_ids = ids, .decoder_offsets = offsets};
  const Lone expected = testing::RunAlone(&*session, batch);
  std::atomic<bool> cancel{true};
  ExpectError(session->Run(batch, &cancel).status(), ErrorCode::kCancelled, "cancelled");
  EXPECT_TRUE(testing::RunAlone(&*session, batch) == expected);
}

}  // namespace
}  // namespace attend
