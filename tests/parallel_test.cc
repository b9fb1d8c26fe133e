// Threads: every backend calls every index once and at the same time, barriers hold with more
// threads than CPUs, the host's OpenMP settings stay, and a child after fork still runs.
#include "engine/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "attend/attend.h"
#include "tests/random_model.h"

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

namespace attend {
namespace {

// A host's threads: as many as asked for, counted.
class CountingExecutor final : public Executor {
 public:
  explicit CountingExecutor(int concurrency) : concurrency_(concurrency) {}
  void Run(int n, void (*task)(void* argument, int index), void* argument) override {
    ++runs;
    tasks += n;
    std::vector<std::thread> threads;
    for (int i = 1; i < n; ++i) threads.emplace_back(task, argument, i);
    task(argument, 0);
    for (std::thread& thread : threads) thread.join();
  }
  int concurrency() const override { return concurrency_; }
  int runs = 0, tasks = 0;

 private:
  int concurrency_;
};

// An executor that has one thread, the caller's.
class CallerExecutor final : public Executor {
 public:
  void Run(int n, void (*task)(void* argument, int index), void* argument) override {
    for (int i = 0; i < n; ++i) task(argument, i);
  }
  int concurrency() const override { return 1; }
};

struct Together {
  Barrier barrier;
  std::vector<std::atomic<int>> calls = std::vector<std::atomic<int>>(16);
  std::atomic<int> inside{0}, most{0};
  std::thread::id first;
};

// Passes only if all `count` tasks are inside at once; a backend that runs them one after another
// would stand still at the barrier.
void ExpectTogether(Threads& threads, int count) {
  Together together;
  together.barrier.Reset(count);
  const auto task = [](void* argument, int index) {
    Together& all = *static_cast<Together*>(argument);
    ++all.calls[static_cast<size_t>(index)];
    ++all.inside;
    all.barrier.Wait();
    all.most = std::max(all.most.load(), all.inside.load());
    if (index == 0) all.first = std::this_thread::get_id();
    all.barrier.Wait();
    --all.inside;
  };
  threads.Run(count, task, &together);
  EXPECT_EQ(together.most, count);
  EXPECT_EQ(together.inside, 0) << "Run returned before its tasks";
  EXPECT_EQ(together.first, std::this_thread::get_id()) << "index 0 is not the caller's";
  for (int i = 0; i < 16; ++i) EXPECT_EQ(together.calls[static_cast<size_t>(i)], i < count) << i;
}

std::unique_ptr<Threads> MakeThreads(ThreadBackend backend, int size, Executor* executor) {
  Result<std::unique_ptr<Threads>> threads = Threads::Create(backend, size, executor);
  if (!threads.ok()) return nullptr;
  return std::move(*threads);
}

bool HasOpenMp() { return MakeThreads(ThreadBackend::kOpenMp, 1, nullptr) != nullptr; }

void ExpectEveryCount(ThreadBackend backend, Executor* executor = nullptr) {
  for (const int size : {1, 2, 3, 7}) {
    const std::unique_ptr<Threads> threads = MakeThreads(backend, size, executor);
    ASSERT_NE(threads, nullptr);
    ASSERT_EQ(threads->Available(), size);
    for (int round = 0; round < 20; ++round) {
      for (int count = 1; count <= size; ++count) ExpectTogether(*threads, count);
    }
  }
}

TEST(Threads, OpenMp) {
  if (!HasOpenMp()) GTEST_SKIP() << "built without OpenMP";
  if (kThreadSanitizer) GTEST_SKIP() << "libgomp is not instrumented for the thread sanitizer";
  ExpectEveryCount(ThreadBackend::kOpenMp);
}

TEST(Threads, StdThread) { ExpectEveryCount(ThreadBackend::kThread); }

TEST(Threads, Serial) {
  const std::unique_ptr<Threads> threads = MakeThreads(ThreadBackend::kSerial, 5, nullptr);
  ASSERT_NE(threads, nullptr);
  EXPECT_EQ(threads->Available(), 1);
  ExpectTogether(*threads, 1);
}

TEST(Threads, AnExecutorOfTheHost) {
  CountingExecutor executor(100);
  ExpectEveryCount(ThreadBackend::kDefault, &executor);
  EXPECT_EQ(executor.runs, 20 * (0 + 1 + 2 + 6));  // one index needs no executor
}

TEST(Threads, AnExecutorIsNotAskedForMoreThanItHas) {
  CountingExecutor executor(2);
  EXPECT_EQ(MakeThreads(ThreadBackend::kDefault, 8, &executor)->Available(), 2);
  CallerExecutor caller;
  EXPECT_EQ(MakeThreads(ThreadBackend::kDefault, 8, &caller)->Available(), 1);
}

TEST(Threads, SizesOutOfRange) {
  for (const int size : {-1, 0, 1025}) {
    const auto threads = Threads::Create(ThreadBackend::kThread, size, nullptr);
    ASSERT_FALSE(threads.ok());
    EXPECT_EQ(threads.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(threads.status().ToString().find(std::to_string(size)), std::string::npos);
  }
}

// No thread may leave a round before all have come to it.
TEST(Barrier, TenThousandRoundsWithMoreThreadsThanCpus) {
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  for (const int count : {1, 2, 3, 4, 5, 6, 7, 8, cpus + 8}) {
    const int rounds = kThreadSanitizer ? 1000 : 10000;
    Barrier barrier;
    barrier.Reset(count);
    std::vector<int> round_of(static_cast<size_t>(count) * 16);  // a cache line each, no atomics:
    std::atomic<int> wrong{0};                                   // the barrier orders them
    const auto work = [&](int index) {
      for (int round = 1; round <= rounds; ++round) {
        round_of[static_cast<size_t>(index) * 16] = round;
        barrier.Wait();
        const int other = (index + 1 + round) % count;
        if (round_of[static_cast<size_t>(other) * 16] != round) ++wrong;
        barrier.Wait();
      }
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < count; ++i) threads.emplace_back(work, i);
    work(0);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << count << " threads";
    EXPECT_EQ(barrier.waits(), count == 1 ? 0 : 2 * rounds);
  }
}

TEST(OneOpenMpThread, PutsTheSettingBack) {
  const int before = omp_get_max_threads();
  for (const int setting : {1, 2, 5}) {
    omp_set_num_threads(setting);
    {
      const OneOpenMpThread outer;
      EXPECT_EQ(omp_get_max_threads(), 1);
      const OneOpenMpThread inner;
      EXPECT_EQ(omp_get_max_threads(), 1);
    }
    EXPECT_EQ(omp_get_max_threads(), setting);
  }
  omp_set_num_threads(before);
}

// A small model and a batch that every share has work in.
struct Fixture {
  Model model;
  std::vector<int32_t> ids, offsets{0, 1, 40, 60};
  Fixture() : model(*testing::RandomModel(testing::EncoderConfig(64, 2, 4, 128), 9)) {
    for (int i = 0; i < 60; ++i) ids.push_back(i * 13 % 1000);
  }
  Result<Session> Create(ThreadBackend backend, Executor* executor = nullptr) const {
    return Session::Create(model, {.num_threads = 2,
                                   .max_tokens = 64,
                                   .max_sequences = 4,
                                   .executor = executor,
                                   .backend = backend});
  }
  std::vector<float> Run(Session& session) const {
    Result<Output> output = session.Run(TokenBatch{.ids = ids, .offsets = offsets});
    if (!output.ok()) return {};
    return {output->hidden.begin(), output->hidden.end()};
  }
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct OpenMpSettings {
  int max_threads = omp_get_max_threads();
  int dynamic = omp_get_dynamic();
  int levels = omp_get_max_active_levels();
  omp_sched_t schedule;
  int chunk;
  OpenMpSettings() { omp_get_schedule(&schedule, &chunk); }
  bool operator==(const OpenMpSettings&) const = default;
};

TEST(Session, LeavesTheHostsOpenMpSettingsAlone) {
  const OpenMpSettings original;
  omp_set_num_threads(3);
  omp_set_dynamic(1);
  omp_set_schedule(omp_sched_guided, 7);
  const OpenMpSettings before;
  ASSERT_FALSE(before == original);
  const Fixture setup;
  for (const ThreadBackend backend :
       {ThreadBackend::kDefault, ThreadBackend::kThread, ThreadBackend::kSerial}) {
    Result<Session> session = setup.Create(backend);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    EXPECT_TRUE(OpenMpSettings() == before);
    EXPECT_FALSE(setup.Run(*session).empty());
    EXPECT_TRUE(OpenMpSettings() == before);
  }
  EXPECT_TRUE(OpenMpSettings() == before);
  omp_set_num_threads(original.max_threads);
  omp_set_dynamic(original.dynamic);
  omp_set_schedule(original.schedule, original.chunk);
}

TEST(Session, RunsWithinAParallelRegionOfTheHost) {
  if (kThreadSanitizer) GTEST_SKIP() << "libgomp is not instrumented for the thread sanitizer";
  const Fixture setup;
  std::vector<Session> sessions;
  for (int i = 0; i < 2; ++i) {
    Result<Session> session = setup.Create(ThreadBackend::kDefault);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    sessions.push_back(std::move(*session));
  }
  const std::vector<float> expected = setup.Run(sessions[0]);
  std::atomic<int> same{0};
#pragma omp parallel num_threads(2)
  if (SameBits(setup.Run(sessions[static_cast<size_t>(omp_get_thread_num())]), expected)) ++same;
  EXPECT_EQ(same, 2);
}

int ThreadsOfProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// Runs `check` in a child made by fork and returns its exit code; 255 if it was killed, as it is
// when it hangs.
template <typename Check>
int InChild(unsigned seconds, const Check& check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    _exit(check());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(Session, StartsNoThreadWhenGivenAnExecutor) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer has a thread of its own";
  const Fixture setup;
  // In a child, where no earlier test has left threads asleep.
  EXPECT_EQ(InChild(20,
                    [&] {
                      CallerExecutor executor;
                      if (ThreadsOfProcess() != 1) return 1;
                      Result<Session> session = setup.Create(ThreadBackend::kDefault, &executor);
                      if (!session.ok()) return 2;
                      for (int i = 0; i < 5; ++i) {
                        if (setup.Run(*session).empty()) return 3;
                      }
                      return ThreadsOfProcess() == 1 ? 0 : 4;
                    }),
            0);
  CountingExecutor counting(2);
  Result<Session> session = setup.Create(ThreadBackend::kDefault, &counting);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  EXPECT_FALSE(setup.Run(*session).empty());
  EXPECT_EQ(counting.runs, 1);
  EXPECT_EQ(counting.tasks, 2);
}

// The parent's threads are not in the child: it must neither wait for them nor for their barrier,
// while it runs and when it destroys the Session.
TEST(Session, RunsInAForkedChild) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer ends a forked child with threads";
  const Fixture setup;
  for (const ThreadBackend backend :
       {ThreadBackend::kDefault, ThreadBackend::kThread, ThreadBackend::kSerial}) {
    Result<Session> session = setup.Create(backend);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    const std::vector<float> expected = setup.Run(*session);
    SCOPED_TRACE(session->Describe().substr(0, 60));
    EXPECT_EQ(InChild(1,
                      [&] {
                        for (int i = 0; i < 3; ++i) {
                          if (!SameBits(setup.Run(*session), expected)) return 1;
                        }
                        return 0;
                      }),
              0);
    EXPECT_EQ(InChild(1,
                      [&] {
                        const Session gone = std::move(*session);
                        return 0;
                      }),
              0);
    EXPECT_TRUE(SameBits(setup.Run(*session), expected)) << "the parent's own session";
  }
}

}  // namespace
}  // namespace attend
