// The search for outputs: greedy, beams, samples. It stands on a door that gives the logits of the
// next token, and knows no model. Texts are decoded side by side, in slots; a slot whose text is
// done takes the next one at once.
#ifndef ATTEND_ENGINE_GENERATE_H_
#define ATTEND_ENGINE_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "attend/status.h"
#include "engine/decoder.h"
#include "engine/generate_scores.h"
#include "engine/generate_settings.h"
#include "engine/generate_slot.h"

namespace attend {

// What a search asks of a model. The meaning is DecodeSession's, row by row.
class NextLogits {
 public:
  virtual ~NextLogits() = default;
  virtual Result<std::span<const float>> Start(const DecodeStart& start) = 0;
  virtual Result<std::span<const float>> Step(std::span<const int32_t> rows,
                                              std::span<const int32_t> parents,
                                              std::span<const int32_t> ids) = 0;
  virtual Status Release(std::span<const int32_t> rows) = 0;
};

// A text to decode.
struct SearchRequest {
  std::span<const int32_t> source = {};  // what an encoder reads; empty without one
  std::span<const int32_t> prompt = {};  // what the output begins with, at least one token
  int64_t max_length = 0;                // of the output, prompt included; more than the prompt
};

// Everything that decides memory.
struct SearchLimits {
  int64_t vocab_size = 0;  // V
  int32_t slots = 1;       // texts decoded side by side
  int32_t rows = 1;        // of one text
  int64_t candidates = 2;  // SearchSettings::num_candidates()
  int64_t max_length = 1;  // of an output, prompt included
};

// Belongs to one caller at a time. All memory is taken in the constructor and by the first Run of
// more requests than any before; a step allocates nothing.
class Search {
 public:
  explicit Search(const SearchLimits& limits);

  // Called once for every request, as it is done: not in order.
  using Sink = std::function<void(size_t request, const SearchSlot& outputs)>;

  // Decodes all requests. Requires: settings and requests within the limits.
  // Errors: the door's. All rows are released, whatever happens; those of a run that threw, by the
  // next one.
  Status Run(std::span<const SearchRequest> requests, const SearchSettings& settings,
             NextLogits* model, const Sink& sink);

  const SearchLimits& limits() const { return limits_; }
  size_t memory_bytes() const;

 private:
  Status StartRequests(std::span<const SearchRequest> requests, const SearchSettings& settings,
                       NextLogits* model, const Sink& sink);
  Status StepAll(NextLogits* model, const Sink& sink);
  // Hands out what is done, and frees its slot.
  Status Collect(NextLogits* model, const Sink& sink);
  Status ReleaseAll(NextLogits* model);
  // Releases what rows_ lists.
  Status ReleaseRows(NextLogits* model);
  int32_t FirstRow(size_t slot) const { return static_cast<int32_t>(slot) * limits_.rows; }

  SearchLimits limits_;
  ScoreProcessor processor_;
  SearchScratch scratch_;
  std::vector<SearchSlot> slots_;
  std::vector<size_t> request_of_;   // by slot
  std::vector<bool> is_busy_;        // by slot
  std::vector<int32_t> alive_rows_;  // by row: 1 if the door has it
  size_t next_request_ = 0;
  size_t num_busy_ = 0;

  // Of one call of the door.
  std::vector<int32_t> rows_, parents_, ids_, source_ids_, source_offsets_, offsets_;
  std::vector<size_t> started_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_GENERATE_H_
