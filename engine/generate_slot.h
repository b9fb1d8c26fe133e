// The search for the outputs of one text: from the logits of its rows to the rows of the next step.
#ifndef ATTEND_ENGINE_GENERATE_SLOT_H_
#define ATTEND_ENGINE_GENERATE_SLOT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate_scores.h"
#include "engine/generate_settings.h"

namespace attend {

// The score of a beam that comes after every other, and of an output that is not there yet.
inline constexpr double kWorst = -1e9;

// A continuation of a beam.
struct SearchCandidate {
  double score = 0;  // the sum of the log-probabilities
  double key = 0;    // what it is ranked by: the score, or the score with noise
  int32_t beam = 0;
  int32_t token = 0;
};

// What slots use one after another.
struct SearchScratch {
  explicit SearchScratch(int64_t vocab_size, int64_t candidates);

  std::vector<double> scores;  // [V]
  std::vector<SearchCandidate> candidates;
  std::vector<int32_t> chosen;
};

// Token sequences of a bounded length, row by row, in memory taken once.
class TokenRows {
 public:
  TokenRows(int32_t rows, int64_t max_length)
      : stride_(static_cast<size_t>(max_length)),
        ids_(stride_ * static_cast<size_t>(rows)),
        lengths_(static_cast<size_t>(rows)) {}

  std::span<const int32_t> row(size_t i) const {
    return std::span(ids_).subspan(i * stride_, lengths_[i]);
  }
  void Assign(size_t i, std::span<const int32_t> ids);
  void Append(size_t i, int32_t id) { ids_[i * stride_ + lengths_[i]++] = id; }
  size_t bytes() const { return ids_.size() * sizeof(int32_t) + lengths_.size() * sizeof(size_t); }

 private:
  size_t stride_;
  std::vector<int32_t> ids_;
  std::vector<size_t> lengths_;
};

// Belongs to one caller at a time; all memory is taken in the constructor.
class SearchSlot {
 public:
  SearchSlot(int32_t rows, int64_t max_length);

  // Begins with `prompt` in row 0. `settings` must stay until the slot is done.
  void Begin(const SearchSettings& settings, std::span<const int32_t> prompt, int64_t max_length);

  // Takes the logits [num_rows(), V] of its rows and decides how they go on.
  void Advance(std::span<const float> logits, ScoreProcessor* processor, SearchScratch* scratch);

  // Whether nothing goes on.
  bool done() const { return parents_.empty(); }
  // How many rows the next logits are of.
  size_t num_rows() const { return parents_.size(); }
  // Row i of the next step continues row parents()[i] of this step, by the token ids()[i]. Rows are
  // named by row_names(): those of a greedy search or of samples keep their names.
  std::span<const int32_t> row_names() const { return names_; }
  std::span<const int32_t> parents() const { return parents_; }
  std::span<const int32_t> ids() const { return next_ids_; }

  // Once it is done: the outputs, best first (samples: in their order).
  size_t num_outputs() const { return outputs_.size(); }
  std::span<const int32_t> output(size_t i) const;  // without the prompt
  double score(size_t i) const { return outputs_[i].score; }

  size_t memory_bytes() const;

 private:
  struct Beam {
    double score = 0;
    int32_t row = 0;  // of the logits
  };
  struct Output {
    double score = 0;
    size_t row = 0;  // of finished_
  };

  // Greedy search and plain sampling: rows that do not know of each other.
  void AdvanceRows(std::span<const float> logits, ScoreProcessor* processor,
                   SearchScratch* scratch);
  int32_t Choose(size_t row, std::span<double> scores, ScoreProcessor* processor);
  int32_t Draw(size_t row, std::span<const double> scores) const;
  // Row `row`, with the sum of its log-probabilities, becomes an output as it is.
  void FinishRow(size_t row, double sum);

  void AdvanceBeams(std::span<const float> logits, ScoreProcessor* processor,
                    SearchScratch* scratch);
  void FindCandidates(std::span<const float> logits, ScoreProcessor* processor,
                      SearchScratch* scratch);
  void Offer(double score, const SearchCandidate& candidate);
  // Moves the beams on to the chosen candidates.
  void Follow(std::span<const SearchCandidate> candidates, std::span<const int32_t> chosen);
  bool MayImprove(double best_running) const;
  void FinishBeams();

  RowPlace Place(size_t row) const;
  bool IsEnd(int32_t id) const;
  void Stop();

  const SearchSettings* settings_ = nullptr;
  int64_t prompt_ = 0;
  int64_t max_length_ = 0;
  int64_t length_ = 0;  // of the rows that go on, prompt included
  TokenRows rows_, other_rows_;
  TokenRows finished_;
  std::vector<double> sums_;  // of a row's log-probabilities; greedy search and sampling
  std::vector<Beam> beams_;
  std::vector<Output> outputs_;
  std::vector<int32_t> names_, parents_, next_ids_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_GENERATE_SLOT_H_
