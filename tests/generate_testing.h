// What the tests of the search share: a model that is a formula, behind the search's door, and
// settings out of JSON.
#ifndef ATTEND_TESTS_GENERATE_TESTING_H_
#define ATTEND_TESTS_GENERATE_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/generate.h"

namespace attend::testing {

using Ids = std::vector<int32_t>;

// A hash of words, the same as in tests/data/generation/make_cases.py.
inline uint64_t Mix(std::initializer_list<uint64_t> words) {
  uint64_t state = 0;
  for (uint64_t word : words) {
    state += word + 0x9E3779B97F4A7C15;
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
    state ^= state >> 31;
  }
  return state;
}

// The logits behind `ids`: of a formula, of which no two in a row are equal.
inline std::vector<float> FormulaLogits(const Ids& ids, uint64_t salt, int64_t vocab) {
  const auto before = static_cast<uint64_t>(ids.size() > 1 ? ids[ids.size() - 2] : 999);
  std::vector<float> logits;
  for (int64_t v = 0; v < vocab; ++v) {
    const uint64_t hash = Mix({salt, before, static_cast<uint64_t>(ids.back()), ids.size(),
                               static_cast<uint64_t>(v)}) %
                          4001;
    const auto steps = static_cast<double>(static_cast<int64_t>(hash) * vocab + v);
    logits.push_back(static_cast<float>(steps / (700.0 * static_cast<double>(vocab))));
  }
  return logits;
}

// A model behind the door of the search, that fails the test if it is used in a way that
// DecodeSession refuses.
class FakeModel final : public NextLogits {
 public:
  // The logits of a row with `ids`, whose source is `source`.
  using Formula = std::function<std::vector<float>(const Ids& source, const Ids& ids)>;

  FakeModel(int64_t vocab_size, int32_t max_rows, Formula formula)
      : vocab_size_(vocab_size),
        rows_(static_cast<size_t>(max_rows)),
        formula_(std::move(formula)) {}

  Result<std::span<const float>> Start(const DecodeStart& start) override {
    ++num_starts;
    logits_.clear();
    EXPECT_EQ(start.offsets.size(), start.rows.size() + 1);
    for (size_t b = 0; b < start.rows.size(); ++b) {
      auto& row = rows_.at(static_cast<size_t>(start.rows[b]));
      EXPECT_FALSE(row.has_value()) << "row " << start.rows[b] << " is alive";
      row.emplace();
      row->ids = Part(start.ids, start.offsets, b);
      EXPECT_FALSE(row->ids.empty());
      if (!start.source_offsets.empty()) {
        row->source = Part(start.source_ids, start.source_offsets, b);
      }
      AddLogits(*row);
    }
    return std::span<const float>(logits_);
  }

  Result<std::span<const float>> Step(std::span<const int32_t> rows,
                                      std::span<const int32_t> parents,
                                      std::span<const int32_t> ids) override {
    ++num_steps;
    if (num_steps == fail_at_step) return Status(ErrorCode::kInternal, "the step failed");
    most_rows = std::max(most_rows, rows.size());
    logits_.clear();
    std::vector<std::optional<Row>> next(rows_.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::optional<Row>& parent = rows_.at(static_cast<size_t>(parents[i]));
      EXPECT_TRUE(parent.has_value()) << "row " << parents[i] << " is not alive";
      std::optional<Row>& row = next.at(static_cast<size_t>(rows[i]));
      EXPECT_FALSE(row.has_value()) << "row " << rows[i] << " comes twice";
      row = parent;
      row->ids.push_back(ids[i]);
      AddLogits(*row);
    }
    rows_ = std::move(next);
    return std::span<const float>(logits_);
  }

  Status Release(std::span<const int32_t> rows) override {
    for (int32_t row : rows) {
      EXPECT_TRUE(rows_.at(static_cast<size_t>(row)).has_value()) << row;
      rows_[static_cast<size_t>(row)].reset();
    }
    return {};
  }

  int num_alive() const {
    return static_cast<int>(
        std::count_if(rows_.begin(), rows_.end(), [](const auto& row) { return row.has_value(); }));
  }

  int num_starts = 0, num_steps = 0, fail_at_step = -1;
  size_t most_rows = 0;

 private:
  struct Row {
    Ids source, ids;
  };

  static Ids Part(std::span<const int32_t> ids, std::span<const int32_t> offsets, size_t i) {
    const auto begin = static_cast<size_t>(offsets[i]), end = static_cast<size_t>(offsets[i + 1]);
    return Ids(ids.begin() + offsets[i],
               ids.begin() + static_cast<ptrdiff_t>(begin + (end - begin)));
  }

  void AddLogits(const Row& row) {
    const std::vector<float> logits = formula_(row.source, row.ids);
    EXPECT_EQ(static_cast<int64_t>(logits.size()), vocab_size_);
    logits_.insert(logits_.end(), logits.begin(), logits.end());
  }

  int64_t vocab_size_;
  std::vector<std::optional<Row>> rows_;
  Formula formula_;
  std::vector<float> logits_;
};

// Settings by their Hugging Face names.
inline GenerationSettings SettingsOf(const nlohmann::json& object) {
  GenerationSettings settings;
  std::vector<std::string> open;
  for (const auto& [name, value] : object.items()) open.push_back(name);
  VisitSettings(
      [&]<typename T>(std::string_view name, std::optional<T>& out) {
        const auto found = object.find(name);
        if (found == object.end()) return;
        open.erase(std::find(open.begin(), open.end(), name));
        if (found->is_null()) return;
        if constexpr (std::is_same_v<T, EarlyStopping>) {
          out = found->is_string()   ? EarlyStopping::kNever
                : found->get<bool>() ? EarlyStopping::kYes
                                     : EarlyStopping::kNo;
        } else if constexpr (std::is_same_v<T, Ids>) {
          out = found->is_array() ? found->get<Ids>() : Ids{found->get<int32_t>()};
        } else {
          out = found->get<T>();
        }
      },
      settings);
  EXPECT_TRUE(open.empty()) << open[0];
  return settings;
}

struct Found {
  std::vector<Ids> outputs;
  std::vector<double> scores;
  friend bool operator==(const Found&, const Found&) = default;
};

struct Asked {
  Ids source, prompt;
};

inline SearchLimits LimitsOf(const SearchSettings& settings, int64_t vocab_size, int32_t slots,
                             int64_t max_length) {
  return {.vocab_size = vocab_size,
          .slots = slots,
          .rows = settings.rows(),
          .candidates = settings.num_candidates(),
          .max_length = max_length};
}

// Decodes `asked` with room for `slots` of them at a time.
inline std::vector<Found> Decode(const std::vector<Asked>& asked, const SearchSettings& settings,
                                 int64_t vocab_size, int32_t slots, FakeModel* model) {
  std::vector<SearchRequest> requests;
  int64_t longest = 0;
  for (const Asked& one : asked) {
    const auto prompt = static_cast<int64_t>(one.prompt.size());
    requests.push_back({.source = one.source,
                        .prompt = one.prompt,
                        .max_length = settings.LongestOutput(prompt, 0)});
    longest = std::max(longest, requests.back().max_length);
  }
  Search search(LimitsOf(settings, vocab_size, slots, longest));
  std::vector<Found> found(asked.size());
  const Status status =
      search.Run(requests, settings, model, [&](size_t i, const SearchSlot& outputs) {
        EXPECT_TRUE(found[i].outputs.empty()) << "request " << i << " is done twice";
        for (size_t k = 0; k < outputs.num_outputs(); ++k) {
          const std::span<const int32_t> ids = outputs.output(k);
          found[i].outputs.emplace_back(ids.begin(), ids.end());
          found[i].scores.push_back(outputs.score(k));
        }
      });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(model->num_alive(), 0);
  return found;
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_GENERATE_TESTING_H_
