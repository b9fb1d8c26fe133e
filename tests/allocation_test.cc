// Memory: a run allocates nothing and compiles nothing, a Session holds what it says it holds, and
// loading needs little more than what stays. Allocations are counted by this program's own malloc,
// which stands in front of the C library's and asks who called.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "attend/trace.h"
#include "engine/parallel.h"
#include "tests/family_batch.h"
#include "tests/family_configs.h"
#include "tests/process.h"
#include "tests/random_model.h"
#include "tests/sanitized.h"

#if !ATTEND_TEST_SANITIZED
namespace {

// Whose code asked for memory, by the place of the caller's code.
enum Owner { kOwn, kDnnl, kOpenMp, kOthers, kOwners };
std::atomic<bool> counting{false};
std::atomic<int64_t> counts[kOwners];

struct Range {
  uintptr_t begin = 0, end = 0;
  bool Has(void* address) const {
    const uintptr_t at = reinterpret_cast<uintptr_t>(address);
    return at >= begin && at < end;
  }
};

Range own, dnnl, openmp;  // executable mappings, found before counting begins

// Operator new and the C++ library sit between the caller and malloc; so the nearest frame that is
// this program's, oneDNN's or OpenMP's decides. Frame pointers may be missing: the stack is
// searched for return addresses instead, nearest first, which errs towards finding an owner.
Owner OwnerOf(void* caller, void** stack) {
  for (int i = -1; i < 64; ++i) {
    void* const address = i < 0 ? caller : stack[i];
    if (dnnl.Has(address)) return kDnnl;
    if (openmp.Has(address)) return kOpenMp;
    if (own.Has(address)) return kOwn;
  }
  return kOthers;
}

void Count(void* caller, void* frame) {
  if (!counting.load(std::memory_order_relaxed)) return;
  ++counts[OwnerOf(caller, static_cast<void**>(frame))];
}

}  // namespace

// glibc's own entries: a wrapper needs no dlsym, which allocates itself.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

#define ATTEND_TEST_COUNT() Count(__builtin_return_address(0), __builtin_frame_address(0))
__attribute__((visibility("default"), noinline)) void* malloc(size_t size) {
  ATTEND_TEST_COUNT();
  return __libc_malloc(size);
}
__attribute__((visibility("default"), noinline)) void* calloc(size_t count, size_t size) {
  ATTEND_TEST_COUNT();
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"), noinline)) void* realloc(void* memory, size_t size) {
  ATTEND_TEST_COUNT();
  return __libc_realloc(memory, size);
}
__attribute__((visibility("default"), noinline)) void* aligned_alloc(size_t alignment,
                                                                     size_t size) {
  ATTEND_TEST_COUNT();
  return __libc_memalign(alignment, size);
}
__attribute__((visibility("default"), noinline)) int posix_memalign(void** out, size_t alignment,
                                                                    size_t size) {
  ATTEND_TEST_COUNT();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif  // !ATTEND_TEST_SANITIZED

namespace attend {
namespace {

struct Maps {
  int64_t anonymous_code = 0;  // bytes of executable mappings without a file: compiled kernels
  int64_t code_mappings = 0;
};

Maps ReadMaps() {
  Maps maps;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    unsigned long long begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, rights) != 3) continue;
    if (rights[2] != 'x') continue;
    if (line.find('/') != std::string::npos || line.find('[') != std::string::npos) continue;
    maps.anonymous_code += static_cast<int64_t>(end - begin);
    ++maps.code_mappings;
  }
  return maps;
}

#if !ATTEND_TEST_SANITIZED
struct Batch {
  std::vector<int32_t> ids, offsets{0};
  TokenBatch view() const { return {.ids = ids, .offsets = offsets}; }
};

std::vector<Batch> RandomBatches(int count, size_t max_tokens) {
  std::mt19937 random(3);
  std::vector<Batch> batches(static_cast<size_t>(count));
  for (Batch& batch : batches) {
    const size_t sequences = 1 + random() % 8;
    for (size_t b = 0; b < sequences; ++b) {
      const size_t length = 1 + random() % (max_tokens / sequences);
      for (size_t i = 0; i < length; ++i)
        batch.ids.push_back(static_cast<int32_t>(random() % 1000));
      batch.offsets.push_back(static_cast<int32_t>(batch.ids.size()));
    }
  }
  return batches;
}

ModelConfig Config() {
  ModelConfig config = testing::EncoderConfig(192, 3, 6, 768);
  config.task = Task::kEmbedding;
  config.pooling = Pooling::kMean;
  config.normalize = true;
  return config;
}

// The executable mapping of the file whose name has `part`; of this program for "".
Range CodeOf(const std::string& part) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    unsigned long long begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, rights) != 3) continue;
    const std::string& wanted = part.empty() ? program : part;
    if (rights[2] == 'x' && line.find(wanted) != std::string::npos) return {begin, end};
  }
  return {};
}
#endif

// The bytes this process has asked for: small blocks, large ones, and mappings of its own.
int64_t MappedBytes() {
  std::ifstream file("/proc/self/maps");
  int64_t bytes = 0;
  for (std::string line; std::getline(file, line);) {
    unsigned long long begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, rights) != 3) continue;
    if (std::strcmp(rights, "rw-p") != 0) continue;
    if (line.find('/') != std::string::npos || line.find('[') != std::string::npos) continue;
    bytes += static_cast<int64_t>(end - begin);
  }
  return bytes;
}

int64_t HeapBytes() { return static_cast<int64_t>(mallinfo2().uordblks); }

#if !ATTEND_TEST_SANITIZED
// Whether the counter sees what is there to be seen; it must before it is trusted.
bool FindCounter() {
  own = CodeOf("");
  dnnl = CodeOf("/libdnnl.so");
  openmp = CodeOf("/libgomp.so");
  EXPECT_NE(own.begin, 0u);
  for (std::atomic<int64_t>& count : counts) count = 0;
  counting = true;
  std::vector<int>* volatile seen = new std::vector<int>(100);
  counting = false;
  delete seen;
  EXPECT_EQ(counts[kOwn].exchange(0), 2);
  return dnnl.begin != 0;
}

// Runs all batches under every share, on one and two threads, and counts. `options` has the rest.
template <typename BatchType, typename Run>
void ExpectNoAllocations(const Model& model, const std::vector<BatchType>& batches, const Run& run,
                         SessionOptions options = {}) {
  for (const int threads : {1, 2}) {
    for (const Share share : {Share::kAuto, Share::kSequences, Share::kRows, Share::kColumns}) {
      SCOPED_TRACE("threads " + std::to_string(threads) + ", share " +
                   std::to_string(static_cast<int>(share)));
      options.num_threads = threads;
      options.max_tokens = 512;
      options.share = share;
      Result<Session> session = Session::Create(model, options);
      ASSERT_TRUE(session.ok()) << session.status().ToString();
      for (size_t i = 0; i < 5; ++i) ASSERT_TRUE(run(batches[i], &*session));
      const Maps before = ReadMaps();
      for (std::atomic<int64_t>& count : counts) count = 0;
      counting = true;
      int64_t failed = 0;
      for (const BatchType& batch : batches) failed += run(batch, &*session) ? 0 : 1;
      counting = false;
      const Maps after = ReadMaps();
      EXPECT_EQ(failed, 0);
      std::printf(
          "threads %d, share %d, %zu runs: attend %lld, oneDNN %lld, OpenMP %lld, "
          "others %lld allocations\n",
          threads, static_cast<int>(share), batches.size(), static_cast<long long>(counts[kOwn]),
          static_cast<long long>(counts[kDnnl]), static_cast<long long>(counts[kOpenMp]),
          static_cast<long long>(counts[kOthers]));
      EXPECT_EQ(counts[kOwn], 0);
      EXPECT_EQ(counts[kOpenMp], 0);
      EXPECT_EQ(counts[kOthers], 0);
      const bool own_gemm = session->Describe().find("brg:") == std::string::npos;
      if (own_gemm) {
        EXPECT_EQ(counts[kDnnl], 0) << "the linear layers are attend's own here";
      } else {
        // oneDNN's execute makes an argument table and a context, about 3 allocations a call; a run
        // here is a few hundred calls.
        EXPECT_GT(counts[kDnnl], 0) << "oneDNN was not seen: the counter is blind";
        EXPECT_LE(counts[kDnnl], static_cast<int64_t>(batches.size()) * 5000);
      }
      EXPECT_EQ(after.anonymous_code, before.anonymous_code) << "a kernel was compiled in Run";
      EXPECT_EQ(after.code_mappings, before.code_mappings);
    }
  }
}
#endif

TEST(Allocation, ARunAllocatesAndCompilesNothing) {
#if ATTEND_TEST_SANITIZED
  GTEST_SKIP() << "a sanitizer has its own malloc, which this test would replace";
#else
  if (!FindCounter()) GTEST_SKIP() << "oneDNN is linked statically: it cannot be told apart";
  const Result<Model> model = testing::RandomModel(Config(), 2);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ExpectNoAllocations(*model, RandomBatches(200, 512), [](const Batch& batch, Session* session) {
    return session->Run(batch.view()).ok();
  });
#endif
}

#if !ATTEND_TEST_SANITIZED
// Counts what it is told, and allocates nothing itself.
class CountingLogger final : public Logger {
 public:
  void Log(const LogEntry& entry) override { told += entry.code == LogCode::kFewThreads ? 1 : 0; }
  int told = 0;
};

// Two threads, and one, in turn.
class MoodyExecutor final : public Executor {
 public:
  void Run(int n, void (*task)(void* argument, int index), void* argument) override {
    threads_->Run(n, task, argument);
  }
  int concurrency() const override { return 1 + ++asked_ % 2; }

 private:
  std::unique_ptr<Threads> threads_ = *Threads::Create(ThreadBackend::kThread, 2, nullptr);
  mutable int asked_ = 0;
};
#endif

TEST(Allocation, NorDoesOneThatIsWatched) {
#if ATTEND_TEST_SANITIZED
  GTEST_SKIP() << "a sanitizer has its own malloc, which this test would replace";
#else
  if (!FindCounter()) GTEST_SKIP() << "oneDNN is linked statically: it cannot be told apart";
  const Result<Model> model = testing::RandomModel(Config(), 2);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Trace> trace = Trace::Create(100'000);
  ASSERT_TRUE(trace.ok());
  CountingLogger logger;
  MoodyExecutor executor;
  ExpectNoAllocations(
      *model, RandomBatches(50, 512),
      [](const Batch& batch, Session* session) {
        const Result<Output> output = session->Run(batch.view());
        return output.ok() && output->telemetry->work.linear_ns > 0;
      },
      {.executor = &executor, .trace = &*trace, .logger = &logger, .telemetry = true});
  EXPECT_GT(trace->num_events(), 10'000);
  EXPECT_GT(logger.told, 100);
#endif
}

TEST(Allocation, NorDoesOneOfTheFamily) {
#if ATTEND_TEST_SANITIZED
  GTEST_SKIP() << "a sanitizer has its own malloc, which this test would replace";
#else
  if (!FindCounter()) GTEST_SKIP() << "oneDNN is linked statically: it cannot be told apart";
  testing::FamilyConfigs configs(41);
  testing::Random random(3);
  int graphs = 0, vectors = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    ModelConfig config = configs.Next();
    config.num_layers = 2;
    config.edges |= i % 3 == 0;
    constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kBf16, Precision::kInt8};
    config.precision = kPrecisions[i / 3 % 3];
    graphs += config.edges ? 1 : 0;
    vectors += config.vocab_size == 0 ? 1 : 0;
    SCOPED_TRACE(testing::Describe(config));
    const Result<Model> model = testing::RandomModel(config, i);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    std::vector<testing::FamilyBatch> batches;
    for (int b = 0; b < 20; ++b) {
      testing::FamilyBatch& batch = batches.emplace_back(config);
      for (int64_t n = 1 + random.Below(6); n > 0; --n) {
        batch.Add(testing::RandomSequence(config, 1 + random.Below(80), random.Next()));
      }
    }
    ExpectNoAllocations(*model, batches, [](const testing::FamilyBatch& batch, Session* session) {
      return batch.Run(session).ok();
    });
  }
  EXPECT_GE(graphs, 4);
  EXPECT_GE(vectors, 3);
#endif
}

TEST(Memory, ASessionHoldsWhatItSays) {
  if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "a sanitizer's memory is not the program's";
  const Result<Model> model = testing::RandomModel(testing::EncoderConfig(384, 6, 12, 1536), 2);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto used = [] { return HeapBytes() + MappedBytes(); };
  const auto create = [&](int threads) {
    return Session::Create(
        *model, {.num_threads = threads, .max_tokens = 8192, .backend = ThreadBackend::kSerial});
  };
  malloc_trim(0);
  const Maps maps_before = ReadMaps();
  const int64_t heap_before = HeapBytes(), before = used();
  Result<Session> first = create(1);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  const int64_t with_weights = used() - before, heap_first = HeapBytes() - heap_before;
  const Maps maps_after = ReadMaps();
  const int64_t own_bytes = static_cast<int64_t>(first->memory_bytes());
  const int64_t weight_bytes = static_cast<int64_t>(first->weight_bytes());
  std::printf(
      "first Session: memory_bytes %lld, weight_bytes %lld, measured %lld (heap %lld), "
      "compiled code %lld bytes in %lld mappings\n",
      static_cast<long long>(own_bytes), static_cast<long long>(weight_bytes),
      static_cast<long long>(with_weights), static_cast<long long>(heap_first),
      static_cast<long long>(maps_after.anonymous_code - maps_before.anonymous_code),
      static_cast<long long>(maps_after.code_mappings - maps_before.code_mappings));
  // Every linear weight and vector is held once; tables stay in the file.
  const int64_t weights = 4ll * 6 * (4 * 384 * 384 + 2 * 384 * 1536);
  EXPECT_GE(weight_bytes, weights);
  EXPECT_LE(weight_bytes, weights * 102 / 100);
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_GE(with_weights + kMiB, (own_bytes + weight_bytes) * 9 / 10);
  EXPECT_LE(with_weights, (own_bytes + weight_bytes) * 11 / 10 + kMiB);
  for (const int threads : {1, 2, 4}) {
    const int64_t before_next = used();
    Result<Session> session = create(threads);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    const int64_t measured = used() - before_next;
    const int64_t said = static_cast<int64_t>(session->memory_bytes());
    std::printf("next Session, %d threads: memory_bytes %lld, measured %lld\n", threads,
                static_cast<long long>(said), static_cast<long long>(measured));
    EXPECT_GE(measured + kMiB, said * 9 / 10);
    EXPECT_LE(measured, said * 11 / 10 + kMiB);
  }
}

// In a process of its own, whose highest mark is this model's: loads and creates.
TEST(Memory, PeakInAFreshProcess) {
  const char* path = std::getenv("ATTEND_TEST_MODEL");
  if (path == nullptr) GTEST_SKIP() << "run by Memory.LoadingNeedsLittleMoreThanWhatStays";
  const int64_t before = testing::StatusBytes("VmRSS");
  const Result<Model> model = Model::Load(path);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = Session::Create(*model, {.max_tokens = 512});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const int64_t peak = testing::StatusBytes("VmHWM") - before,
                stays = testing::StatusBytes("VmRSS") - before;
  const int64_t file = model->info().file_bytes;
  std::printf("file %lld, peak %lld, stays %lld bytes\n", static_cast<long long>(file),
              static_cast<long long>(peak), static_cast<long long>(stays));
  const int64_t weights = static_cast<int64_t>(session->weight_bytes());
  const int64_t memory = static_cast<int64_t>(session->memory_bytes());
  EXPECT_GT(stays, weights);
  EXPECT_LE(peak, stays * 12 / 10 + file);
  // In fact the file's weights go back to the system layer by layer: they are never there twice.
  EXPECT_LE(peak, stays * 12 / 10);
  EXPECT_LE(stays, weights + memory + ReadMaps().anonymous_code + (8 << 20));
}

TEST(Memory, LoadingNeedsLittleMoreThanWhatStays) {
  if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "a sanitizer's memory is not the program's";
  ModelConfig config = testing::EncoderConfig(384, 6, 12, 1536);
  config.vocab_size = 12000;
  const Result<std::vector<std::byte>> bytes = testing::RandomModelBytes(config, 4);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  ASSERT_GT(bytes->size(), 55u << 20);
  std::string folder = (std::filesystem::temp_directory_path() / "attend-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/model.attend";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes->data()),
             static_cast<std::streamsize>(bytes->size()));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("ATTEND_TEST_MODEL", path.c_str(), 1);
    unsetenv("GTEST_OUTPUT");
    execl("/proc/self/exe", "test", "--gtest_filter=Memory.PeakInAFreshProcess", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

}  // namespace
}  // namespace attend
