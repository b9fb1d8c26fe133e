#include "tools/convert_plan.h"

#include <algorithm>
#include <iterator>

#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

struct ActivationRow {
  std::string_view name;
  Activation activation;
};

// Only names whose function is exactly one of ours. gelu_10 clips and quick_gelu is another curve:
// both are refused. All of the gelu_tanh rows are Hendrycks and Gimpel's formula with tanh.
constexpr ActivationRow kActivations[] = {
    {"gelu", Activation::kGelu},          {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},  {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh}, {"gelu_accurate", Activation::kGeluTanh},
    {"relu", Activation::kRelu},          {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
};

std::string ActivationNames() {
  std::string names;
  for (const ActivationRow& row : kActivations) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

// Fields that transformers writes and that change nothing of what is computed, or that a converter
// reads. What is not here is named to the user: it may come from a newer version.
constexpr std::string_view kKnownFields[] = {
    "_attn_implementation",
    "_commit_hash",
    "_name_or_path",
    "_num_labels",
    "activation",
    "activation_dropout",
    "activation_function",
    "add_bias_logits",
    "add_cross_attention",
    "add_final_layer_norm",
    "architectures",
    "attend_type_ids",
    "attention_bias",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classif_dropout",
    "classifier_dropout",
    "cls_token_id",
    "d_ff",
    "d_kv",
    "d_model",
    "decoder_attention_heads",
    "decoder_ffn_dim",
    "decoder_layerdrop",
    "decoder_layers",
    "decoder_start_token_id",
    "decoder_vocab_size",
    "dense_act_fn",
    "description",
    "dim",
    "directionality",
    "do_sample",
    "dropout",
    "dropout_rate",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "embedding_size",
    "encoder_attention_heads",
    "encoder_ffn_dim",
    "encoder_layerdrop",
    "encoder_layers",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "extra_pos_embeddings",
    "feed_forward_proj",
    "finetuning_task",
    "force_bos_token_to_be_generated",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "head_dim",
    "hidden_act",
    "hidden_dim",
    "hidden_dropout_prob",
    "hidden_size",
    "id2label",
    "init_std",
    "initializer_factor",
    "initializer_range",
    "intermediate_size",
    "is_decoder",
    "is_encoder_decoder",
    "is_gated_act",
    "label2id",
    "language",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layer_types",
    "length_penalty",
    "mask_token_id",
    "max_length",
    "max_position_embeddings",
    "max_window_layers",
    "min_length",
    "mlp_bias",
    "model_type",
    "n_ctx",
    "n_embd",
    "n_head",
    "n_heads",
    "n_inner",
    "n_layer",
    "n_layers",
    "n_positions",
    "name",
    "no_repeat_ngram_size",
    "normalize_before",
    "normalize_embedding",
    "num_attention_heads",
    "num_beams",
    "num_decoder_layers",
    "num_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_labels",
    "num_layers",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "position_embedding_type",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "pruned_heads",
    "qa_dropout",
    "quantization_config",
    "relative_attention_max_distance",
    "relative_attention_num_buckets",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "scale_decoder_outputs",
    "scale_embedding",
    "sep_token_id",
    "seq_classif_dropout",
    "share_encoder_decoder_embeddings",
    "sinusoidal_pos_embds",
    "sliding_window",
    "static_position_embeddings",
    "summary_activation",
    "summary_first_dropout",
    "summary_last_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tie_weights_",
    "tie_word_embeddings",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "type_vocab_size",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
    "use_sliding_window",
    "vocab_size",
};

}  // namespace

Status UnsupportedField(std::string_view key, const json& value, std::string_view allowed,
                        std::string_view where) {
  return {ErrorCode::kUnsupported,
          "the field \"" + std::string(key) + "\" is " + JsonExcerpt(value) +
              "; allowed: " + std::string(allowed),
          std::string(where)};
}

template <typename T>
T FieldReader::Take(Result<T> result) {
  if (result.ok()) return *std::move(result);
  if (status_.ok()) status_ = result.status();
  return T();
}

int64_t FieldReader::Int(std::string_view key, int64_t min, int64_t max) {
  return Take(JsonInt(object_, key, min, max, where_));
}

int64_t FieldReader::Int(std::string_view key, int64_t min, int64_t max, int64_t fallback) {
  return Take(JsonInt(object_, key, min, max, where_, fallback));
}

double FieldReader::Float(std::string_view key, double min, double max, double fallback) {
  return Take(JsonFloat(object_, key, min, max, where_, fallback));
}

bool FieldReader::Bool(std::string_view key, bool fallback) {
  return Take(JsonBool(object_, key, where_, fallback));
}

std::string FieldReader::String(std::string_view key, std::string_view fallback) {
  return Take(JsonString(object_, key, where_, fallback));
}

Activation FieldReader::ActivationName(std::string_view key, std::string_view fallback) {
  const std::string name = String(key, fallback);
  for (const ActivationRow& row : kActivations) {
    if (row.name == name) return row.activation;
  }
  if (status_.ok()) status_ = UnsupportedField(key, json(name), ActivationNames(), where_);
  return Activation::kNone;
}

void FieldReader::MustBe(std::string_view key, const json& allowed) {
  const json* value = JsonFind(object_, key);
  if (value == nullptr || *value == allowed || !status_.ok()) return;
  status_ = UnsupportedField(key, *value, JsonExcerpt(allowed), where_);
}

void ConversionPlan::MapLinear(const std::string& name, const std::string& source) {
  tensors[name + ".weight"] = source + ".weight";
  tensors[name + ".bias"] = source + ".bias";
}

void ConversionPlan::MapWeight(const WeightStore& weights, const std::string& name,
                               const std::string& source, bool bias) {
  tensors[name + ".weight"] = source + ".weight";
  if (bias || weights.Has(source + ".bias")) tensors[name + ".bias"] = source + ".bias";
}

void ConversionPlan::MapNorm(const WeightStore& weights, const std::string& name,
                             const std::string& source) {
  const bool old_names = !weights.Has(source + ".weight") && weights.Has(source + ".gamma");
  tensors[name + ".weight"] = source + (old_names ? ".gamma" : ".weight");
  tensors[name + ".bias"] = source + (old_names ? ".beta" : ".bias");
}

Result<Head> FindHead(const ConversionSource& source, std::string_view family,
                      std::initializer_list<std::string_view> encoder_only) {
  if (source.class_name.empty()) {
    // Without the name of a class, a tensor of a head could be any head's.
    for (const char* tensor : {"classifier.weight", "classifier.out_proj.weight"}) {
      if (!source.weights.Has(tensor) || source.sentence_embedding) continue;
      return Status(ErrorCode::kCorrupt,
                    std::string("expected the class of the model, got none, and the tensor \"") +
                        tensor + "\" belongs to a head",
                    source.where + ", field \"architectures\"");
    }
    return Head::kNone;
  }
  const std::string_view name = source.class_name;
  std::string allowed;
  const auto is = [&](std::string_view suffix) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(family) + std::string(suffix);
    return name.starts_with(family) && name.substr(family.size()) == suffix;
  };
  if (is("Model")) return Head::kNone;
  if (is("ForTokenClassification")) return Head::kTokens;
  if (is("ForSequenceClassification")) return Head::kSequence;
  for (const std::string_view suffix : encoder_only) {
    if (is(suffix)) return Head::kNone;
  }
  return UnsupportedField("architectures", json(source.class_name), allowed, source.where);
}

Result<std::string> FindPrefix(const ConversionSource& source,
                               std::initializer_list<std::string_view> prefixes,
                               std::string_view tensor) {
  std::string found;
  size_t count = 0;
  std::string names;
  for (const std::string_view prefix : prefixes) {
    const std::string name = std::string(prefix) + std::string(tensor);
    names += (names.empty() ? "\"" : " or \"") + name + "\"";
    if (!source.weights.Has(name)) continue;
    found = prefix;
    ++count;
  }
  if (count == 1) return found;
  return Status(ErrorCode::kCorrupt,
                count == 0 ? "the tensor " + names + " is missing"
                           : "expected one of the tensors " + names + ", got " +
                                 std::to_string(count) + ": which are the model's?",
                source.where, count == 0 ? "the weights are not those of this config.json" : "");
}

Status CheckClass(const ConversionSource& source, std::initializer_list<std::string_view> classes) {
  std::string allowed;
  for (const std::string_view name : classes) {
    if (source.class_name.empty() || source.class_name == name) return {};
    allowed += (allowed.empty() ? "" : ", ") + std::string(name);
  }
  return UnsupportedField("architectures", json(source.class_name), allowed, source.where);
}

Result<std::string> FindTensor(const ConversionSource& source,
                               std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (source.weights.Has(name)) return std::string(name);
  }
  return Status(ErrorCode::kCorrupt,
                "the tensor \"" + std::string(*names.begin()) + "\" is missing", source.where,
                "the weights are not those of this config.json");
}

Status MapLabels(const ConversionSource& source, const std::string& name, ConversionPlan* plan) {
  plan->MapLinear("head", name);
  const SourceTensor* weight = source.weights.Find(name + ".weight");
  if (weight == nullptr) {
    return {ErrorCode::kCorrupt, "the tensor \"" + name + ".weight\" is missing", source.where};
  }
  const std::vector<uint64_t>& shape = weight->stored->shape;
  if (shape.size() != 2 || shape[0] == 0 || shape[0] > 65536) {
    return {ErrorCode::kCorrupt,
            "the tensor \"" + name + ".weight\" is " + weight->stored->Describe() +
                "; expected [labels, hidden_size] with 1 to 65536 labels",
            source.where};
  }
  ModelConfig& config = plan->config;
  config.num_labels = static_cast<int64_t>(shape[0]);
  const json* problem = JsonFind(source.config, "problem_type");
  const bool scores_differ = problem != nullptr && *problem != "single_label_classification" &&
                             !(*problem == "regression" && shape[0] == 1);
  if (scores_differ) {  // several labels at once would need a sigmoid for every score
    return UnsupportedField("problem_type", *problem,
                            "single_label_classification, and regression with one label",
                            source.where);
  }
  const auto rows = static_cast<size_t>(shape[0]);
  const json* names = JsonFind(source.config, "id2label");
  if (names == nullptr) {
    for (size_t i = 0; i < rows; ++i) config.labels.push_back("LABEL_" + std::to_string(i));
    plan->notes.push_back("config.json has no id2label: the labels are called LABEL_0, ...");
    return {};
  }
  if (!names->is_object() || names->size() != rows) {
    return JsonFieldError(
        "id2label", names->is_object() ? json(std::to_string(names->size()) + " labels") : *names,
        "an object of " + std::to_string(rows) + " labels, one for every row of " + name +
            ".weight",
        source.where);
  }
  for (size_t i = 0; i < rows; ++i) {
    const auto label = names->find(std::to_string(i));
    const auto* text = label == names->end() ? nullptr : label->get_ptr<const std::string*>();
    if (text == nullptr) {
      return JsonFieldError(
          "id2label[\"" + std::to_string(i) + "\"]", label == names->end() ? json() : *label,
          "a string, for every key from \"0\" to \"" + std::to_string(rows - 1) + "\"",
          source.where);
    }
    config.labels.push_back(*text);
  }
  return {};
}

Status CheckCommonFields(const ConversionSource& source, bool encoder_decoder) {
  FieldReader fields(source.config, source.where);
  fields.MustBe("position_embedding_type", "absolute");
  fields.MustBe("is_decoder", false);
  fields.MustBe("add_cross_attention", false);
  fields.MustBe("is_encoder_decoder", encoder_decoder);
  fields.MustBe("pruned_heads", json::object());
  // Whatever such models compute stands in Python or in another storage format, not here.
  fields.MustBe("auto_map", json::object());
  fields.MustBe("quantization_config", json::object());
  return fields.status();
}

void NoteUnknownFields(const ConversionSource& source, ConversionPlan* plan) {
  std::string names;
  for (const auto& [name, value] : source.config.items()) {
    const bool known =
        std::find(std::begin(kKnownFields), std::end(kKnownFields), name) != std::end(kKnownFields);
    if (!known && names.size() < 1000) names += (names.empty() ? "" : ", ") + Printable(name, 80);
  }
  if (names.empty()) return;
  plan->notes.push_back("config.json has fields that are not known here and were not used: " +
                        names);
}

Status SetEncoderShape(const ConversionSource& source, std::string_view heads_field,
                       std::string_view width_field, ModelConfig* config) {
  if (config->hidden_size % config->num_heads != 0) {
    return {ErrorCode::kCorrupt,
            "the field \"" + std::string(heads_field) + "\" is " +
                std::to_string(config->num_heads) + "; expected a divisor of " +
                std::string(width_field) + ", " + std::to_string(config->hidden_size),
            source.where};
  }
  config->num_kv_heads = config->num_heads;
  config->head_dim = config->hidden_size / config->num_heads;
  config->embedding_size = config->hidden_size;
  config->position = Position::kLearned;
  config->max_length = config->max_positions;
  config->norm = NormPlace::kPost;
  return {};
}

}  // namespace attend
