// An object tells its own Logger, by code and level, what no Status says; without one it is silent.
#include "attend/log.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "attend/attend.h"
#include "attend/attention.h"
#include "attend/batcher.h"
#include "attend/text.h"
#include "engine/batcher_core.h"
#include "tests/child.h"
#include "tests/log_testing.h"
#include "tests/tiny_text_model.h"

namespace attend {
namespace {

using testing::CodesOf;
using testing::EntryOf;
using testing::Has;
using testing::KeepingLogger;
using testing::KeptEntry;

const std::vector<LogCode> kOfASession = {LogCode::kInstructionSet, LogCode::kPrecision,
                                          LogCode::kThreads, LogCode::kMemory};

Model TinyModel(Task task) {
  const Result<Model> model = Model::FromBytes(testing::TinyModelBytes(task));
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return *model;
}

std::string SaveTiny(const testing::TemporaryFolder& folder, Task task) {
  const std::vector<std::byte> bytes = testing::TinyModelBytes(task);
  return folder.Write("tiny.attend", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// As many threads as the test says, all but the first started for each run.
class VaryingExecutor final : public Executor {
 public:
  void Run(int n, void (*task)(void* argument, int index), void* argument) override {
    std::vector<std::thread> threads;
    for (int i = 1; i < n; ++i) threads.emplace_back(task, argument, i);
    task(argument, 0);
    for (std::thread& thread : threads) thread.join();
  }
  int concurrency() const override { return now; }
  int now = 2;
};

void RunOnce(Session* session) {
  const int32_t ids[] = {1, 5, 7, 9}, offsets[] = {0, 4};
  const Result<Output> output = session->Run(TokenBatch{.ids = ids, .offsets = offsets});
  EXPECT_TRUE(output.ok()) << output.status().ToString();
}

TEST(Log, OfALoadedModel) {
  const testing::TemporaryFolder folder;
  const std::string path = SaveTiny(folder, Task::kTokens);
  for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead}) {
    KeepingLogger logger;
    const Result<Model> model = Model::Load(path, {.mode = mode, .logger = &logger});
    ASSERT_TRUE(model.ok());
    const std::vector<KeptEntry> told = logger.Take();
    ASSERT_EQ(CodesOf(told), std::vector{LogCode::kModelLoaded});
    EXPECT_EQ(told[0].level, LogLevel::kInfo);
    EXPECT_TRUE(Has(told[0].message, path)) << told[0].message;
    EXPECT_TRUE(Has(told[0].message, std::to_string(model->info().file_bytes)));
    EXPECT_EQ(Has(told[0].message, "bytes, mapped"), mode == LoadMode::kMap) << told[0].message;
    // What goes wrong is a Status, and nothing else.
    EXPECT_FALSE(Model::Load(path + ".no", {.mode = mode, .logger = &logger}).ok());
    EXPECT_TRUE(logger.Take().empty());
    EXPECT_TRUE(logger.ends_in_nul());
  }
}

TEST(Log, OfAModelInMemory) {
  const std::vector<std::byte> bytes = testing::TinyModelBytes(Task::kTokens);
  KeepingLogger logger;
  ASSERT_TRUE(Model::FromBytes(bytes, {.logger = &logger}).ok());
  std::vector<KeptEntry> told = logger.Take();
  ASSERT_EQ(CodesOf(told), std::vector{LogCode::kModelLoaded});
  EXPECT_EQ(told[0].level, LogLevel::kInfo);
  EXPECT_TRUE(Has(told[0].message, std::to_string(bytes.size()) + " bytes in memory, copied; "))
      << told[0].message;
  EXPECT_TRUE(Has(told[0].message, "for tokens, 1 layers of width 32")) << told[0].message;
  EXPECT_FALSE(Model::FromBytes(std::span(bytes).first(100), {.logger = &logger}).ok());
  EXPECT_TRUE(logger.Take().empty());
  KeepingLogger warnings(LogLevel::kWarning);
  ASSERT_TRUE(Model::FromBytes(bytes, {.logger = &warnings}).ok());
  EXPECT_TRUE(warnings.Take().empty());
  EXPECT_TRUE(logger.ends_in_nul());
}

TEST(Log, OfATokenizer) {
  const testing::TemporaryFolder folder;
  const std::string path = SaveTiny(folder, Task::kTokens);
  const std::string what = "wordpiece tokenizer of 300 tokens";
  for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead}) {
    KeepingLogger logger;
    ASSERT_TRUE(Tokenizer::Load(path, {.mode = mode, .logger = &logger}).ok());
    const std::vector<KeptEntry> told = logger.Take();
    ASSERT_EQ(CodesOf(told), std::vector{LogCode::kModelLoaded});
    EXPECT_EQ(told[0].level, LogLevel::kInfo);
    EXPECT_EQ(told[0].message,
              path + ": " + std::to_string(testing::TinyModelBytes(Task::kTokens).size()) +
                  (mode == LoadMode::kMap ? " bytes, mapped; " : " bytes, read into memory; ") +
                  what);
    EXPECT_FALSE(Tokenizer::Load(path + ".no", {.mode = mode, .logger = &logger}).ok());
    EXPECT_TRUE(logger.Take().empty());
    EXPECT_TRUE(logger.ends_in_nul());
  }
  const Status status = Tokenizer::Load(path, {.mode = static_cast<LoadMode>(2)}).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Has(status.what(), "mode is 2")) << status.ToString();

  const Result<TokenizerSpec> spec =
      ReadTokenizerJson(ATTEND_TEST_DATA "/hf/bert_token_classification/tokenizer.json");
  ASSERT_TRUE(spec.ok());
  const std::vector<std::byte> bytes = SerializeTokenizer(*spec);
  KeepingLogger logger;
  ASSERT_TRUE(Tokenizer::FromBytes(bytes, {.logger = &logger}).ok());
  const std::vector<KeptEntry> told = logger.Take();
  ASSERT_EQ(CodesOf(told), std::vector{LogCode::kModelLoaded});
  EXPECT_EQ(told[0].message, std::to_string(bytes.size()) + " bytes in memory, copied; " + what);
  EXPECT_FALSE(Tokenizer::FromBytes(std::span(bytes).first(20), {.logger = &logger}).ok());
  // The model has told of itself, and its tokenizer is a part of it.
  ASSERT_TRUE(Tokenizer::FromModel(TinyModel(Task::kTokens)).ok());
  EXPECT_TRUE(logger.Take().empty());
}

TEST(Log, OfASession) {
  const Model model = TinyModel(Task::kTokens);
  KeepingLogger logger;
  Result<Session> session = Session::Create(
      model,
      {.num_threads = 0, .max_tokens = 64, .precision = Precision::kInt8, .logger = &logger});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<KeptEntry> told = logger.Take();
  EXPECT_EQ(CodesOf(told), kOfASession);
  for (const KeptEntry& entry : told) EXPECT_EQ(entry.level, LogLevel::kInfo) << entry.message;
  const auto says = [&](LogCode code, const std::string& what) {
    const std::string message = EntryOf(told, code).message;
    EXPECT_TRUE(Has(message, what)) << message << "\nexpected in it: " << what;
  };
  says(LogCode::kInstructionSet, "instruction set " + CurrentIsa());
  says(LogCode::kInstructionSet, LibraryVersions());
  says(LogCode::kPrecision, "int8, as asked for; the file says f32");
  says(LogCode::kThreads, AdviseThreads().reason);
  says(LogCode::kThreads, std::to_string(session->num_threads()) + " thread");
  says(LogCode::kMemory, std::to_string(session->memory_bytes()) + " bytes for 64 tokens");
  says(LogCode::kMemory, std::to_string(session->weight_bytes()) + " of packed weights");
  // Runs that are as usual say nothing.
  for (int i = 0; i < 10; ++i) RunOnce(&*session);
  EXPECT_TRUE(logger.Take().empty());
  EXPECT_TRUE(logger.ends_in_nul());
}

TEST(Log, NoneByDefaultAndOnlyOfItsOwnObject) {
  EXPECT_EQ(LoadOptions().logger, nullptr);
  EXPECT_EQ(SessionOptions().logger, nullptr);
  EXPECT_EQ(AttentionMapOptions().logger, nullptr);
  KeepingLogger logger;
  const Model model = TinyModel(Task::kTokens);
  ASSERT_TRUE(Session::Create(model, {.max_tokens = 64, .logger = &logger}).ok());
  EXPECT_FALSE(logger.Take().empty());
  Result<Session> other = Session::Create(model, {.num_threads = 4000});
  EXPECT_FALSE(other.ok());
  other = Session::Create(model, {.num_threads = 2, .backend = ThreadBackend::kSerial});
  RunOnce(&*other);
  EXPECT_TRUE(logger.Take().empty());
}

TEST(Log, BelowItsLevelNothing) {
  const Model model = TinyModel(Task::kTokens);
  KeepingLogger logger(LogLevel::kWarning);
  ASSERT_TRUE(Session::Create(model, {.num_threads = 1, .logger = &logger}).ok());
  EXPECT_TRUE(logger.Take().empty());
  VaryingExecutor executor;
  executor.now = 1000;
  ASSERT_TRUE(
      Session::Create(
          model, {.num_threads = 1000, .max_tokens = 64, .executor = &executor, .logger = &logger})
          .ok());
  const std::vector<KeptEntry> told = logger.Take();
  ASSERT_EQ(CodesOf(told), std::vector{LogCode::kManyThreads});
  EXPECT_EQ(told[0].level, LogLevel::kWarning);
  EXPECT_TRUE(Has(told[0].message, "1000 threads")) << told[0].message;
}

TEST(Log, AnExecutorThatGivesFewerThreads) {
  const Model model = TinyModel(Task::kTokens);
  KeepingLogger logger(LogLevel::kInfo);
  VaryingExecutor executor;
  Result<Session> session = Session::Create(
      model, {.num_threads = 2, .max_tokens = 64, .executor = &executor, .logger = &logger});
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(EntryOf(logger.Take(), LogCode::kFewThreads).message, "(no such entry)");
  RunOnce(&*session);
  EXPECT_TRUE(logger.Take().empty());
  executor.now = 1;
  for (int i = 0; i < 3; ++i) RunOnce(&*session);  // told once
  std::vector<KeptEntry> told = logger.Take();
  ASSERT_EQ(CodesOf(told), std::vector{LogCode::kFewThreads});
  EXPECT_EQ(told[0].level, LogLevel::kWarning);
  EXPECT_TRUE(Has(told[0].message, "1 of 2 threads")) << told[0].message;
  executor.now = 5;
  for (int i = 0; i < 3; ++i) RunOnce(&*session);
  told = logger.Take();
  ASSERT_EQ(CodesOf(told), std::vector{LogCode::kFewThreads});
  EXPECT_EQ(told[0].level, LogLevel::kInfo);
  EXPECT_TRUE(Has(told[0].message, "all 2 threads")) << told[0].message;
  EXPECT_TRUE(logger.ends_in_nul());
}

TEST(Log, OfPipelinesGeneratorsAndAttentionMaps) {
  const testing::TemporaryFolder folder;
  KeepingLogger logger;
  std::vector<LogCode> all = {LogCode::kModelLoaded};
  all.insert(all.end(), kOfASession.begin(), kOfASession.end());
  const auto ends_with = [&](const char* what) { EXPECT_EQ(CodesOf(logger.Take()), all) << what; };
  const PipelineOptions options = {.session = {.max_tokens = 64, .logger = &logger}};
  ASSERT_TRUE(Tagger::Load(SaveTiny(folder, Task::kTokens), options).ok());
  ends_with("tagger");
  ASSERT_TRUE(Classifier::Load(SaveTiny(folder, Task::kSequence), options).ok());
  ends_with("classifier");
  ASSERT_TRUE(Embedder::Load(SaveTiny(folder, Task::kEmbedding), options).ok());
  ends_with("embedder");
  ASSERT_TRUE(Reranker::Load(SaveTiny(folder, Task::kEmbedding), options).ok());
  ends_with("reranker");
  GeneratorOptions generator;
  generator.session = options.session;
  ASSERT_TRUE(Generator::Load(SaveTiny(folder, Task::kGenerate), generator).ok());
  ends_with("generator");
  ASSERT_TRUE(AttentionMap::Create(TinyModel(Task::kTokens), {.logger = &logger}).ok());
  EXPECT_EQ(CodesOf(logger.Take()), kOfASession);
}

// A Batcher whose only thread is the test's, and room for one request.
Result<Batcher> FullBatcher(const Model& model, Logger* logger) {
  Result<Batcher> batcher = Batcher::Create(model, {.session = {.max_tokens = 64, .logger = logger},
                                                    .num_workers = 2,
                                                    .start_threads = false,
                                                    .max_queued_requests = 1});
  EXPECT_TRUE(batcher.ok()) << batcher.status().ToString();
  return batcher;
}

TEST(Log, OfABatcherAndWhomItRefused) {
  const Model model = TinyModel(Task::kTokens);
  KeepingLogger logger(LogLevel::kDebug);
  Result<Batcher> batcher = FullBatcher(model, &logger);
  std::vector<KeptEntry> told = logger.Take();
  std::vector<LogCode> expected = kOfASession;  // of one Session, not of each worker's
  expected.push_back(LogCode::kBatcher);
  EXPECT_EQ(CodesOf(told), expected);
  const std::string made = EntryOf(told, LogCode::kBatcher).message;
  EXPECT_TRUE(Has(made, "2 workers, as asked for")) << made;
  EXPECT_TRUE(Has(made, std::to_string(batcher->memory_bytes()) + " bytes")) << made;

  const int32_t ids[] = {1, 2, 3};
  ASSERT_TRUE(batcher->Submit({.ids = ids}).ok());
  constexpr int64_t kRefusals = 50;
  const int64_t begin = SteadyMicroseconds();
  for (int64_t i = 0; i < kRefusals; ++i) {
    EXPECT_EQ(batcher->Submit({.ids = ids}).status().code(), ErrorCode::kBusy);
  }
  const int64_t seconds = (SteadyMicroseconds() - begin) / 1'000'000;
  told = logger.Take();
  int64_t each = 0, warnings = 0;
  for (const KeptEntry& entry : told) {
    EXPECT_EQ(entry.code, LogCode::kRefused);
    ++(entry.level == LogLevel::kDebug ? each : warnings);
  }
  EXPECT_EQ(each, kRefusals);
  EXPECT_GE(warnings, 1);
  EXPECT_LE(warnings, seconds + 1);  // at once, and then once a second
}

TEST(Log, OfABatcherAndWhoWasLate) {
  const Model model = TinyModel(Task::kTokens);
  KeepingLogger logger;
  Result<Batcher> batcher = FullBatcher(model, &logger);
  logger.Take();
  const int32_t ids[] = {1, 2, 3};
  Result<PendingAnswer> pending = batcher->Submit({.ids = ids, .deadline_us = 1000});
  ASSERT_TRUE(pending.ok());
  EXPECT_EQ(pending->Wait().status().code(), ErrorCode::kDeadline);
  EXPECT_EQ(batcher->Submit({.ids = ids, .deadline_us = -1}).status().code(), ErrorCode::kDeadline);
  const std::vector<KeptEntry> told = logger.Take();
  ASSERT_GE(told.size(), 1u);
  EXPECT_EQ(told[0].code, LogCode::kExpired);
  EXPECT_EQ(told[0].level, LogLevel::kWarning);
  EXPECT_TRUE(Has(told[0].message, "1 requests passed")) << told[0].message;
}

// In a process whose program has used oneDNN, and limited it, before attend.
TEST(LogChild, OneDnnHasAnotherInstructionSet) {
  if (std::getenv("ATTEND_TEST_DNNL") == nullptr) GTEST_SKIP() << "run by Log.WhenOneDnnIsTaken";
  const auto limit = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "dnnl_set_max_cpu_isa"));
  const auto use = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "dnnl_get_effective_cpu_isa"));
  if (limit == nullptr || use == nullptr) GTEST_SKIP() << "oneDNN is linked statically";
  constexpr int kSse41 = 1;
  ASSERT_EQ(limit(kSse41), 0);
  ASSERT_EQ(use(), kSse41);
  KeepingLogger logger;
  ASSERT_TRUE(Session::Create(TinyModel(Task::kTokens), {.logger = &logger}).ok());
  const std::vector<KeptEntry> told = logger.Take();
  const KeptEntry warning = EntryOf(told, LogCode::kOtherInstructionSet);
  EXPECT_EQ(warning.level, LogLevel::kWarning);
  EXPECT_TRUE(Has(warning.message, "other than " + CurrentIsa())) << warning.message;
}

TEST(Log, WhenOneDnnIsTaken) {
  if (AvailableIsas().size() == 1) GTEST_SKIP() << "this CPU has one instruction set";
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("ATTEND_TEST_DNNL", "1", 1);
    unsetenv("GTEST_OUTPUT");
    execl("/proc/self/exe", "test", "--gtest_filter=LogChild.*", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Nothing is lost between two tellings, and none comes within a second of the last.
TEST(Log, ARateLimitTellsOfAll) {
  RateLimit limit;
  EXPECT_EQ(limit.Count(0, 0), 0);
  EXPECT_EQ(limit.Count(3, 100), 3);
  EXPECT_EQ(limit.Count(1, 200), 0);
  EXPECT_EQ(limit.Count(4, 1'000'099), 0);
  EXPECT_EQ(limit.Count(0, 1'000'100), 5);
  EXPECT_EQ(limit.Count(2, 5'000'000), 2);
}

}  // namespace
}  // namespace attend
