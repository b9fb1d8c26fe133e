// GPT-2: model_type "gpt2". Radford et al. 2019. Its linear layers are stored as [in, out].
#include <string>

#include "tools/convert_plan.h"

namespace attend {
namespace {

Status ReadGpt2Shape(const ConversionSource& source, ModelConfig* config) {
  FieldReader fields(source.config, source.where);
  const int64_t width = fields.Int("n_embd", 1, 65536);
  config->hidden_size = config->embedding_size = width;
  config->num_layers = fields.Int("n_layer", 0, 1024);
  config->num_heads = config->num_kv_heads = fields.Int("n_head", 1, 65536);
  config->intermediate_size = fields.Int("n_inner", 1, 1 << 20, 4 * width);
  config->vocab_size = fields.Int("vocab_size", 1, 1 << 21);
  config->max_positions = config->max_length = fields.Int("n_positions", 1, 1 << 20);
  config->activation = fields.ActivationName("activation_function", "gelu_new");
  config->norm_eps = fields.Float("layer_norm_epsilon", 1e-30, 1, 1e-5);
  config->tied_head = fields.Bool("tie_word_embeddings", true);
  const bool scaled = fields.Bool("scale_attn_weights", true);
  fields.MustBe("scale_attn_by_inverse_layer_idx", false);
  ATTEND_RETURN_IF_ERROR(fields.status());
  if (width % config->num_heads != 0) {
    return {ErrorCode::kCorrupt,
            "the field \"n_head\" is " + std::to_string(config->num_heads) +
                "; expected a divisor of n_embd, " + std::to_string(width),
            source.where};
  }
  config->head_dim = width / config->num_heads;
  config->score = scaled ? Score::kScaledDot : Score::kDot;
  config->architecture = "decoder";
  config->causal = true;
  config->position = Position::kLearned;
  config->norm = NormPlace::kPre;
  return {};
}

// NAME from rows [row, ...) of SOURCE, which has `total` (0: from all of it), turned.
void MapTurned(const std::string& name, const std::string& source, int64_t row, int64_t total,
               ConversionPlan* plan) {
  TensorSource weight(source + ".weight"), bias(source + ".bias");
  weight.transposed = true;
  weight.row = bias.row = static_cast<uint64_t>(row);
  weight.total_rows = bias.total_rows = static_cast<uint64_t>(total);
  plan->tensors[name + ".weight"] = weight;
  plan->tensors[name + ".bias"] = bias;
}

}  // namespace

Status PlanGpt2(const ConversionSource& source, ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  ATTEND_RETURN_IF_ERROR(CheckClass(source, {"GPT2LMHeadModel", "GPT2Model"}));
  ATTEND_RETURN_IF_ERROR(ReadGpt2Shape(source, &config));
  const auto prefix = FindPrefix(source, {"", "transformer."}, "wte.weight");
  if (!prefix.ok()) return prefix.status();
  plan->tensors["embeddings.tokens.weight"] = *prefix + "wte.weight";
  plan->tensors["embeddings.positions.weight"] = *prefix + "wpe.weight";
  plan->MapLinear("final_norm", *prefix + "ln_f");
  const int64_t width = config.hidden_size;
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string to = "layers." + std::to_string(i) + ".";
    const std::string from = *prefix + "h." + std::to_string(i) + ".";
    MapTurned(to + "attention.q", from + "attn.c_attn", 0, 3 * width, plan);
    MapTurned(to + "attention.k", from + "attn.c_attn", width, 3 * width, plan);
    MapTurned(to + "attention.v", from + "attn.c_attn", 2 * width, 3 * width, plan);
    MapTurned(to + "attention.o", from + "attn.c_proj", 0, 0, plan);
    plan->MapLinear(to + "attention_norm", from + "ln_1");
    MapTurned(to + "ffn.up", from + "mlp.c_fc", 0, 0, plan);
    MapTurned(to + "ffn.down", from + "mlp.c_proj", 0, 0, plan);
    plan->MapLinear(to + "ffn_norm", from + "ln_2");
    plan->unused_reasons.emplace_back(from + "attn.bias", "the causal mask: a buffer");
    plan->unused_reasons.emplace_back(from + "attn.masked_bias", "a constant: a buffer");
  }
  if (source.class_name == "GPT2Model") return {};
  config.task = Task::kGenerate;
  if (!config.tied_head) plan->tensors["head.weight"] = std::string("lm_head.weight");
  plan->unused_reasons.emplace_back("lm_head.", "the same as the embeddings of the tokens");
  return {};
}

}  // namespace attend
