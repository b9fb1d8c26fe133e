// BART and Marian: model_type "bart" and "marian". Lewis et al. 2020; Junczys-Dowmunt et al. 2018.
#include <cmath>
#include <string>

#include "tools/convert_plan.h"

namespace attend {
namespace {

// BART's tables of positions begin with rows for what was once padding.
constexpr int64_t kPositionOffset = 2;

Status CheckHeads(const ConversionSource& source, const char* field, int64_t heads, int64_t width) {
  if (width % heads == 0) return {};
  return {ErrorCode::kCorrupt,
          "the field \"" + std::string(field) + "\" is " + std::to_string(heads) +
              "; expected a divisor of d_model, " + std::to_string(width),
          source.where};
}

// What both have in their config.json.
Status ReadBartShape(const ConversionSource& source, ModelConfig* config) {
  FieldReader fields(source.config, source.where);
  config->hidden_size = config->embedding_size = fields.Int("d_model", 1, 65536);
  config->num_layers = fields.Int("encoder_layers", 0, 1024);
  config->decoder_layers = fields.Int("decoder_layers", 0, 1024);
  config->num_heads = config->num_kv_heads = fields.Int("encoder_attention_heads", 1, 65536);
  config->decoder_heads = fields.Int("decoder_attention_heads", 1, 65536);
  config->intermediate_size = fields.Int("encoder_ffn_dim", 1, 1 << 20);
  config->decoder_intermediate_size = fields.Int("decoder_ffn_dim", 1, 1 << 20);
  config->vocab_size = fields.Int("vocab_size", 1, 1 << 21);
  config->max_length = fields.Int("max_position_embeddings", 1, (1 << 20) - kPositionOffset);
  config->activation = fields.ActivationName("activation_function", "gelu");
  config->tied_head = fields.Bool("tie_word_embeddings", true);
  const bool scaled = fields.Bool("scale_embedding", false);
  // Fields of early versions; what they would change is not in transformers any more.
  fields.MustBe("normalize_before", false);
  fields.MustBe("add_final_layer_norm", false);
  fields.MustBe("add_bias_logits", false);
  ATTEND_RETURN_IF_ERROR(fields.status());
  const int64_t width = config->hidden_size;
  ATTEND_RETURN_IF_ERROR(CheckHeads(source, "encoder_attention_heads", config->num_heads, width));
  ATTEND_RETURN_IF_ERROR(
      CheckHeads(source, "decoder_attention_heads", config->decoder_heads, width));
  config->head_dim = width / config->num_heads;
  config->decoder_head_dim = width / config->decoder_heads;
  if (scaled) config->embedding_scale = std::sqrt(static_cast<double>(width));
  config->norm_eps = 1e-5;
  config->norm = NormPlace::kPost;
  config->architecture = "encoder_decoder";
  config->task = Task::kGenerate;
  return {};
}

void MapBartAttention(const std::string& to, const std::string& from, ConversionPlan* plan) {
  plan->MapLinear(to + ".q", from + ".q_proj");
  plan->MapLinear(to + ".k", from + ".k_proj");
  plan->MapLinear(to + ".v", from + ".v_proj");
  plan->MapLinear(to + ".o", from + ".out_proj");
}

void MapBartStack(const WeightStore& weights, const std::string& to, const std::string& from,
                  int64_t layers, ConversionPlan* plan) {
  const bool cross = !to.empty();
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = to + "layers." + std::to_string(i) + ".";
    const std::string source = from + "layers." + std::to_string(i) + ".";
    MapBartAttention(layer + "attention", source + "self_attn", plan);
    plan->MapNorm(weights, layer + "attention_norm", source + "self_attn_layer_norm");
    if (cross) {
      MapBartAttention(layer + "cross_attention", source + "encoder_attn", plan);
      plan->MapNorm(weights, layer + "cross_norm", source + "encoder_attn_layer_norm");
    }
    plan->MapLinear(layer + "ffn.up", source + "fc1");
    plan->MapLinear(layer + "ffn.down", source + "fc2");
    plan->MapNorm(weights, layer + "ffn_norm", source + "final_layer_norm");
  }
}

// Layers, embeddings and logits, which both call by the same names.
Status MapPair(const ConversionSource& source, ConversionPlan* plan) {
  const ModelConfig& config = plan->config;
  const auto tokens =
      FindTensor(source, {"model.shared.weight", "model.encoder.embed_tokens.weight",
                          "model.decoder.embed_tokens.weight", "lm_head.weight"});
  if (!tokens.ok()) return tokens.status();
  plan->tensors["embeddings.tokens.weight"] = *tokens;
  MapBartStack(source.weights, "", "model.encoder.", config.num_layers, plan);
  MapBartStack(source.weights, "decoder.", "model.decoder.", config.decoder_layers, plan);
  if (!config.tied_head) plan->tensors["head.weight"] = std::string("lm_head.weight");
  if (source.weights.Has("final_logits_bias")) {
    TensorSource bias(std::string("final_logits_bias"));
    bias.as_matrix = true;
    plan->tensors["logits_bias"] = bias;
  }
  for (const char* copy :
       {"model.encoder.embed_tokens.", "model.decoder.embed_tokens.", "lm_head."}) {
    plan->unused_reasons.emplace_back(copy, "the same as the shared embeddings");
  }
  return {};
}

}  // namespace

Status PlanBart(const ConversionSource& source, ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  ATTEND_RETURN_IF_ERROR(CheckClass(source, {"BartForConditionalGeneration"}));
  FieldReader fields(source.config, source.where);
  fields.MustBe("static_position_embeddings", false);
  fields.MustBe("normalize_embedding", true);
  fields.MustBe("extra_pos_embeddings", kPositionOffset);
  ATTEND_RETURN_IF_ERROR(fields.status());
  ATTEND_RETURN_IF_ERROR(ReadBartShape(source, &config));
  config.position = Position::kLearned;
  config.position_offset = kPositionOffset;
  config.max_positions = config.max_length + kPositionOffset;
  const auto map_input = [&](const std::string& to, const std::string& from) {
    plan->tensors[to + "embeddings.positions.weight"] = from + "embed_positions.weight";
    plan->MapNorm(source.weights, to + "embeddings.norm", from + "layernorm_embedding");
  };
  map_input("", "model.encoder.");
  map_input("decoder.", "model.decoder.");
  return MapPair(source, plan);
}

Status PlanMarian(const ConversionSource& source, ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  ATTEND_RETURN_IF_ERROR(CheckClass(source, {"MarianMTModel"}));
  ATTEND_RETURN_IF_ERROR(ReadBartShape(source, &config));
  FieldReader fields(source.config, source.where);
  fields.MustBe("static_position_embeddings", true);
  fields.MustBe("normalize_embedding", false);
  fields.MustBe("share_encoder_decoder_embeddings", true);
  fields.MustBe("decoder_vocab_size", config.vocab_size);
  ATTEND_RETURN_IF_ERROR(fields.status());
  config.position = Position::kSinusoidalHalves;
  for (const char* table : {"model.encoder.embed_positions.", "model.decoder.embed_positions."}) {
    plan->unused_reasons.emplace_back(table, "sinusoids, which are computed");
  }
  return MapPair(source, plan);
}

}  // namespace attend
