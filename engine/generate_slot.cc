#include "engine/generate_slot.h"

#include <algorithm>
#include <cmath>

#include "engine/generate_random.h"

namespace attend {
SearchScratch::SearchScratch(int64_t vocab_size, int64_t num_candidates)
    : scores(static_cast<size_t>(vocab_size)) {
  candidates.reserve(static_cast<size_t>(num_candidates) + 1);
  chosen.reserve(static_cast<size_t>(num_candidates));
}

void TokenRows::Assign(size_t i, std::span<const int32_t> ids) {
  std::copy(ids.begin(), ids.end(), ids_.begin() + static_cast<ptrdiff_t>(i * stride_));
  lengths_[i] = ids.size();
}

SearchSlot::SearchSlot(int32_t rows, int64_t max_length)
    : rows_(rows, max_length), other_rows_(rows, max_length), finished_(rows, max_length) {
  const auto n = static_cast<size_t>(rows);
  sums_.resize(n);
  beams_.reserve(n);
  outputs_.reserve(n);
  names_.reserve(n);
  parents_.reserve(n);
  next_ids_.reserve(n);
}

size_t SearchSlot::memory_bytes() const {
  return rows_.bytes() + other_rows_.bytes() + finished_.bytes() +
         sums_.size() * (sizeof(double) + sizeof(Beam) + sizeof(Output) + 3 * sizeof(int32_t));
}

void SearchSlot::Begin(const SearchSettings& settings, std::span<const int32_t> prompt,
                       int64_t max_length) {
  settings_ = &settings;
  prompt_ = static_cast<int64_t>(prompt.size());
  max_length_ = max_length;
  length_ = prompt_;
  outputs_.clear();
  beams_.clear();
  Stop();
  const auto count = static_cast<size_t>(settings.rows());
  for (size_t i = 0; i < count; ++i) {
    rows_.Assign(i, prompt);
    sums_[i] = 0;
    // One beam begins. The others are copies of it that come after everything it can offer.
    if (settings.num_beams > 1) beams_.push_back({i == 0 ? 0 : kWorst, 0});
  }
  // The first logits are of one row, from which all go on.
  names_.push_back(0);
  parents_.push_back(0);
  next_ids_.push_back(prompt.back());
}

void SearchSlot::Stop() {
  names_.clear();
  parents_.clear();
  next_ids_.clear();
}

std::span<const int32_t> SearchSlot::output(size_t i) const {
  return finished_.row(outputs_[i].row).subspan(static_cast<size_t>(prompt_));
}

RowPlace SearchSlot::Place(size_t row) const { return {rows_.row(row), prompt_, max_length_}; }

bool SearchSlot::IsEnd(int32_t id) const {
  const std::vector<int32_t>& ends = settings_->eos_token_ids;
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}

void SearchSlot::Advance(std::span<const float> logits, ScoreProcessor* processor,
                         SearchScratch* scratch) {
  if (settings_->num_beams > 1) {
    AdvanceBeams(logits, processor, scratch);
  } else {
    AdvanceRows(logits, processor, scratch);
  }
}

void SearchSlot::AdvanceRows(std::span<const float> logits, ScoreProcessor* processor,
                             SearchScratch* scratch) {
  const size_t width = scratch->scores.size();
  const bool is_first = length_ == prompt_;
  const size_t count = is_first ? static_cast<size_t>(settings_->rows()) : names_.size();
  scratch->chosen.clear();  // the rows that are computed, whose names are about to change
  for (size_t i = 0; i < count; ++i) {
    scratch->chosen.push_back(is_first ? static_cast<int32_t>(i) : names_[i]);
  }
  Stop();
  ++length_;
  for (size_t i = 0; i < count; ++i) {
    const auto row = static_cast<size_t>(scratch->chosen[i]);
    const std::span<const float> its = logits.subspan(is_first ? 0 : i * width, width);
    std::copy(its.begin(), its.end(), scratch->scores.begin());
    const int32_t token = Choose(row, scratch->scores, processor);
    if (token < 0) {
      FinishRow(row, sums_[row]);
      continue;
    }
    const double logit = its[static_cast<size_t>(token)];
    sums_[row] += processor->forced() ? 0 : logit - LogSumExp(its);
    rows_.Append(row, token);
    if (IsEnd(token) || length_ == max_length_) {
      FinishRow(row, sums_[row]);
      continue;
    }
    names_.push_back(static_cast<int32_t>(row));
    parents_.push_back(is_first ? 0 : static_cast<int32_t>(row));
    next_ids_.push_back(token);
  }
  if (!done()) return;
  std::sort(outputs_.begin(), outputs_.end(),
            [](const Output& a, const Output& b) { return a.row < b.row; });
}

// The next token of a row, or -1 if the settings forbid all.
int32_t SearchSlot::Choose(size_t row, std::span<double> scores, ScoreProcessor* processor) {
  processor->Process(*settings_, Place(row), scores);
  if (settings_->do_sample) {
    processor->Warp(*settings_, 1, scores);
    return Draw(row, scores);
  }
  int32_t best = -1;
  double largest = kNever;
  for (size_t v = 0; v < scores.size(); ++v) {
    if (scores[v] > largest) {
      largest = scores[v];
      best = static_cast<int32_t>(v);
    }
  }
  return best;
}

int32_t SearchSlot::Draw(size_t row, std::span<const double> scores) const {
  const double sum = LogSumExp(scores);
  if (sum == kNever) return -1;
  const double target = UniformAt({.seed = settings_->seed,
                                   .stream = static_cast<uint32_t>(row),
                                   .step = static_cast<uint32_t>(length_ - 1 - prompt_)});
  double below = 0;
  int32_t last = -1;  // the sum of all may be a little less than 1
  for (size_t v = 0; v < scores.size(); ++v) {
    if (!(scores[v] > kNever)) continue;
    last = static_cast<int32_t>(v);
    below += std::exp(scores[v] - sum);
    if (below > target) break;
  }
  return last;
}

void SearchSlot::FinishRow(size_t row, double sum) {
  const std::span<const int32_t> ids = rows_.row(row);
  const auto count = static_cast<double>(static_cast<int64_t>(ids.size()) - prompt_);
  finished_.Assign(row, ids);
  outputs_.push_back({count > 0 ? sum / std::pow(count, settings_->length_penalty) : 0, row});
}

}  // namespace attend
