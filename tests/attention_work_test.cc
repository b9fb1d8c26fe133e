// The work is proportional to the pairs that are seen: a call reads no block of keys and values of
// which none of its rows sees anything. Every other block is made unreadable, so that a read of one
// ends the process.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "tests/attention_problem.h"

namespace attend {
namespace {

using testing::AttentionProblem;

constexpr int64_t kWidth = 64;
constexpr size_t kBlockBytes = kKeyBlock * kWidth * sizeof(float);

// Packed keys or values of one head, a page or more a block, of which blocks can be locked.
class LockedBlocks {
 public:
  explicit LockedBlocks(int64_t blocks) : size_(static_cast<size_t>(blocks) * kBlockBytes) {
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~LockedBlocks() { munmap(memory_, size_); }
  LockedBlocks(const LockedBlocks&) = delete;
  LockedBlocks& operator=(const LockedBlocks&) = delete;
  float* data() { return static_cast<float*>(memory_); }
  void LockAllBut(const std::set<int64_t>& blocks) {
    mprotect(memory_, size_, PROT_NONE);
    for (const int64_t b : blocks) {
      mprotect(static_cast<char*>(memory_) + static_cast<size_t>(b) * kBlockBytes, kBlockBytes,
               PROT_READ);
    }
  }

 private:
  size_t size_;
  void* memory_;
};

// The blocks of which rows [begin, begin + count) see something.
std::set<int64_t> SeenBlocks(const AttentionProblem& problem, int64_t begin, int64_t count) {
  std::set<int64_t> blocks;
  for (int64_t i = begin; i < begin + count; ++i) {
    for (int64_t j = 0; j < problem.shape.keys; ++j) {
      if (problem.Sees(i, j)) blocks.insert(j / kKeyBlock);
    }
  }
  return blocks;
}

// Runs rows [begin, begin + count) with every block locked but those in `open`; in a child process.
void RunLocked(AttentionProblem& problem, int64_t begin, int64_t count,
               const std::set<int64_t>& open) {
  LockedBlocks k(problem.Padded() / kKeyBlock), v(problem.Padded() / kKeyBlock);
  PackKvArgs pack = problem.PackArgs();
  pack.packed_k = k.data();
  pack.packed_v = v.data();
  BindPackKv()(pack);
  AttentionArgs args = problem.Args(begin, count);
  args.packed_k = k.data();
  args.packed_v = v.data();
  const auto run = [&] {
    k.LockAllBut(open);
    v.LockAllBut(open);
    BindAttention()(args);
    _exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "") << problem.Describe() << " row " << begin;
}

using Part = void (*)(AttentionProblem&);
constexpr Part kStructures[] = {
    [](AttentionProblem& p) { p.SetCausal(); },
    [](AttentionProblem& p) { p.SetWindow(20, 10, 0); },
    [](AttentionProblem& p) { p.SetWindow(20, 10, 2); },
    [](AttentionProblem& p) { p.SetCausal(), p.SetWindow(64, 64, 0); },
    [](AttentionProblem& p) { p.SetEdges(0.01); },
    [](AttentionProblem& p) { p.SetEdges(0.02), p.SetCausal(), p.SetWindow(300, 5, 1); },
};

TEST(AttentionWork, NoUnseenBlockIsRead) {
  ASSERT_EQ(kBlockBytes % static_cast<size_t>(sysconf(_SC_PAGESIZE)), 0u);
  for (const Part structure : kStructures) {
    for (const bool additive : {false, true}) {
      AttentionProblem problem({1200, 1200, 1, 1, kWidth, kWidth}, 40);
      structure(problem);
      if (additive) problem.SetAdditive();
      for (const int64_t begin : {0, 3, 510, 777, 1199}) {
        RunLocked(problem, begin, 1, SeenBlocks(problem, begin, 1));
      }
      // Some rows together: what any of them sees.
      RunLocked(problem, 600, 40, SeenBlocks(problem, 600, 40));
    }
  }
}

// The test above can fail: with one of the seen blocks locked, the child dies.
TEST(AttentionWork, ALockedBlockIsNoticed) {
  AttentionProblem problem({1, 400, 1, 1, kWidth, kWidth, 200}, 41);
  problem.SetWindow(50, 50, 0);
  LockedBlocks k(problem.Padded() / kKeyBlock);
  PackKvArgs pack = problem.PackArgs();
  pack.packed_k = k.data();
  BindPackKv()(pack);
  AttentionArgs args = problem.Args();
  args.packed_k = k.data();
  const auto run = [&] {
    std::set<int64_t> open = SeenBlocks(problem, 0, 1);
    open.erase(200 / kKeyBlock);
    k.LockAllBut(open);
    BindAttention()(args);
    _exit(0);
  };
  EXPECT_DEATH(run(), "");
}

}  // namespace
}  // namespace attend
