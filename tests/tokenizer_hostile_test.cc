// What encoding costs: time that grows with the text and no faster, memory in proportion, and none
// at all for ordinary texts once the memory of the Encoding is there.
#include <gtest/gtest.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "tests/tokenizer_testing.h"

namespace {

std::atomic<size_t> g_allocations{0};
std::atomic<size_t> g_bytes{0};
std::atomic<size_t> g_most_bytes{0};

}  // namespace

// Not inlined: the compiler would take malloc and free for a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  ++g_allocations;
  const size_t bytes = g_bytes += malloc_usable_size(memory);
  if (bytes > g_most_bytes) g_most_bytes = bytes;
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) g_bytes -= malloc_usable_size(memory);
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace attend {
namespace {

const Tokenizer& MiniLm() {
  static const Tokenizer tokenizer = MakeTokenizer(MiniLmSpec());
  return tokenizer;
}

std::string Repeat(const std::string& unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

double SecondsOf(const std::string& text, Encoding* encoding) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  EXPECT_TRUE(MiniLm().EncodeInto(text, {}, encoding).ok());
  return now() - start;
}

struct HostileText {
  const char* name;
  std::string unit;
  // Of the times of 4 and 2 MiB. Quadratic time would be 4; where many tokens are written, caches
  // that others use too decide between 2 and 3.
  double most = 3.0;
};

class HostileTest : public ::testing::TestWithParam<HostileText> {};

TEST_P(HostileTest, TimeIsLinear) {
  const std::string half = Repeat(GetParam().unit, size_t{2} << 20);
  const std::string full = Repeat(GetParam().unit, size_t{4} << 20);
  Encoding encoding;
  SecondsOf(full, &encoding);  // takes the memory
  // A machine with other work changes its speed: the two are timed side by side, in both orders,
  // and the median of the ratios counts. What is quadratic is so in every pair.
  std::vector<double> ratios;
  for (int pair = 0; pair < 21; ++pair) {
    const bool half_first = pair % 2 == 0;
    const double first = SecondsOf(half_first ? half : full, &encoding);
    const double second = SecondsOf(half_first ? full : half, &encoding);
    ratios.push_back(half_first ? second / first : first / second);
  }
  std::nth_element(ratios.begin(), ratios.begin() + 10, ratios.end());
  EXPECT_LE(ratios[10], GetParam().most);
}

TEST_P(HostileTest, MemoryIsInProportion) {
  const std::string text = Repeat(GetParam().unit, size_t{4} << 20);
  MiniLm();
  const size_t before = g_bytes;
  g_most_bytes = before;
  Encoding encoding;
  ASSERT_TRUE(MiniLm().EncodeInto(text, {}, &encoding).ok());
  EXPECT_LE(g_most_bytes - before, 64 * text.size() + (size_t{1} << 20));
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileTest,
    ::testing::Values(HostileText{"one_letter", "a", 2.2}, HostileText{"capital", "A"},
                      HostileText{"digit", "7"}, HostileText{"underscore", "_"},
                      HostileText{"accented", "é"}, HostileText{"mark", "\u0301", 2.2},
                      HostileText{"kept_marks", "\u302E\U0001D165\u0301"},
                      HostileText{"two_marks_in_one", "\u0344"}, HostileText{"cjk", "中", 2.2},
                      HostileText{"hangul", "가"}, HostileText{"thai", "ก"},
                      HostileText{"emoji", "👍"}, HostileText{"joined_emoji", "👩\u200D"},
                      HostileText{"blank", " "}, HostileText{"newlines", " \n"},
                      HostileText{"nul", std::string(1, '\0')}, HostileText{"bracket", "["},
                      HostileText{"half_special", "[MASK"}, HostileText{"special", "[MASK]"},
                      HostileText{"unknown_words", std::string(99, 'a') + "\u0378 "},
                      HostileText{"expanding", "\u0390"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(TokenizerMemoryTest, NothingIsAllocatedOnceWarm) {
  std::vector<std::string> texts;
  for (const std::string& line : ReadLines(DataPath("minilm/cases.jsonl"))) {
    texts.push_back(nlohmann::json::parse(line)["text"]);
  }
  Encoding encoding;
  std::vector<int32_t> ids;
  const auto encode_all = [&] {
    for (const std::string& text : texts) {
      for (OffsetUnit unit : {OffsetUnit::kBytes, OffsetUnit::kUtf16}) {
        EXPECT_TRUE(MiniLm().EncodeInto(text, {.offset_unit = unit}, &encoding).ok());
      }
      ids.clear();
      EXPECT_TRUE(MiniLm().EncodeWord(text, &ids).ok());
    }
  };
  encode_all();
  const size_t before = g_allocations;
  encode_all();
  EXPECT_EQ(g_allocations - before, 0u);
}

}  // namespace
}  // namespace attend
