// A child after fork has none of its parent's threads: Sessions from before go on, on one thread,
// and new ones can be made, with the same bits.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "attend/attend.h"
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

INSTANTIATE_TEST_SUITE_P(Backends, Fork,
                         ::testing::Values(ThreadBackend::kDefault, ThreadBackend::kThread,
                                           ThreadBackend::kSerial));

}  // namespace
}  // namespace attend
