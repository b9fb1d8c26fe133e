// A process may end at any time: with a Batcher in a static, in one that is never destroyed, or in
// main, while requests wait and run. It ends with the code it wanted, and soon.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/batcher_testing.h"
#include "tests/sanitized.h"

namespace attend {
namespace {

constexpr int kCode = 42;

// Requests, some of which run when this returns.
void Load(Batcher* batcher, std::vector<PendingAnswer>* pending) {
  for (int i = 0; i < 200; ++i) {
    const std::vector<int32_t> ids = testing::Ids(100, static_cast<uint64_t>(i));
    BatchRequest request{.ids = ids};
    if (i % 2 == 0) request.done = [](Result<BatchAnswer>) {};
    Result<PendingAnswer> one = batcher->Submit(std::move(request));
    if (one.ok()) pending->push_back(*std::move(one));
  }
  while (batcher->statistics().running_requests == 0) std::this_thread::yield();
}

BatcherOptions Options() {
  return {.session = {.max_tokens = 400}, .num_workers = 2, .max_queued_requests = 1000};
}

// The child's part: its way to end is in ATTEND_TEST_END.
TEST(BatcherExitChild, Ends) {
  const char* const end = std::getenv("ATTEND_TEST_END");
  if (end == nullptr) GTEST_SKIP() << "for the children of BatcherExit only";
  const std::string how = end;
  const Model model = testing::MakeModel(testing::ClassifierConfig(12));
  if (how == "static") {
    // Destroyed in this order's reverse: what waits before what it waits for, and the other way.
    static std::vector<PendingAnswer> first;
    static Batcher batcher = testing::MakeBatcher(model, Options());
    static std::vector<PendingAnswer> last;
    Load(&batcher, &first);
    last.push_back(std::move(first.back()));
    first.pop_back();
    std::exit(kCode);
  }
  if (how == "leaked") {
    auto* const batcher = new Batcher(testing::MakeBatcher(model, Options()));
    auto* const pending = new std::vector<PendingAnswer>;
    Load(batcher, pending);
    std::exit(kCode);
  }
  if (how == "quick") {
    Batcher batcher = testing::MakeBatcher(model, Options());
    std::vector<PendingAnswer> pending;
    Load(&batcher, &pending);
    std::quick_exit(kCode);
  }
  if (how == "thread") {  // main ends while another thread waits for an answer
    static Batcher batcher = testing::MakeBatcher(model, Options());
    auto* const pending = new std::vector<PendingAnswer>;
    Load(&batcher, pending);
    std::thread([pending] {
      for (PendingAnswer& one : *pending) one.WaitFor(-1);
    }).detach();
    std::exit(kCode);
  }
  FAIL() << "no such end: " << how;
}

class BatcherExit : public ::testing::TestWithParam<const char*> {};

TEST_P(BatcherExit, IsClean) {
  const int rounds = ATTEND_TEST_SANITIZED ? 3 : 25;
  for (int round = 0; round < rounds; ++round) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      setenv("ATTEND_TEST_END", GetParam(), 1);
      unsetenv("GTEST_OUTPUT");
      std::freopen("/dev/null", "w", stdout);
      execl("/proc/self/exe", "test", "--gtest_filter=BatcherExitChild.*", nullptr);
      _exit(127);
    }
    alarm(60);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    alarm(0);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << ", round " << round;
    ASSERT_EQ(WEXITSTATUS(status), kCode) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, BatcherExit,
                         ::testing::Values("static", "leaked", "quick", "thread"),
                         [](const auto& way) { return std::string(way.param); });

}  // namespace
}  // namespace attend
