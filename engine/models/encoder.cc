// The encoder: embeddings, layers of self-attention and feed-forward, and what answers.
// BERT, DistilBERT and ELECTRA are points of it. Vaswani et al. 2017; Devlin et al. 2019.
#include <string>

#include "engine/models/layers.h"
#include "engine/models/models.h"
#include "engine/ops/linear.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool.h"

namespace attend {
namespace {

// Logits and vectors out of the last layer's output.
Status AddHead(Graph& graph, Value x) {
  const ModelConfig& config = graph.config();
  if (config.task == Task::kTokens) {
    ATTEND_ASSIGN(graph.logits, ops::AddLinear(graph, x, "head"));
    return Status();
  }
  Value pooled;
  if (config.pooler) {
    const Value first = ops::AddPool(graph, x, Pooling::kFirst);
    ATTEND_ASSIGN(pooled,
                  ops::AddLinear(graph, first, "pooler", {.activation = Activation::kTanh}));
    graph.pooled = pooled;
  }
  if (config.task == Task::kHidden) return Status();
  if (!config.head_from_pooler) {
    pooled = ops::AddPool(graph, x, config.pooling);
    graph.pooled = pooled;
  }
  if (config.task == Task::kEmbedding) {
    for (size_t i = 0; i < config.dense.size(); ++i) {
      ATTEND_ASSIGN(pooled, ops::AddLinear(graph, pooled, "dense." + std::to_string(i),
                                           {.activation = config.dense[i]}));
    }
    if (config.normalize) pooled = ops::AddNormalize(graph, pooled);
    graph.pooled = pooled;
    return Status();
  }
  if (config.head_dense) {
    ATTEND_ASSIGN(pooled, ops::AddLinear(graph, pooled, "head.dense",
                                         {.activation = config.head_dense_activation}));
  }
  ATTEND_ASSIGN(graph.logits, ops::AddLinear(graph, pooled, "head"));
  return Status();
}

}  // namespace

Status BuildEncoder(Graph& graph) {
  const ModelConfig& config = graph.config();
  Value x;
  ATTEND_ASSIGN(x, AddInput(graph));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    ATTEND_RETURN_IF_ERROR(AddLayer(graph, x, "layers." + std::to_string(i)));
  }
  if (config.norm == NormPlace::kPre) ATTEND_ASSIGN(x, ops::AddNorm(graph, x, "final_norm"));
  graph.hidden = x;
  return AddHead(graph, x);
}

}  // namespace attend
