#include "engine/generate_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace attend {
namespace {

constexpr std::string_view kPrefix = "generation.";
constexpr int32_t kDefaultNewTokens = 20;
constexpr int32_t kDefaultTopK = 50;
constexpr const char* kEarlyStoppingNames[] = {"no", "yes", "never"};

using Ids = std::vector<int32_t>;

Status Wrong(std::string_view name, const std::string& found, const std::string& expected) {
  return Status(ErrorCode::kInvalidArgument, "found " + found + "; expected " + expected,
                std::string(name));
}

std::string Text(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

Status CheckInt(std::string_view name, std::optional<int32_t> value, int32_t min, int32_t max) {
  if (!value.has_value() || (*value >= min && *value <= max)) return {};
  return Wrong(name, std::to_string(*value), std::to_string(min) + " to " + std::to_string(max));
}

Status CheckDouble(std::string_view name, std::optional<double> value, double min, double max,
                   const char* expected) {
  if (!value.has_value() || (std::isfinite(*value) && *value >= min && *value <= max)) return {};
  return Wrong(name, Text(*value), expected);
}

Status CheckId(const std::string& name, int32_t id, int64_t vocab_size, bool may_be_none) {
  if (id >= 0 && id < vocab_size) return {};
  if (may_be_none && id == -1) return {};
  return Wrong(name, std::to_string(id),
               std::string(may_be_none ? "-1 (none), or " : "") + "0 to " +
                   std::to_string(vocab_size - 1) + " (the vocabulary)");
}

Status CheckIdList(const std::string& name, const std::optional<Ids>& ids, int64_t vocab_size) {
  for (size_t i = 0; ids.has_value() && i < ids->size(); ++i) {
    ATTEND_RETURN_IF_ERROR(
        CheckId(name + "[" + std::to_string(i) + "]", (*ids)[i], vocab_size, false));
  }
  return {};
}

Status CheckTokens(const GenerationSettings& s, int64_t vocab_size) {
  const std::pair<const char*, const std::optional<int32_t>*> single[] = {
      {"bos_token_id", &s.bos_token_id},
      {"decoder_start_token_id", &s.decoder_start_token_id},
      {"forced_bos_token_id", &s.forced_bos_token_id}};
  for (const auto& [name, id] : single) {
    if (id->has_value()) ATTEND_RETURN_IF_ERROR(CheckId(name, **id, vocab_size, true));
  }
  const std::pair<const char*, const std::optional<Ids>*> lists[] = {
      {"eos_token_id", &s.eos_token_id},
      {"forced_eos_token_id", &s.forced_eos_token_id},
      {"suppress_tokens", &s.suppress_tokens},
      {"begin_suppress_tokens", &s.begin_suppress_tokens}};
  for (const auto& [name, ids] : lists) {
    ATTEND_RETURN_IF_ERROR(CheckIdList(name, *ids, vocab_size));
  }
  for (size_t i = 0; s.bad_words_ids.has_value() && i < s.bad_words_ids->size(); ++i) {
    const std::string name = "bad_words_ids[" + std::to_string(i) + "]";
    if ((*s.bad_words_ids)[i].empty()) return Wrong(name, "no ids", "at least one");
    ATTEND_RETURN_IF_ERROR(CheckIdList(name, (*s.bad_words_ids)[i], vocab_size));
  }
  return {};
}

// A forced token that is suppressed leaves none at all.
Status CheckForced(std::string_view name, const Ids& forced, const GenerationSettings& s) {
  const Ids none;
  const Ids& suppressed = s.suppress_tokens.has_value() ? *s.suppress_tokens : none;
  const auto is_suppressed = [&](int32_t id) {
    return std::find(suppressed.begin(), suppressed.end(), id) != suppressed.end();
  };
  if (forced.empty() || !std::all_of(forced.begin(), forced.end(), is_suppressed)) return {};
  return Wrong(name, std::to_string(forced[0]), "a token that suppress_tokens does not hold");
}

// What goes with what.
Status CheckTogether(const GenerationSettings& s) {
  const int32_t beams = s.num_beams.value_or(1), outputs = s.num_return_sequences.value_or(1);
  if (beams > 1 && outputs > beams) {
    return Wrong("num_return_sequences", std::to_string(outputs),
                 "at most num_beams, " + std::to_string(beams));
  }
  if (beams == 1 && outputs > 1 && !s.do_sample.value_or(false)) {
    return Wrong("num_return_sequences", std::to_string(outputs),
                 "1: greedy search (num_beams 1, no sampling) finds one output");
  }
  const int32_t bos = s.forced_bos_token_id.value_or(-1);
  if (bos >= 0) ATTEND_RETURN_IF_ERROR(CheckForced("forced_bos_token_id", {bos}, s));
  if (s.forced_eos_token_id.has_value()) {
    return CheckForced("forced_eos_token_id", *s.forced_eos_token_id, s);
  }
  return {};
}

// Writers and readers of one value each.
class KeyWriter {
 public:
  explicit KeyWriter(FileWriter* writer) : writer_(writer) {}

  template <typename T>
  void operator()(std::string_view name, const std::optional<T>& value) const {
    if (!value.has_value()) return;
    const std::string key = std::string(kPrefix) + std::string(name);
    if constexpr (std::is_same_v<T, bool>) {
      writer_->SetBool(key, *value);
    } else if constexpr (std::is_integral_v<T>) {
      writer_->SetInt(key, static_cast<int64_t>(*value));
    } else if constexpr (std::is_floating_point_v<T>) {
      writer_->SetFloat(key, *value);
    } else if constexpr (std::is_same_v<T, EarlyStopping>) {
      writer_->SetString(key, kEarlyStoppingNames[static_cast<size_t>(*value)]);
    } else {
      writer_->SetInts(key, Flat(*value));
    }
  }

 private:
  static std::vector<int64_t> Flat(const Ids& ids) { return {ids.begin(), ids.end()}; }
  // Each list with its length in front.
  static std::vector<int64_t> Flat(const std::vector<Ids>& lists) {
    std::vector<int64_t> flat;
    for (const Ids& list : lists) {
      flat.push_back(static_cast<int64_t>(list.size()));
      flat.insert(flat.end(), list.begin(), list.end());
    }
    return flat;
  }

  FileWriter* writer_;
};

class KeyReader {
 public:
  explicit KeyReader(const FileView& file) : file_(file) {
    for (std::string_view key : file.keys()) {
      if (key.starts_with(kPrefix)) open_.push_back(key);
    }
  }

  template <typename T>
  void operator()(std::string_view name, std::optional<T>& out) {
    const std::string key = std::string(kPrefix) + std::string(name);
    const auto found = std::find(open_.begin(), open_.end(), key);
    if (found == open_.end()) return;
    open_.erase(found);
    if (!Take(key, &out) && status_.ok()) {
      status_ = Status(ErrorCode::kCorrupt, "the key has a type or value that it cannot have", key);
    }
  }

  Status status() const {
    if (!status_.ok() || open_.empty()) return status_;
    return Status(ErrorCode::kUnsupported, "this version knows no such setting of generation",
                  std::string(open_.front()), "update attend, or convert the model again");
  }

 private:
  static bool Fits(int64_t value) {
    return value >= std::numeric_limits<int32_t>::min() &&
           value <= std::numeric_limits<int32_t>::max();
  }
  static bool Narrow(std::span<const int64_t> values, Ids* out) {
    for (int64_t value : values) {
      if (!Fits(value)) return false;
      out->push_back(static_cast<int32_t>(value));
    }
    return true;
  }

  bool Take(const std::string& key, std::optional<int32_t>* out) const {
    const std::optional<int64_t> value = file_.FindInt(key);
    if (!value.has_value() || !Fits(*value)) return false;
    *out = static_cast<int32_t>(*value);
    return true;
  }
  bool Take(const std::string& key, std::optional<uint64_t>* out) const {
    const std::optional<int64_t> value = file_.FindInt(key);
    if (value.has_value()) *out = static_cast<uint64_t>(*value);
    return value.has_value();
  }
  bool Take(const std::string& key, std::optional<double>* out) const {
    *out = file_.FindFloat(key);
    return out->has_value();
  }
  bool Take(const std::string& key, std::optional<bool>* out) const {
    *out = file_.FindBool(key);
    return out->has_value();
  }
  bool Take(const std::string& key, std::optional<EarlyStopping>* out) const {
    const std::optional<std::string_view> value = file_.FindString(key);
    for (size_t i = 0; value.has_value() && i < std::size(kEarlyStoppingNames); ++i) {
      if (*value == kEarlyStoppingNames[i]) *out = static_cast<EarlyStopping>(i);
    }
    return out->has_value();
  }
  bool Take(const std::string& key, std::optional<Ids>* out) const {
    const std::optional<std::vector<int64_t>> values = file_.FindInts(key);
    return values.has_value() && Narrow(*values, &out->emplace());
  }
  bool Take(const std::string& key, std::optional<std::vector<Ids>>* out) const {
    const std::optional<std::vector<int64_t>> values = file_.FindInts(key);
    if (!values.has_value()) return false;
    out->emplace();
    for (size_t at = 0; at < values->size();) {
      const int64_t length = (*values)[at++];
      if (length < 0 || static_cast<uint64_t>(length) > values->size() - at) return false;
      const auto size = static_cast<size_t>(length);
      if (!Narrow(std::span(*values).subspan(at, size), &(*out)->emplace_back())) return false;
      at += size;
    }
    return true;
  }

  const FileView& file_;
  std::vector<std::string_view> open_;
  Status status_;
};

}  // namespace

GenerationSettings Overlay(const GenerationSettings& over, const GenerationSettings& base) {
  GenerationSettings result = over;
  VisitSettings(
      [](std::string_view, auto& mine, const auto& theirs) {
        if (!mine.has_value()) mine = theirs;
      },
      result, base);
  return result;
}

GenerationSettings DefaultSettings() {
  return {.num_beams = 1,
          .num_return_sequences = 1,
          .max_new_tokens = {},
          .max_length = {},
          .min_length = 0,
          .min_new_tokens = 0,
          .early_stopping = EarlyStopping::kNo,
          .length_penalty = 1.0,
          .no_repeat_ngram_size = 0,
          .repetition_penalty = 1.0,
          .renormalize_logits = false,
          .do_sample = false,
          .temperature = 1.0,
          .top_k = kDefaultTopK,
          .top_p = 1.0,
          .min_p = 0.0,
          .seed = 0,
          .eos_token_id = Ids(),
          .bos_token_id = -1,
          .pad_token_id = -1,
          .decoder_start_token_id = -1,
          .forced_bos_token_id = -1,
          .forced_eos_token_id = Ids(),
          .suppress_tokens = Ids(),
          .begin_suppress_tokens = Ids(),
          .bad_words_ids = std::vector<Ids>()};
}

Status CheckSettings(const GenerationSettings& s, int64_t vocab_size) {
  ATTEND_RETURN_IF_ERROR(CheckInt("num_beams", s.num_beams, 1, kMaxBeams));
  ATTEND_RETURN_IF_ERROR(CheckInt("num_return_sequences", s.num_return_sequences, 1, kMaxBeams));
  ATTEND_RETURN_IF_ERROR(CheckInt("max_new_tokens", s.max_new_tokens, 1, kMaxGenerationLength));
  ATTEND_RETURN_IF_ERROR(CheckInt("max_length", s.max_length, 1, kMaxGenerationLength));
  ATTEND_RETURN_IF_ERROR(CheckInt("min_length", s.min_length, 0, kMaxGenerationLength));
  ATTEND_RETURN_IF_ERROR(CheckInt("min_new_tokens", s.min_new_tokens, 0, kMaxGenerationLength));
  ATTEND_RETURN_IF_ERROR(
      CheckInt("no_repeat_ngram_size", s.no_repeat_ngram_size, 0, kMaxGenerationLength));
  ATTEND_RETURN_IF_ERROR(CheckInt("top_k", s.top_k, 0, std::numeric_limits<int32_t>::max()));
  constexpr double kLargest = 1e6, kSmallest = 1e-6;
  ATTEND_RETURN_IF_ERROR(
      CheckDouble("length_penalty", s.length_penalty, -100, 100, "a number from -100 to 100"));
  ATTEND_RETURN_IF_ERROR(CheckDouble("repetition_penalty", s.repetition_penalty, kSmallest,
                                     kLargest, "a number above 0"));
  ATTEND_RETURN_IF_ERROR(CheckDouble("temperature", s.temperature, kSmallest, kLargest,
                                     "a number above 0 (greedy search needs no temperature)"));
  ATTEND_RETURN_IF_ERROR(CheckDouble("top_p", s.top_p, 0, 1, "a number from 0 to 1"));
  ATTEND_RETURN_IF_ERROR(CheckDouble("min_p", s.min_p, 0, 1, "a number from 0 to 1"));
  ATTEND_RETURN_IF_ERROR(CheckTokens(s, vocab_size));
  return CheckTogether(s);
}

Result<GenerationSettings> ReadGenerationKeys(const FileView& file) {
  GenerationSettings settings;
  KeyReader reader(file);
  VisitSettings(reader, settings);
  ATTEND_RETURN_IF_ERROR(reader.status());
  return settings;
}

void WriteGenerationKeys(const GenerationSettings& settings, FileWriter* writer) {
  VisitSettings(KeyWriter(writer), settings);
}

int64_t SearchSettings::LongestOutput(int64_t prompt, int64_t model_length) const {
  if (max_new_tokens > 0) return prompt + max_new_tokens;
  if (max_length > 0) return max_length;
  const int64_t longest = prompt + kDefaultNewTokens;
  return model_length > 0 ? std::min(longest, model_length) : longest;
}

SearchSettings PlainSettings(const GenerationSettings& settings) {
  const GenerationSettings s = Overlay(settings, DefaultSettings());
  SearchSettings plain{.num_beams = *s.num_beams,
                       .num_return_sequences = *s.num_return_sequences,
                       .max_new_tokens = s.max_new_tokens.value_or(0),
                       .max_length = s.max_length.value_or(0),
                       .min_length = *s.min_length,
                       .min_new_tokens = *s.min_new_tokens,
                       .early_stopping = *s.early_stopping,
                       .length_penalty = *s.length_penalty,
                       .no_repeat_ngram_size = *s.no_repeat_ngram_size,
                       .repetition_penalty = *s.repetition_penalty,
                       .renormalize_logits = *s.renormalize_logits,
                       .do_sample = *s.do_sample,
                       .temperature = *s.temperature,
                       .top_k = *s.top_k,
                       .top_p = *s.top_p,
                       .min_p = *s.min_p,
                       .seed = *s.seed,
                       .bos_token_id = *s.bos_token_id,
                       .decoder_start_token_id = *s.decoder_start_token_id,
                       .forced_bos_token_id = *s.forced_bos_token_id,
                       .eos_token_ids = *s.eos_token_id,
                       .forced_eos_token_ids = *s.forced_eos_token_id,
                       .suppress_tokens = *s.suppress_tokens,
                       .begin_suppress_tokens = *s.begin_suppress_tokens,
                       .bad_words = *s.bad_words_ids};
  if (plain.decoder_start_token_id < 0) plain.decoder_start_token_id = plain.bos_token_id;
  const Ids& ends = plain.eos_token_ids;
  std::erase_if(plain.bad_words, [&](const Ids& word) {
    return word.size() == 1 && std::find(ends.begin(), ends.end(), word[0]) != ends.end();
  });
  return plain;
}

}  // namespace attend
