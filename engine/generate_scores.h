// What the settings of generation make of a row of logits before a token is chosen: tokens
// forbidden, forced, penalised, and for sampling sharpened and cut. Order and meaning are those of
// the logits processors of Hugging Face transformers 5.
#ifndef ATTEND_ENGINE_GENERATE_SCORES_H_
#define ATTEND_ENGINE_GENERATE_SCORES_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/generate_settings.h"

namespace attend {

// Where a row stands: its tokens so far, of which `prompt` were there at the beginning, and the
// longest that it may get, both of the output with its prompt.
struct RowPlace {
  std::span<const int32_t> ids = {};
  int64_t prompt = 0;
  int64_t max_length = 0;
};

// The score of a token that cannot be chosen.
inline constexpr double kNever = -std::numeric_limits<double>::infinity();

// log(sum(exp(logits))), in double precision and in the order of the ids. NaN counts as -infinity.
double LogSumExp(std::span<const float> logits);
double LogSumExp(std::span<const double> scores);

// Belongs to one caller at a time; all memory is taken in the constructor.
class ScoreProcessor {
 public:
  explicit ScoreProcessor(int64_t vocab_size);

  // Changes `scores` [V], which are logits or log-probabilities, in place: forbidden tokens get
  // -infinity, of a forced token the score is 0 and of all others -infinity.
  void Process(const SearchSettings& settings, const RowPlace& place, std::span<double> scores);

  // Whether a token was forced in the last call of Process.
  bool forced() const { return forced_; }

  // Temperature, top_k, top_p and min_p, then renormalising. Keeps at least `least` tokens.
  void Warp(const SearchSettings& settings, int64_t least, std::span<double> scores);

 private:
  void PenalizeRepetition(double penalty, const RowPlace& place, std::span<double> scores);
  void Force(const SearchSettings& settings, const RowPlace& place, std::span<double> scores);
  void KeepTopK(int64_t k, std::span<double> scores);
  void KeepTopP(double p, int64_t least, std::span<double> scores);
  void KeepMinP(double p, int64_t least, std::span<double> scores);

  std::vector<int32_t> order_;   // [V] scratch
  std::vector<uint64_t> stamp_;  // [V] the last pass that has seen the token
  uint64_t pass_ = 0;
  bool forced_ = false;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_GENERATE_SCORES_H_
