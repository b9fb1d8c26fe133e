// BERT: model_type "bert". Devlin et al. 2019, section 3.
#include <string>

#include "tools/convert_plan.h"

namespace attend {

Status PlanBertConfig(const ConversionSource& source, ModelConfig* config) {
  FieldReader fields(source.config, source.where);
  config->hidden_size = fields.Int("hidden_size", 1, 65536);
  config->num_layers = fields.Int("num_hidden_layers", 0, 1024);
  config->num_heads = fields.Int("num_attention_heads", 1, 65536);
  config->intermediate_size = fields.Int("intermediate_size", 1, 1 << 20);
  config->vocab_size = fields.Int("vocab_size", 1, 1 << 21);
  config->max_positions = fields.Int("max_position_embeddings", 1, 1 << 20);
  config->type_vocab_size = fields.Int("type_vocab_size", 1, 65536, 2);
  config->norm_eps = fields.Float("layer_norm_eps", 1e-30, 1, 1e-12);
  config->activation = fields.ActivationName("hidden_act", "gelu");
  ATTEND_RETURN_IF_ERROR(fields.status());
  return SetEncoderShape(source, "num_attention_heads", "hidden_size", config);
}

void MapBertEncoder(const ConversionSource& source, const std::string& prefix,
                    ConversionPlan* plan) {
  const WeightStore& weights = source.weights;
  const std::string embeddings = prefix + "embeddings.";
  plan->tensors["embeddings.tokens.weight"] = embeddings + "word_embeddings.weight";
  plan->tensors["embeddings.positions.weight"] = embeddings + "position_embeddings.weight";
  plan->tensors["embeddings.types.weight"] = embeddings + "token_type_embeddings.weight";
  plan->MapNorm(weights, "embeddings.norm", embeddings + "LayerNorm");
  plan->unused_reasons.emplace_back(embeddings + "position_ids",
                                    "0, 1, 2, ...: a buffer, not a weight");
  for (int64_t i = 0; i < plan->config.num_layers; ++i) {
    const std::string from = prefix + "encoder.layer." + std::to_string(i) + ".";
    const std::string to = "layers." + std::to_string(i) + ".";
    plan->MapLinear(to + "attention.q", from + "attention.self.query");
    plan->MapLinear(to + "attention.k", from + "attention.self.key");
    plan->MapLinear(to + "attention.v", from + "attention.self.value");
    plan->MapLinear(to + "attention.o", from + "attention.output.dense");
    plan->MapNorm(weights, to + "attention_norm", from + "attention.output.LayerNorm");
    plan->MapLinear(to + "ffn.up", from + "intermediate.dense");
    plan->MapLinear(to + "ffn.down", from + "output.dense");
    plan->MapNorm(weights, to + "ffn_norm", from + "output.LayerNorm");
  }
}

Status PlanBert(const ConversionSource& source, ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  ATTEND_RETURN_IF_ERROR(PlanBertConfig(source, &config));
  const auto prefix = FindPrefix(source, {"", "bert."}, "embeddings.word_embeddings.weight");
  if (!prefix.ok()) return prefix.status();
  MapBertEncoder(source, *prefix, plan);
  plan->unused_reasons.emplace_back("cls.", "the pre-training heads are not converted");

  const auto head =
      FindHead(source, "Bert", {"ForPreTraining", "ForMaskedLM", "ForNextSentencePrediction"});
  if (!head.ok()) return head.status();
  const std::string pooler = *prefix + "pooler.dense";
  if (source.sentence_embedding) {
    plan->unused_reasons.emplace_back(pooler, "a sentence embedding does not use it");
    return {};
  }
  if (*head == Head::kTokens) {
    plan->unused_reasons.emplace_back(pooler, "token classification does not use it");
    config.task = Task::kTokens;
    return MapLabels(source, "classifier", plan);
  }
  config.pooler = *head == Head::kSequence || source.weights.Has(pooler + ".weight");
  if (config.pooler) plan->MapLinear("pooler", pooler);
  if (*head == Head::kNone) return {};
  config.task = Task::kSequence;
  config.head_from_pooler = true;
  return MapLabels(source, "classifier", plan);
}

}  // namespace attend
