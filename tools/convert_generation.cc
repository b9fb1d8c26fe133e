#include "tools/convert_generation.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/generate_settings.h"
#include "tools/convert_plan.h"
#include "tools/convert_source.h"
#include "tools/generation_json.h"
#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

// Fields of other ways to generate, with the value that leaves them off. Null always does.
struct OffField {
  const char* name;
  json off;
};

const std::vector<OffField>& OffFields() {
  static const std::vector<OffField> fields = {
      {"assistant_model", nullptr},
      {"constraints", nullptr},
      {"diversity_penalty", 0},
      {"dola_layers", nullptr},
      {"encoder_no_repeat_ngram_size", 0},
      {"encoder_repetition_penalty", 1},
      {"epsilon_cutoff", 0},
      {"eta_cutoff", 0},
      {"exponential_decay_length_penalty", nullptr},
      {"force_words_ids", nullptr},
      {"forced_decoder_ids", nullptr},
      {"guidance_scale", 1},
      {"max_time", nullptr},
      {"num_beam_groups", 1},
      {"penalty_alpha", 0},
      {"prompt_lookup_num_tokens", nullptr},
      {"sequence_bias", nullptr},
      {"stop_strings", nullptr},
      {"top_h", nullptr},
      {"typical_p", 1},
      {"watermarking_config", nullptr},
  };
  return fields;
}

// Fields that do not change what is generated.
constexpr std::string_view kQuietFields[] = {
    "_from_model_config",
    "assistant_confidence_threshold",
    "assistant_early_exit",
    "assistant_lookbehind",
    "cache_config",
    "cache_implementation",
    "compile_config",
    "disable_compile",
    "is_assistant",
    "low_memory",
    "max_cache_len",
    "num_assistant_tokens",
    "max_matching_ngram_size",
    "num_assistant_tokens_schedule",
    "output_attentions",
    "output_hidden_states",
    "output_logits",
    "output_scores",
    "prefill_chunk_size",
    "remove_invalid_values",
    "return_dict_in_generate",
    "target_lookbehind",
    "token_healing",
    "transformers_version",
    "use_cache",
    "generation_kwargs",
};

Status CheckOff(const json& object, const std::string& where) {
  for (const OffField& field : OffFields()) {
    const json* value = JsonFind(object, field.name);
    if (value == nullptr || *value == field.off) continue;
    const std::string off = field.off.is_null() ? "" : " and " + field.off.dump();
    Status status = UnsupportedField(field.name, *value, "null" + off, where);
    return Status(status.code(), status.what(), status.where(),
                  "attend does not generate so; without the field the model converts");
  }
  return {};
}

}  // namespace

Result<GenerationSettings> ReadFolderGeneration(const FolderReader& folder, const json& config,
                                                int64_t vocab_size,
                                                std::vector<std::string>* notes) {
  constexpr const char* kFile = "generation_config.json";
  const bool has_file = folder.Has(kFile);
  const std::string where = folder.PathOf(has_file ? kFile : "config.json");
  json own;
  if (has_file) {
    Result<json> read = folder.ReadJson(kFile, kMaxJsonBytes);
    if (!read.ok()) return read.status();
    own = *std::move(read);
  }
  const json& object = has_file ? own : config;
  GenerationSettings settings;
  std::vector<std::string> unknown;
  ATTEND_RETURN_IF_ERROR(ReadGenerationJson(object, where, &settings, &unknown));
  ATTEND_RETURN_IF_ERROR(CheckOff(object, where));
  const Status status = CheckSettings(settings, vocab_size);
  if (!status.ok()) {
    return Status(ErrorCode::kCorrupt, status.where() + ": " + status.what(), where,
                  "the settings are not this model's");
  }
  for (size_t i = 0; has_file && i < unknown.size(); ++i) {
    const auto is_it = [&](std::string_view name) { return name == unknown[i]; };
    if (std::any_of(std::begin(kQuietFields), std::end(kQuietFields), is_it)) continue;
    if (std::any_of(OffFields().begin(), OffFields().end(),
                    [&](const OffField& field) { return is_it(field.name); })) {
      continue;
    }
    notes->push_back("generation_config.json has a field that attend does not know: " +
                     Printable(unknown[i]));
  }
  return settings;
}

}  // namespace attend
