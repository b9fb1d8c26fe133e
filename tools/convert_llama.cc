// Llama and Qwen3: model_type "llama" and "qwen3". Touvron et al. 2023; Yang et al. 2025.
#include <string>

#include "tools/convert_plan.h"
#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

// The activation of the gate, by its name in config.json.
Status ReadGate(const ConversionSource& source, ModelConfig* config) {
  FieldReader fields(source.config, source.where);
  const Activation activation = fields.ActivationName("hidden_act", "silu");
  ATTEND_RETURN_IF_ERROR(fields.status());
  switch (activation) {
    case Activation::kSilu:
      config->activation = Activation::kSwiglu;
      break;
    case Activation::kGelu:
      config->activation = Activation::kGeglu;
      break;
    case Activation::kGeluTanh:
      config->activation = Activation::kGegluTanh;
      break;
    default:
      config->activation = Activation::kReglu;
  }
  return {};
}

// Rotary angles: rope_parameters, or rope_scaling and rope_theta of older folders.
Status ReadRotary(const ConversionSource& source, ModelConfig* config) {
  config->position = Position::kRotary;
  FieldReader fields(source.config, source.where);
  fields.MustBe("partial_rotary_factor", 1.0);
  config->rope_theta = fields.Float("rope_theta", 1e-3, 1e12, 10000);
  ATTEND_RETURN_IF_ERROR(fields.status());
  const char* name = "rope_parameters";
  const json* rope = JsonFind(source.config, name);
  if (rope == nullptr) rope = JsonFind(source.config, name = "rope_scaling");
  if (rope == nullptr) return {};
  if (!rope->is_object()) return JsonFieldError(name, *rope, "an object", source.where);
  FieldReader inner(*rope, source.where + ", " + name);
  config->rope_theta = inner.Float("rope_theta", 1e-3, 1e12, config->rope_theta);
  inner.MustBe("partial_rotary_factor", 1.0);
  const char* key = JsonFind(*rope, "rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = inner.String(key, "default");
  if (type == "default") return inner.status();
  ATTEND_RETURN_IF_ERROR(inner.status());
  if (type != "linear" && type != "llama3") {
    return UnsupportedField(key, json(type), "default, linear, llama3", source.where + ", " + name);
  }
  const bool linear = type == "linear";
  for (const char* needed : {"factor", "low_freq_factor", "high_freq_factor"}) {
    if (JsonFind(*rope, needed) == nullptr) {
      return {ErrorCode::kCorrupt,
              "the field \"" + std::string(needed) + "\" is missing; " + type + " needs it",
              source.where + ", " + name};
    }
    if (linear) break;
  }
  config->rope_factor = inner.Float("factor", 1, 1e6, 1);
  config->rope_scaling = linear ? RopeScaling::kLinear : RopeScaling::kLlama3;
  if (linear) return inner.status();
  config->rope_low_factor = inner.Float("low_freq_factor", 1e-6, 1e6, 1);
  config->rope_high_factor = inner.Float("high_freq_factor", 1e-6, 1e6, 4);
  config->rope_original_length = inner.Int("original_max_position_embeddings", 1, 1 << 20);
  return inner.status();
}

Status ReadLlamaShape(const ConversionSource& source, int64_t usual_head_dim, ModelConfig* config) {
  FieldReader fields(source.config, source.where);
  const int64_t width = fields.Int("hidden_size", 1, 65536);
  config->hidden_size = config->embedding_size = width;
  config->num_layers = fields.Int("num_hidden_layers", 0, 1024);
  config->num_heads = fields.Int("num_attention_heads", 1, 65536);
  config->num_kv_heads = fields.Int("num_key_value_heads", 1, 65536, config->num_heads);
  config->intermediate_size = fields.Int("intermediate_size", 1, 1 << 20);
  config->vocab_size = fields.Int("vocab_size", 1, 1 << 21);
  config->max_length = fields.Int("max_position_embeddings", 1, 1 << 20);
  config->norm_eps = fields.Float("rms_norm_eps", 1e-30, 1, 1e-6);
  config->tied_head = fields.Bool("tie_word_embeddings", false);
  ATTEND_RETURN_IF_ERROR(fields.status());
  const bool divides = width % config->num_heads == 0;
  if (usual_head_dim == 0 && divides) usual_head_dim = width / config->num_heads;
  config->head_dim = usual_head_dim > 0 ? fields.Int("head_dim", 1, 65536, usual_head_dim)
                                        : fields.Int("head_dim", 1, 65536);
  ATTEND_RETURN_IF_ERROR(fields.status());
  config->architecture = "decoder";
  config->causal = true;
  config->norm = NormPlace::kPre;
  config->norm_type = NormType::kRmsNorm;
  ATTEND_RETURN_IF_ERROR(ReadGate(source, config));
  return ReadRotary(source, config);
}

// Embeddings, layers and logits; `family` is "Llama" or "Qwen3".
Status MapDecoder(const ConversionSource& source, const std::string& family, ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  const std::string model = family + "Model", causal = family + "ForCausalLM";
  ATTEND_RETURN_IF_ERROR(CheckClass(source, {causal, model}));
  FieldReader fields(source.config, source.where);
  const bool attention_bias = fields.Bool("attention_bias", false);
  const bool ffn_bias = fields.Bool("mlp_bias", false);
  ATTEND_RETURN_IF_ERROR(fields.status());
  const auto prefix = FindPrefix(source, {"", "model."}, "embed_tokens.weight");
  if (!prefix.ok()) return prefix.status();
  auto& tensors = plan->tensors;
  const auto map = [&](const std::string& to, const std::string& from, bool bias) {
    tensors[to + ".weight"] = from + ".weight";
    if (bias) tensors[to + ".bias"] = from + ".bias";
  };
  map("embeddings.tokens", *prefix + "embed_tokens", false);
  map("final_norm", *prefix + "norm", false);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string to = "layers." + std::to_string(i) + ".";
    const std::string from = *prefix + "layers." + std::to_string(i) + ".";
    for (const std::string part : {"q", "k", "v", "o"}) {
      map(to + "attention." + part, from + "self_attn." + part + "_proj", attention_bias);
    }
    if (config.qk_norm) {
      map(to + "attention.q_norm", from + "self_attn.q_norm", false);
      map(to + "attention.k_norm", from + "self_attn.k_norm", false);
    }
    map(to + "attention_norm", from + "input_layernorm", false);
    for (const std::string part : {"gate", "up", "down"}) {
      map(to + "ffn." + part, from + "mlp." + part + "_proj", ffn_bias);
    }
    map(to + "ffn_norm", from + "post_attention_layernorm", false);
    plan->unused_reasons.emplace_back(from + "self_attn.rotary_emb.inv_freq",
                                      "rotary frequencies, which are computed");
  }
  if (source.class_name == model) return {};
  config.task = Task::kGenerate;
  if (!config.tied_head) map("head", "lm_head", false);
  plan->unused_reasons.emplace_back("lm_head.", "the same as the embeddings of the tokens");
  return {};
}

}  // namespace

Status PlanLlama(const ConversionSource& source, ConversionPlan* plan) {
  ATTEND_RETURN_IF_ERROR(ReadLlamaShape(source, /*usual_head_dim=*/0, &plan->config));
  return MapDecoder(source, "Llama", plan);
}

Status PlanQwen3(const ConversionSource& source, ConversionPlan* plan) {
  FieldReader fields(source.config, source.where);
  fields.MustBe("use_sliding_window", false);
  ATTEND_RETURN_IF_ERROR(fields.status());
  if (const json* types = JsonFind(source.config, "layer_types"); types != nullptr) {
    for (const json& type : *types) {
      if (type == "full_attention") continue;
      return UnsupportedField("layer_types", type, "full_attention", source.where);
    }
  }
  ATTEND_RETURN_IF_ERROR(ReadLlamaShape(source, /*usual_head_dim=*/128, &plan->config));
  plan->config.qk_norm = true;
  return MapDecoder(source, "Qwen3", plan);
}

}  // namespace attend
