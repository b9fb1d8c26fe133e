// A search takes its memory when it is made: decoding allocates nothing, whatever the strategy.
// Allocations are counted by this program's own operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/generate_testing.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> count{0};

void* Allocate(std::size_t size) {
  if (counting) ++count;
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace attend::testing {
namespace {

constexpr int64_t kVocab = 30;
constexpr int32_t kSlots = 4;

// Logits that depend on the last token alone, out of memory taken before.
class TableModel final : public NextLogits {
 public:
  explicit TableModel(size_t rows) : logits_(rows * kVocab) {
    for (int32_t last = 0; last < kVocab; ++last) {
      const std::vector<float> row = FormulaLogits({last}, 3, kVocab);
      table_.insert(table_.end(), row.begin(), row.end());
    }
  }
  Result<std::span<const float>> Start(const DecodeStart& start) override {
    for (size_t b = 0; b < start.rows.size(); ++b) {
      Copy(b, start.ids[static_cast<size_t>(start.offsets[b + 1]) - 1]);
    }
    return std::span<const float>(logits_).first(start.rows.size() * kVocab);
  }
  Result<std::span<const float>> Step(std::span<const int32_t> rows, std::span<const int32_t>,
                                      std::span<const int32_t> ids) override {
    for (size_t i = 0; i < rows.size(); ++i) Copy(i, ids[i]);
    return std::span<const float>(logits_).first(rows.size() * kVocab);
  }
  Status Release(std::span<const int32_t>) override { return {}; }

 private:
  void Copy(size_t row, int32_t last) {
    std::copy_n(table_.begin() + last * kVocab, kVocab,
                logits_.begin() + static_cast<ptrdiff_t>(row) * kVocab);
  }
  std::vector<float> table_, logits_;
};

// How much two runs of the same requests allocate, the first and the second.
std::pair<int64_t, int64_t> Count(const SearchSettings& settings) {
  const Ids prompt = {7, 5, 9};
  std::vector<SearchRequest> requests;
  for (size_t i = 0; i < 23; ++i) {
    requests.push_back({.source = std::span(prompt).first(1 + i % 3),
                        .prompt = std::span(prompt).first(1 + i % 3),
                        .max_length = 15});
  }
  Search search(LimitsOf(settings, kVocab, kSlots, 15));
  TableModel model(static_cast<size_t>(kSlots * settings.rows()));
  size_t tokens = 0;
  int64_t counts[2] = {};
  for (int64_t& allocations : counts) {
    count = 0;
    counting = true;
    const Status status =
        search.Run(requests, settings, &model, [&](size_t, const SearchSlot& found) {
          for (size_t k = 0; k < found.num_outputs(); ++k) tokens += found.output(k).size();
        });
    counting = false;
    EXPECT_TRUE(status.ok());
    allocations = count;
  }
  EXPECT_GT(tokens, 100u);
  return {counts[0], counts[1]};
}

TEST(GenerateAllocation, DecodingAllocatesNothing) {
  SearchSettings everything{.max_new_tokens = 12, .top_k = 9, .eos_token_ids = {0, 1}};
  everything.no_repeat_ngram_size = 3;
  everything.repetition_penalty = 1.2;
  everything.min_length = 4;
  everything.suppress_tokens = {5};
  everything.begin_suppress_tokens = {6};
  everything.bad_words = {{7}, {8, 9}};
  everything.top_p = 0.9;
  everything.min_p = 0.01;
  everything.renormalize_logits = true;
  for (int32_t beams : {1, 4}) {
    for (bool sample : {false, true}) {
      SearchSettings settings = everything;
      settings.num_beams = beams;
      settings.num_return_sequences = sample || beams > 1 ? 3 : 1;
      settings.do_sample = sample;
      const auto [first, second] = Count(settings);
      // The list of source tokens grows once: what comes in is not bounded when memory is taken.
      EXPECT_LE(first, 20) << beams << " beams, sample " << sample;
      EXPECT_EQ(second, 0) << beams << " beams, sample " << sample;
    }
  }
}

}  // namespace
}  // namespace attend::testing
