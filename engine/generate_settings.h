// The settings of generation: laid over each other, checked, kept in model files under the keys
// "generation.NAME", and made plain for the search.
#ifndef ATTEND_ENGINE_GENERATE_SETTINGS_H_
#define ATTEND_ENGINE_GENERATE_SETTINGS_H_

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "attend/status.h"
#include "attend/text.h"
#include "engine/format.h"

namespace attend {

inline constexpr int32_t kMaxBeams = 256;
inline constexpr int32_t kMaxGenerationLength = 1 << 24;

// Calls visit("num_beams", settings.num_beams...) for every field of one or several settings.
template <typename Visit, typename... Settings>
void VisitSettings(Visit&& visit, Settings&... s) {
  visit("num_beams", s.num_beams...);
  visit("num_return_sequences", s.num_return_sequences...);
  visit("max_new_tokens", s.max_new_tokens...);
  visit("max_length", s.max_length...);
  visit("min_length", s.min_length...);
  visit("min_new_tokens", s.min_new_tokens...);
  visit("early_stopping", s.early_stopping...);
  visit("length_penalty", s.length_penalty...);
  visit("no_repeat_ngram_size", s.no_repeat_ngram_size...);
  visit("repetition_penalty", s.repetition_penalty...);
  visit("renormalize_logits", s.renormalize_logits...);
  visit("do_sample", s.do_sample...);
  visit("temperature", s.temperature...);
  visit("top_k", s.top_k...);
  visit("top_p", s.top_p...);
  visit("min_p", s.min_p...);
  visit("seed", s.seed...);
  visit("eos_token_id", s.eos_token_id...);
  visit("bos_token_id", s.bos_token_id...);
  visit("pad_token_id", s.pad_token_id...);
  visit("decoder_start_token_id", s.decoder_start_token_id...);
  visit("forced_bos_token_id", s.forced_bos_token_id...);
  visit("forced_eos_token_id", s.forced_eos_token_id...);
  visit("suppress_tokens", s.suppress_tokens...);
  visit("begin_suppress_tokens", s.begin_suppress_tokens...);
  visit("bad_words_ids", s.bad_words_ids...);
}

// `over` where it is set, else `base`.
GenerationSettings Overlay(const GenerationSettings& over, const GenerationSettings& base);

// The defaults of every field. max_new_tokens and max_length stay open.
GenerationSettings DefaultSettings();

// Whether `settings`, in which nothing but the lengths is open, are in their ranges and go with
// each other and with a vocabulary of `vocab_size`.
// Errors: kInvalidArgument naming the setting, what was found and what is expected.
Status CheckSettings(const GenerationSettings& settings, int64_t vocab_size);

// What a model file says. Errors: kCorrupt (a key of another type, or malformed); kUnsupported (a
// key of a newer version).
Result<GenerationSettings> ReadGenerationKeys(const FileView& file);

// Stores what is set.
void WriteGenerationKeys(const GenerationSettings& settings, FileWriter* writer);

// Checked settings as the search reads them.
struct SearchSettings {
  int32_t num_beams = 1;
  int32_t num_return_sequences = 1;
  int32_t max_new_tokens = 0;  // 0: max_length says
  int32_t max_length = 0;      // 0, and max_new_tokens 0: 20 new tokens, as far as the model goes
  int32_t min_length = 0;
  int32_t min_new_tokens = 0;
  EarlyStopping early_stopping = EarlyStopping::kNo;
  double length_penalty = 1;
  int32_t no_repeat_ngram_size = 0;
  double repetition_penalty = 1;
  bool renormalize_logits = false;
  bool do_sample = false;
  double temperature = 1;
  int32_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  uint64_t seed = 0;
  int32_t bos_token_id = -1;
  int32_t decoder_start_token_id = -1;
  int32_t forced_bos_token_id = -1;
  std::vector<int32_t> eos_token_ids = {}, forced_eos_token_ids = {};
  std::vector<int32_t> suppress_tokens = {}, begin_suppress_tokens = {};
  std::vector<std::vector<int32_t>> bad_words = {};  // without those that are one end token

  // Rows that one text needs at a time.
  int32_t rows() const { return num_beams > 1 ? num_beams : num_return_sequences; }
  // How many best continuations a step of beam search looks at: enough that num_beams are left if
  // all others end.
  int64_t num_candidates() const {
    const auto ends = static_cast<int64_t>(eos_token_ids.size());
    return (ends > 0 ? ends + 1 : 2) * num_beams;
  }
  // The longest output that begins with `prompt` tokens; `model_length` is the longest the model
  // takes, 0: any.
  int64_t LongestOutput(int64_t prompt, int64_t model_length) const;
};

SearchSettings PlainSettings(const GenerationSettings& settings);

}  // namespace attend

#endif  // ATTEND_ENGINE_GENERATE_SETTINGS_H_
