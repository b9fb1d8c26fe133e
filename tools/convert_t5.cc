// T5 1.0 and 1.1: model_type "t5". Raffel et al. 2020; Shazeer 2020 for the gated feed-forward.
#include <cmath>
#include <string>

#include "tools/convert_plan.h"
#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

struct FeedForwardRow {
  const char* name;      // feed_forward_proj
  const char* function;  // dense_act_fn, as transformers derives it
  Activation activation;
};

// "gated-gelu" is transformers' name of the gate by gelu's approximation with tanh.
constexpr FeedForwardRow kFeedForwards[] = {
    {"relu", "relu", Activation::kRelu},         {"gated-gelu", "gelu_new", Activation::kGegluTanh},
    {"gated-silu", "silu", Activation::kSwiglu}, {"gated-relu", "relu", Activation::kReglu},
    {"gelu", "gelu", Activation::kGelu},         {"gelu_new", "gelu_new", Activation::kGeluTanh},
    {"silu", "silu", Activation::kSilu},
};

Status ReadFeedForward(const ConversionSource& source, ModelConfig* config) {
  FieldReader fields(source.config, source.where);
  const std::string name = fields.String("feed_forward_proj", "relu");
  ATTEND_RETURN_IF_ERROR(fields.status());
  std::string names;
  for (const FeedForwardRow& row : kFeedForwards) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
    if (name != row.name) continue;
    config->activation = row.activation;
    fields.MustBe("dense_act_fn", row.function);
    fields.MustBe("is_gated_act", IsGated(row.activation));
    return fields.status();
  }
  return UnsupportedField("feed_forward_proj", json(name), names, source.where);
}

Status ReadT5Shape(const ConversionSource& source, ModelConfig* config) {
  FieldReader fields(source.config, source.where);
  config->hidden_size = config->embedding_size = fields.Int("d_model", 1, 65536);
  config->num_layers = fields.Int("num_layers", 0, 1024);
  config->decoder_layers = fields.Int("num_decoder_layers", 0, 1024, config->num_layers);
  config->num_heads = config->num_kv_heads = fields.Int("num_heads", 1, 65536);
  config->head_dim = fields.Int("d_kv", 1, 65536);
  config->intermediate_size = fields.Int("d_ff", 1, 1 << 20);
  config->vocab_size = fields.Int("vocab_size", 1, 1 << 21);
  config->relative_buckets = fields.Int("relative_attention_num_buckets", 4, 65536, 32);
  config->relative_max_distance = fields.Int("relative_attention_max_distance", 1, INT32_MAX, 128);
  config->norm_eps = fields.Float("layer_norm_epsilon", 1e-30, 1, 1e-6);
  config->tied_head = fields.Bool("tie_word_embeddings", true);
  const bool scaled = fields.Bool("scale_decoder_outputs", config->tied_head);
  ATTEND_RETURN_IF_ERROR(fields.status());
  if (scaled) config->logits_scale = 1 / std::sqrt(static_cast<double>(config->hidden_size));
  config->decoder_heads = config->num_heads;
  config->decoder_head_dim = config->head_dim;
  config->decoder_intermediate_size = config->intermediate_size;
  config->architecture = "encoder_decoder";
  config->task = Task::kGenerate;
  config->norm = NormPlace::kPre;
  config->norm_type = NormType::kRmsNorm;
  config->score = Score::kDot;
  config->score_bias = ScoreBias::kRelative;
  return ReadFeedForward(source, config);
}

void MapT5Attention(const std::string& to, const std::string& from, ConversionPlan* plan) {
  for (const char* part : {"q", "k", "v", "o"}) {
    plan->tensors[to + "." + part + ".weight"] = from + "." + part + ".weight";
  }
}

// A stack of layers, the folder's `from` ("encoder.") as the file's `to` ("").
void MapT5Stack(const std::string& to, const std::string& from, int64_t layers, bool cross,
                ConversionPlan* plan) {
  auto& tensors = plan->tensors;
  tensors[to + "relative.weight"] =
      from + "block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  tensors[to + "final_norm.weight"] = from + "final_layer_norm.weight";
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = to + "layers." + std::to_string(i) + ".";
    const std::string block = from + "block." + std::to_string(i) + ".layer.";
    MapT5Attention(layer + "attention", block + "0.SelfAttention", plan);
    tensors[layer + "attention_norm.weight"] = block + "0.layer_norm.weight";
    if (cross) {
      MapT5Attention(layer + "cross_attention", block + "1.EncDecAttention", plan);
      tensors[layer + "cross_norm.weight"] = block + "1.layer_norm.weight";
    }
    const std::string last = block + (cross ? "2." : "1.");
    const bool gated = IsGated(plan->config.activation);
    const std::string dense = last + "DenseReluDense.";
    if (gated) tensors[layer + "ffn.gate.weight"] = dense + "wi_0.weight";
    tensors[layer + "ffn.up.weight"] = dense + (gated ? "wi_1.weight" : "wi.weight");
    tensors[layer + "ffn.down.weight"] = dense + "wo.weight";
    tensors[layer + "ffn_norm.weight"] = last + "layer_norm.weight";
  }
}

}  // namespace

Status PlanT5(const ConversionSource& source, ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  ATTEND_RETURN_IF_ERROR(CheckClass(source, {"T5ForConditionalGeneration"}));
  ATTEND_RETURN_IF_ERROR(ReadT5Shape(source, &config));
  const auto tokens = FindTensor(
      source, {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"});
  if (!tokens.ok()) return tokens.status();
  plan->tensors["embeddings.tokens.weight"] = *tokens;
  MapT5Stack("", "encoder.", config.num_layers, /*cross=*/false, plan);
  MapT5Stack("decoder.", "decoder.", config.decoder_layers, /*cross=*/true, plan);
  if (!config.tied_head) plan->tensors["head.weight"] = std::string("lm_head.weight");
  for (const char* copy : {"encoder.embed_tokens.", "decoder.embed_tokens.", "lm_head."}) {
    plan->unused_reasons.emplace_back(copy, "the same as the shared embeddings");
  }
  plan->unused_reasons.emplace_back(
      "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias",
      "attention to the encoder has no positions");
  return {};
}

}  // namespace attend
