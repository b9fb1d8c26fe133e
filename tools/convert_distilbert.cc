// DistilBERT: model_type "distilbert". Sanh et al. 2019: BERT without types and without pooler.
#include <string>

#include "tools/convert_plan.h"

namespace attend {
namespace {

Status ReadConfig(const ConversionSource& source, ModelConfig* config) {
  FieldReader fields(source.config, source.where);
  config->hidden_size = fields.Int("dim", 1, 65536);
  config->num_layers = fields.Int("n_layers", 0, 1024);
  config->num_heads = fields.Int("n_heads", 1, 65536);
  config->intermediate_size = fields.Int("hidden_dim", 1, 1 << 20);
  config->vocab_size = fields.Int("vocab_size", 1, 1 << 21);
  config->max_positions = fields.Int("max_position_embeddings", 1, 1 << 20);
  config->activation = fields.ActivationName("activation", "gelu");
  // Only says how the position table was made; the folder has the table either way.
  fields.Bool("sinusoidal_pos_embds", false);
  ATTEND_RETURN_IF_ERROR(fields.status());
  config->norm_eps = 1e-12;  // fixed in the model, not in its config
  return SetEncoderShape(source, "n_heads", "dim", config);
}

}  // namespace

Status PlanDistilBert(const ConversionSource& source, ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  ATTEND_RETURN_IF_ERROR(ReadConfig(source, &config));
  const WeightStore& weights = source.weights;
  const auto prefix = FindPrefix(source, {"", "distilbert."}, "embeddings.word_embeddings.weight");
  if (!prefix.ok()) return prefix.status();
  const std::string embeddings = *prefix + "embeddings.";
  plan->tensors["embeddings.tokens.weight"] = embeddings + "word_embeddings.weight";
  plan->tensors["embeddings.positions.weight"] = embeddings + "position_embeddings.weight";
  plan->MapNorm(weights, "embeddings.norm", embeddings + "LayerNorm");
  plan->unused_reasons.emplace_back(embeddings + "position_ids",
                                    "0, 1, 2, ...: a buffer, not a weight");
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string from = *prefix + "transformer.layer." + std::to_string(i) + ".";
    const std::string to = "layers." + std::to_string(i) + ".";
    plan->MapLinear(to + "attention.q", from + "attention.q_lin");
    plan->MapLinear(to + "attention.k", from + "attention.k_lin");
    plan->MapLinear(to + "attention.v", from + "attention.v_lin");
    plan->MapLinear(to + "attention.o", from + "attention.out_lin");
    plan->MapNorm(weights, to + "attention_norm", from + "sa_layer_norm");
    plan->MapLinear(to + "ffn.up", from + "ffn.lin1");
    plan->MapLinear(to + "ffn.down", from + "ffn.lin2");
    plan->MapNorm(weights, to + "ffn_norm", from + "output_layer_norm");
  }
  plan->unused_reasons.emplace_back("vocab_", "the language model's head is not converted");

  const auto head = FindHead(source, "DistilBert", {"ForMaskedLM"});
  if (!head.ok()) return head.status();
  if (source.sentence_embedding || *head == Head::kNone) return {};
  if (*head == Head::kSequence) {
    config.task = Task::kSequence;
    config.pooling = Pooling::kFirst;
    config.head_dense = true;
    config.head_dense_activation = Activation::kRelu;
    plan->MapLinear("head.dense", "pre_classifier");
  } else {
    config.task = Task::kTokens;
  }
  return MapLabels(source, "classifier", plan);
}

}  // namespace attend
