// ELECTRA: model_type "electra". Clark et al. 2020: BERT's layers without pooler, over embeddings
// that may be narrower than the model.
#include <string>

#include "tools/convert_plan.h"

namespace attend {

Status PlanElectra(const ConversionSource& source, ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  ATTEND_RETURN_IF_ERROR(PlanBertConfig(source, &config));
  FieldReader fields(source.config, source.where);
  config.embedding_size = fields.Int("embedding_size", 1, 65536, 128);
  ATTEND_RETURN_IF_ERROR(fields.status());
  const auto prefix = FindPrefix(source, {"", "electra."}, "embeddings.word_embeddings.weight");
  if (!prefix.ok()) return prefix.status();
  MapBertEncoder(source, *prefix, plan);
  if (config.embedding_size != config.hidden_size) {
    plan->MapLinear("embeddings.projection", *prefix + "embeddings_project");
  }
  for (const char* pre_training :
       {"discriminator_predictions.", "generator_predictions.", "generator_lm_head."}) {
    plan->unused_reasons.emplace_back(pre_training, "the pre-training heads are not converted");
  }

  const auto head = FindHead(source, "Electra", {"ForPreTraining", "ForMaskedLM"});
  if (!head.ok()) return head.status();
  if (source.sentence_embedding || *head == Head::kNone) return {};
  if (*head == Head::kTokens) {
    config.task = Task::kTokens;
    return MapLabels(source, "classifier", plan);
  }
  config.task = Task::kSequence;
  config.pooling = Pooling::kFirst;
  config.head_dense = true;
  config.head_dense_activation = Activation::kGelu;  // fixed in the model, whatever hidden_act says
  plan->MapLinear("head.dense", "classifier.dense");
  return MapLabels(source, "classifier.out_proj", plan);
}

}  // namespace attend
