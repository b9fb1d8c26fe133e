// A child after fork has none of its parent's threads: Sessions from before go on, on one thread,
// and new ones can be made, with the same bits.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/batcher.h"
#include "engine/runner.h"
#include "tests/random_model.h"

namespace attend {
namespace {

std::vector<float> Hidden(Session& session) {
  const std::vector<int32_t> ids(40, 5), offsets = {0, 7, 40};
  const Result<Output> output = session.Run(TokenBatch{.ids = ids, .offsets = offsets});
  if (!output.ok()) return {};
  return {output->hidden.begin(), output->hidden.end()};
}

// By columns, threads wait for each other most often.
Result<Session> MakeSession(const Model& model, ThreadBackend backend) {
  return Session::Create(
      model, {.num_threads = 2, .max_tokens = 64, .backend = backend, .share = Share::kColumns});
}

class Fork : public ::testing::TestWithParam<ThreadBackend> {};

TEST_P(Fork, SessionsOldAndNewWorkInTheChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer starts no thread after a fork";
#endif
  const Result<Model> model = testing::RandomModel(testing::EncoderConfig(64, 2, 4, 128), 1);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = MakeSession(*model, GetParam());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<float> expected = Hidden(*session);
  ASSERT_EQ(expected.size(), 40u * 64);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // a thread that waits for one that never comes
    if (Hidden(*session) != expected) _exit(1);
    Result<Session> fresh = MakeSession(*model, GetParam());
    if (!fresh.ok()) _exit(2);
    if (Hidden(*fresh) != expected) _exit(3);
    *session = std::move(*fresh);  // the old one ends without its threads
    if (Hidden(*session) != expected) _exit(4);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Hidden(*session), expected) << "in the parent";
}

// What the child of a busy parent does. 0, or which step went wrong.
int ChildOfABusyParent(const Model& model, Session* session, Batcher* batcher,
                       std::vector<PendingAnswer>* pending, const std::vector<float>& expected) {
  const std::vector<int32_t> ids = {1, 2, 3};
  if (batcher->Submit({.ids = ids}).status().code() != ErrorCode::kUnsupported) return 1;
  if (batcher->Drain() || batcher->statistics().answered != 0) return 2;
  batcher->Close();
  for (PendingAnswer& one : *pending) {
    one.Cancel();
    if (one.done() || one.WaitFor(-1)) return 3;
    if (one.Wait().status().code() != ErrorCode::kUnsupported) return 4;
  }
  if (Hidden(*session) != expected) return 5;  // nobody else was running it
  Result<Session> fresh = MakeSession(model, ThreadBackend::kDefault);
  if (!fresh.ok() || Hidden(*fresh) != expected) return 6;
  Result<Batcher> own = Batcher::Create(model, {.session = {.max_tokens = 64}, .num_workers = 1});
  if (!own.ok()) return 7;
  const Result<PendingAnswer> none = own->Submit({.ids = {}});
  if (none.status().code() != ErrorCode::kInvalidArgument) return 8;
  if (!own->Submit({.ids = ids})->Wait().ok()) return 9;
  pending->clear();
  { const Batcher gone = std::move(*batcher); }  // without the threads it was made with
  return 0;
}

TEST(ForkBatcher, AThousandTimesFromABusyParent) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer starts no thread after a fork";
#endif
  const Result<Model> model = testing::RandomModel(testing::EncoderConfig(64, 2, 4, 128), 1);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = MakeSession(*model, ThreadBackend::kDefault);
  const std::vector<float> expected = Hidden(*session);
  Result<Batcher> batcher =
      Batcher::Create(*model, {.session = {.max_tokens = 128}, .num_workers = 2});
  ASSERT_TRUE(batcher.ok()) << batcher.status().ToString();
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t) {
    busy.emplace_back([&] {
      const std::vector<int32_t> ids(20, 7);
      while (!stop) static_cast<void>(batcher->Submit({.ids = ids})->Wait());
    });
  }
  busy.emplace_back([&] {
    Result<Session> other = MakeSession(*model, ThreadBackend::kDefault);
    while (!stop) Hidden(*other);
  });
  const int forks = 1000;
  std::vector<int64_t> us;
  for (int i = 0; i < forks; ++i) {
    std::vector<PendingAnswer> pending;
    for (int k = 0; k < 3; ++k) {
      const std::vector<int32_t> ids(100, 3);
      pending.push_back(*batcher->Submit({.ids = ids, .deadline_us = 1'000'000}));
    }
    const int64_t begin = SteadyMicroseconds();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      _exit(ChildOfABusyParent(*model, &*session, &*batcher, &pending, expected));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    us.push_back(SteadyMicroseconds() - begin);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << ", fork " << i;
    ASSERT_EQ(WEXITSTATUS(status), 0) << "fork " << i;
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  std::sort(us.begin(), us.end());
  std::printf("a child took %.1f ms in the median, %.1f at most\n",
              static_cast<double>(us[us.size() / 2]) * 1e-3, static_cast<double>(us.back()) * 1e-3);
  // All of them together with what the parent does meanwhile; a machine that is busy with other
  // things may stretch a few.
  EXPECT_LT(us[us.size() * 98 / 100], 100000);
  EXPECT_EQ(Hidden(*session), expected) << "in the parent";
}

INSTANTIATE_TEST_SUITE_P(Backends, Fork,
                         ::testing::Values(ThreadBackend::kDefault, ThreadBackend::kThread,
                                           ThreadBackend::kSerial));

}  // namespace
}  // namespace attend
