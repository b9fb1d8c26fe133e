#include "engine/generate_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attend {
namespace {

template <typename T>
double LogSumExpOf(std::span<const T> values) {
  double largest = kNever;
  for (const T value : values) {
    if (static_cast<double>(value) > largest) largest = static_cast<double>(value);
  }
  if (!std::isfinite(largest)) return largest;
  double sum = 0;
  for (const T value : values) {
    // A NaN fails the comparison, and so does what adds nothing.
    const double difference = static_cast<double>(value) - largest;
    if (difference > -750) sum += std::exp(difference);
  }
  return largest + std::log(sum);
}

void Forbid(std::span<const int32_t> ids, std::span<double> scores) {
  for (int32_t id : ids) scores[static_cast<size_t>(id)] = kNever;
}

bool EndsWith(std::span<const int32_t> ids, std::span<const int32_t> end) {
  return ids.size() >= end.size() && std::equal(end.begin(), end.end(), ids.end() - end.size());
}

// The last token of every n-gram whose other tokens are the last ones of the row.
void ForbidRepeatedNgrams(size_t n, std::span<const int32_t> ids, std::span<double> scores) {
  if (ids.size() < n) return;
  const std::span<const int32_t> end = ids.last(n - 1);
  for (size_t last = n - 1; last < ids.size(); ++last) {
    if (std::equal(end.begin(), end.end(), ids.begin() + static_cast<ptrdiff_t>(last + 1 - n))) {
      scores[static_cast<size_t>(ids[last])] = kNever;
    }
  }
}

}  // namespace

double LogSumExp(std::span<const float> logits) { return LogSumExpOf(logits); }
double LogSumExp(std::span<const double> scores) { return LogSumExpOf(scores); }

ScoreProcessor::ScoreProcessor(int64_t vocab_size)
    : order_(static_cast<size_t>(vocab_size)), stamp_(static_cast<size_t>(vocab_size)) {}

void ScoreProcessor::PenalizeRepetition(double penalty, const RowPlace& place,
                                        std::span<double> scores) {
  ++pass_;
  for (int32_t id : place.ids) {
    const auto at = static_cast<size_t>(id);
    if (stamp_[at] == pass_) continue;  // a token counts once, however often it came
    stamp_[at] = pass_;
    scores[at] = scores[at] < 0 ? scores[at] * penalty : scores[at] / penalty;
  }
}

void ScoreProcessor::Force(const SearchSettings& s, const RowPlace& place,
                           std::span<double> scores) {
  const auto length = static_cast<int64_t>(place.ids.size());
  const auto force = [&](std::span<const int32_t> ids) {
    std::fill(scores.begin(), scores.end(), kNever);
    for (int32_t id : ids) scores[static_cast<size_t>(id)] = 0;
    forced_ = true;
  };
  if (s.forced_bos_token_id >= 0 && length == 1) force({&s.forced_bos_token_id, 1});
  if (!s.forced_eos_token_ids.empty() && length == place.max_length - 1) {
    force(s.forced_eos_token_ids);
  }
}

void ScoreProcessor::Process(const SearchSettings& s, const RowPlace& place,
                             std::span<double> scores) {
  forced_ = false;
  const auto length = static_cast<int64_t>(place.ids.size());
  if (s.repetition_penalty != 1) PenalizeRepetition(s.repetition_penalty, place, scores);
  if (s.no_repeat_ngram_size > 0) {
    ForbidRepeatedNgrams(static_cast<size_t>(s.no_repeat_ngram_size), place.ids, scores);
  }
  for (const std::vector<int32_t>& word : s.bad_words) {
    const std::span<const int32_t> ids(word);
    if (EndsWith(place.ids, ids.first(ids.size() - 1))) Forbid(ids.last(1), scores);
  }
  const int64_t least = s.min_new_tokens > 0 ? place.prompt + s.min_new_tokens : s.min_length;
  if (length < least) Forbid(s.eos_token_ids, scores);
  Force(s, place, scores);
  Forbid(s.suppress_tokens, scores);
  // Where the first token is forced, the beginning is behind it.
  const bool behind_forced = place.prompt == 1 && s.forced_bos_token_id >= 0;
  if (length == place.prompt + (behind_forced ? 1 : 0)) Forbid(s.begin_suppress_tokens, scores);
  if (s.renormalize_logits && !s.do_sample) {
    const double sum = LogSumExp(std::span<const double>(scores));
    if (std::isfinite(sum)) {
      for (double& score : scores) score -= sum;
    }
  }
}

void ScoreProcessor::KeepTopK(int64_t k, std::span<double> scores) {
  if (k >= static_cast<int64_t>(scores.size())) return;
  std::iota(order_.begin(), order_.end(), 0);
  const auto kth = order_.begin() + (k - 1);
  std::nth_element(order_.begin(), kth, order_.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  const double limit = scores[static_cast<size_t>(*kth)];
  for (double& score : scores) {
    if (score < limit) score = kNever;  // what equals the k-th stays
  }
}

void ScoreProcessor::KeepTopP(double p, int64_t least, std::span<double> scores) {
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    const double x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return x != y ? x < y : a > b;
  });
  const double sum = LogSumExp(std::span<const double>(scores));
  double below = 0;
  const size_t most = order_.size() - std::min(order_.size(), static_cast<size_t>(least));
  for (size_t i = 0; i < most; ++i) {
    double& score = scores[static_cast<size_t>(order_[i])];
    below += std::exp(score - sum);
    if (below > 1 - p) return;
    score = kNever;
  }
}

void ScoreProcessor::KeepMinP(double p, int64_t least, std::span<double> scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  const double limit = largest + std::log(p);
  const auto kept =
      std::count_if(scores.begin(), scores.end(), [&](double score) { return score >= limit; });
  if (kept < least) return KeepTopK(least, scores);
  for (double& score : scores) {
    if (score < limit) score = kNever;
  }
}

void ScoreProcessor::Warp(const SearchSettings& s, int64_t least, std::span<double> scores) {
  if (s.temperature != 1) {
    for (double& score : scores) score /= s.temperature;
  }
  if (s.top_k > 0) KeepTopK(std::max<int64_t>(s.top_k, least), scores);
  if (s.top_p < 1) KeepTopP(s.top_p, least, scores);
  if (s.min_p > 0) KeepMinP(s.min_p, least, scores);
  if (!s.renormalize_logits) return;
  const double sum = LogSumExp(std::span<const double>(scores));
  if (!std::isfinite(sum)) return;
  for (double& score : scores) score -= sum;
}

}  // namespace attend
