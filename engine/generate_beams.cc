// Beam search, as transformers 5 defines it. Of all continuations of all beams a step takes the
// best; of these one that is finished is kept if it is among the first num_beams, and the best
// num_beams unfinished ones go on.
#include <algorithm>
#include <cmath>

#include "engine/generate_random.h"
#include "engine/generate_slot.h"

namespace attend {
namespace {

// Keeps the `most` best candidates, best first; of equals the one that came first is the better.
void Keep(const SearchCandidate& candidate, size_t most, std::vector<SearchCandidate>* best) {
  if (best->size() == most && !(candidate.key > best->back().key)) return;
  const auto at = std::upper_bound(
      best->begin(), best->end(), candidate,
      [](const SearchCandidate& a, const SearchCandidate& b) { return a.key > b.key; });
  best->insert(at, candidate);
  if (best->size() > most) best->pop_back();
}

}  // namespace

void SearchSlot::AdvanceBeams(std::span<const float> logits, ScoreProcessor* processor,
                              SearchScratch* scratch) {
  FindCandidates(logits, processor, scratch);
  ++length_;
  if (scratch->candidates.empty()) return FinishBeams();
  const auto num_beams = static_cast<size_t>(settings_->num_beams);
  const auto new_tokens = static_cast<double>(length_ - prompt_);
  const double divisor = std::pow(new_tokens, settings_->length_penalty);
  scratch->chosen.clear();
  for (size_t rank = 0; rank < scratch->candidates.size(); ++rank) {
    const SearchCandidate& candidate = scratch->candidates[rank];
    if (IsEnd(candidate.token) || length_ >= max_length_) {
      if (rank < num_beams) Offer(candidate.score / divisor, candidate);
    } else if (scratch->chosen.size() < num_beams) {
      scratch->chosen.push_back(static_cast<int32_t>(rank));
    }
  }
  if (scratch->chosen.empty()) return FinishBeams();
  const bool is_full = outputs_.size() == num_beams;
  if (is_full && settings_->early_stopping == EarlyStopping::kYes) return FinishBeams();
  const auto best = static_cast<size_t>(scratch->chosen[0]);
  if (!MayImprove(scratch->candidates[best].score)) return FinishBeams();
  Follow(scratch->candidates, scratch->chosen);
}

void SearchSlot::FindCandidates(std::span<const float> logits, ScoreProcessor* processor,
                                SearchScratch* scratch) {
  const SearchSettings& s = *settings_;
  const size_t width = scratch->scores.size();
  const size_t most = std::min(static_cast<size_t>(s.num_candidates()), beams_.size() * width);
  scratch->candidates.clear();
  for (size_t b = 0; b < beams_.size(); ++b) {
    const bool is_copy = beams_[b].score == kWorst && length_ == prompt_;
    if (is_copy && (s.do_sample || scratch->candidates.size() == most)) break;
    const auto row = static_cast<size_t>(beams_[b].row);
    const std::span<const float> its = logits.subspan(row * width, width);
    const double sum = LogSumExp(its);
    for (size_t v = 0; v < width; ++v) scratch->scores[v] = static_cast<double>(its[v]) - sum;
    processor->Process(s, Place(b), scratch->scores);
    if (s.do_sample) {
      // One more than there are ends, so that something goes on.
      processor->Warp(s, static_cast<int64_t>(std::max<size_t>(s.eos_token_ids.size(), 1)) + 1,
                      scratch->scores);
    }
    for (size_t v = 0; v < width; ++v) {
      SearchCandidate candidate{.score = beams_[b].score + scratch->scores[v],
                                .beam = static_cast<int32_t>(b),
                                .token = static_cast<int32_t>(v)};
      if (!(candidate.score > kNever)) continue;
      candidate.key = candidate.score;
      if (s.do_sample) {
        // The largest of scores with Gumbel noise are a sample without replacement.
        const double uniform = UniformAt({.seed = s.seed,
                                          .step = static_cast<uint32_t>(length_ - prompt_),
                                          .row = static_cast<uint32_t>(b),
                                          .token = static_cast<uint32_t>(v)});
        candidate.key -= std::log(-std::log(uniform));
      }
      Keep(candidate, most, &scratch->candidates);
    }
  }
  if (!s.do_sample) return;
  std::sort(scratch->candidates.begin(), scratch->candidates.end(),
            [](const SearchCandidate& a, const SearchCandidate& b) {
              if (a.score != b.score) return a.score > b.score;
              return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
            });
}

// Puts a finished candidate among the outputs, if it is one of the best num_beams.
void SearchSlot::Offer(double score, const SearchCandidate& candidate) {
  Output output{score, outputs_.size()};
  if (outputs_.size() == static_cast<size_t>(settings_->num_beams)) {
    if (!(score > outputs_.back().score)) return;
    output.row = outputs_.back().row;
    outputs_.pop_back();
  }
  finished_.Assign(output.row, rows_.row(static_cast<size_t>(candidate.beam)));
  finished_.Append(output.row, candidate.token);
  const auto at =
      std::upper_bound(outputs_.begin(), outputs_.end(), output,
                       [](const Output& a, const Output& b) { return a.score > b.score; });
  outputs_.insert(at, output);
}

// Whether the best running beam could still beat the worst output: by an estimate that may err, as
// its length at the end is not known.
bool SearchSlot::MayImprove(double best_running) const {
  const double penalty = settings_->length_penalty;
  const bool at_longest = settings_->early_stopping == EarlyStopping::kNever && penalty > 0;
  const auto length = static_cast<double>((at_longest ? max_length_ : length_) - prompt_);
  const bool is_full = outputs_.size() == static_cast<size_t>(settings_->num_beams);
  return best_running / std::pow(length, penalty) > (is_full ? outputs_.back().score : kWorst);
}

void SearchSlot::Follow(std::span<const SearchCandidate> candidates,
                        std::span<const int32_t> chosen) {
  Stop();
  for (size_t i = 0; i < chosen.size(); ++i) {
    const SearchCandidate& candidate = candidates[static_cast<size_t>(chosen[i])];
    const auto beam = static_cast<size_t>(candidate.beam);
    other_rows_.Assign(i, rows_.row(beam));
    other_rows_.Append(i, candidate.token);
    names_.push_back(static_cast<int32_t>(i));
    parents_.push_back(beams_[beam].row);
    next_ids_.push_back(candidate.token);
  }
  std::swap(rows_, other_rows_);
  beams_.clear();
  for (size_t i = 0; i < chosen.size(); ++i) {
    beams_.push_back({candidates[static_cast<size_t>(chosen[i])].score, static_cast<int32_t>(i)});
  }
}

void SearchSlot::FinishBeams() {
  Stop();
  // Nothing ended, because the settings forbid every token: what there is so far.
  const bool is_dead_end = outputs_.empty();
  for (size_t b = 0; is_dead_end && b < beams_.size(); ++b) FinishRow(b, beams_[b].score);
  const auto most = static_cast<size_t>(settings_->num_return_sequences);
  if (outputs_.size() > most) outputs_.resize(most);
}

}  // namespace attend
