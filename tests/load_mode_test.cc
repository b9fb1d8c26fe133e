// A model that was read does not care what becomes of its file; one that is mapped does.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/child.h"
#include "tests/random_model.h"
#include "tests/sanitized.h"

namespace attend::testing {
namespace {

std::string WriteModel(const TemporaryFolder& folder) {
  const Result<std::vector<std::byte>> bytes = RandomModelBytes(EncoderConfig(32, 2, 2, 64), 7);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return folder.Write("model.attend",
                      {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

// What becomes of a process that loads a model so, has its file changed by `change`, and runs it:
// the exit code (0 if the outputs are those from before), or minus the signal that ended it.
template <typename Change>
int RunInChild(const std::string& path, LoadMode mode, const Change& change) {
  const pid_t child = fork();
  if (child == 0) {
    const int32_t ids[] = {1, 500, 999}, offsets[] = {0, 3};
    const TokenBatch batch{.ids = ids, .offsets = offsets};
    const Result<Model> model = Model::Load(path, {.mode = mode});
    if (!model.ok()) _exit(1);
    Result<Session> session = Session::Create(*model, {.max_tokens = 64});
    if (!session.ok()) _exit(2);
    const Result<Output> before = session->Run(batch);
    if (!before.ok()) _exit(3);
    const std::vector<float> want(before->hidden.begin(), before->hidden.end());
    if (!change()) _exit(6);
    const Result<Output> after = session->Run(batch);
    // And one that has to pack the weights anew, from what was loaded.
    Result<Session> second = Session::Create(*model, {.max_tokens = 64});
    if (!after.ok() || !second.ok()) _exit(4);
    const bool same = std::equal(want.begin(), want.end(), after->hidden.begin());
    _exit(same ? 0 : 5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(LoadMode, AModelThatWasReadSurvivesTheTruncationOfItsFile) {
  const TemporaryFolder folder;
  const std::string path = WriteModel(folder);
  EXPECT_EQ(RunInChild(path, LoadMode::kRead, [&] { return truncate(path.c_str(), 0) == 0; }), 0);
}

TEST(LoadMode, AModelThatIsMappedEndsTheProcess) {
  if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "the sanitizer takes the signal";
  const TemporaryFolder folder;
  const std::string path = WriteModel(folder);
  EXPECT_EQ(RunInChild(path, LoadMode::kMap, [&] { return truncate(path.c_str(), 0) == 0; }),
            -SIGBUS);
}

TEST(LoadMode, RenamingAnotherFileOverItIsSafeInBoth) {
  for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead}) {
    const TemporaryFolder folder;
    const std::string path = WriteModel(folder);
    const std::string other = folder.Write("other", "not a model");
    const auto replace = [&] { return rename(other.c_str(), path.c_str()) == 0; };
    EXPECT_EQ(RunInChild(path, mode, replace), 0);
  }
}

TEST(LoadMode, OthersAreRefused) {
  const Result<Model> model = Model::Load("x.attend", {.mode = static_cast<LoadMode>(2)});
  EXPECT_EQ(model.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(model.status().where(), "LoadOptions");
}

}  // namespace
}  // namespace attend::testing
