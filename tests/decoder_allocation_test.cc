// A decode step, and a start, take no memory: everything is decided at Create. Counted by this
// program's own malloc, in front of the C library's. At AVX2 at most, where the linear layers are
// attend's own; what oneDNN takes elsewhere is counted by allocation_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attend/trace.h"
#include "engine/decoder.h"
#include "tests/decoder_testing.h"
#include "tests/sanitized.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
}  // namespace

#if !ATTEND_TEST_SANITIZED
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

__attribute__((visibility("default"), noinline)) void* malloc(size_t size) {
  if (counting) ++allocations;
  return __libc_malloc(size);
}
__attribute__((visibility("default"), noinline)) void* calloc(size_t count, size_t size) {
  if (counting) ++allocations;
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"), noinline)) void* realloc(void* memory, size_t size) {
  if (counting) ++allocations;
  return __libc_realloc(memory, size);
}
__attribute__((visibility("default"), noinline)) void* aligned_alloc(size_t alignment,
                                                                     size_t size) {
  if (counting) ++allocations;
  return __libc_memalign(alignment, size);
}
}
#endif

namespace attend {
namespace {

constexpr int32_t kRows = 6, kLength = 60;

// Rounds of a start of three rows, forks, and steps until the rows are full; counts what attend
// takes in them.
void Decode(DecodeSession* session, std::mt19937& random, int rounds) {
  const std::vector<int32_t> start_rows = {0, 2, 5}, offsets = {0, 20, 21, 40};
  const std::vector<int32_t> ids(40, 3);
  std::vector<int32_t> rows(kRows), parents(kRows), tokens(kRows, 4);
  std::iota(rows.begin(), rows.end(), 0);
  DecodeStart start{.rows = start_rows, .ids = ids, .offsets = offsets};
  if (session->has_encoder()) {
    start.source_ids = ids;
    start.source_offsets = offsets;
  }
  counting = true;
  int64_t failed = 0;
  for (int round = 0; round < rounds; ++round) {
    failed += session->Start(start).ok() ? 0 : 1;
    for (int step = 0; step < kLength - 20; ++step) {
      for (int32_t& parent : parents) {
        parent = step == 0 ? start_rows[random() % 3] : static_cast<int32_t>(random() % kRows);
      }
      failed += session->Step(rows, parents, tokens).ok() ? 0 : 1;
    }
    failed += session->Step({}, {}, {}).ok() ? 0 : 1;
  }
  counting = false;
  EXPECT_EQ(failed, 0);
}

TEST(DecoderAllocation, StartAndStepAllocateNothing) {
  if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "a sanitizer has its own malloc";
  counting = true;
  std::vector<int>* volatile seen = new std::vector<int>(100);
  counting = false;
  delete seen;
  ASSERT_EQ(allocations.exchange(0), 2) << "the counter must see what is there to be seen";
  const std::vector<std::string> isas = AvailableIsas();
  if (isas.size() > 2) {
    ASSERT_TRUE(LimitIsa("avx2").ok());
  }
  Result<Trace> trace = Trace::Create(100'000);
  ASSERT_TRUE(trace.ok());
  for (const ModelConfig& config : {testing::DecoderConfig(), testing::EncoderDecoderConfig()}) {
    const Result<Model> model = testing::RandomModel(config, 2);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    for (const int threads : {1, 2}) {
      for (const Share share : {Share::kAuto, Share::kSequences, Share::kRows, Share::kColumns}) {
        const bool watched = threads == 2;
        Result<DecodeSession> session =
            DecodeSession::Create(*model, {.num_threads = threads,
                                           .max_rows = kRows,
                                           .max_length = kLength,
                                           .share = share,
                                           .trace = watched ? &*trace : nullptr,
                                           .telemetry = watched});
        ASSERT_TRUE(session.ok()) << session.status().ToString();
        std::mt19937 random(4);
        Decode(&*session, random, 1);  // OpenMP makes its threads in their first region
        allocations = 0;
        Decode(&*session, random, 2);
        EXPECT_EQ(allocations, 0) << config.architecture << ", threads " << threads << ", share "
                                  << static_cast<int>(share);
        EXPECT_EQ(session->telemetry() != nullptr, watched);
      }
    }
  }
}

}  // namespace
}  // namespace attend
