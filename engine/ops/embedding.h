// Token ids become rows: tokens + positions + types.
#ifndef ATTEND_ENGINE_OPS_EMBEDDING_H_
#define ATTEND_ENGINE_OPS_EMBEDDING_H_

#include <string>

#include "engine/graph.h"
#include "kernels/embedding.h"

namespace attend::ops {

class EmbeddingStep final : public Step {
 public:
  EmbeddingStep(EmbeddingTable tokens, EmbeddingTable positions, EmbeddingTable types, Value y)
      : tokens_(tokens), positions_(positions), types_(types), y_(y), embed_(BindEmbedding()) {}

  void Run(const StepContext& context) const override {
    const BatchView& batch = *context.batch;
    const int64_t at = context.row_begin, width = context.width(y_);
    embed_({.tables = {tokens_, positions_, types_},
            .index = {batch.ids + at, batch.positions + at,
                      batch.type_ids == nullptr ? nullptr : batch.type_ids + at},
            .out = context.Tile(y_),
            .rows = context.rows,
            .width = width,
            .ld_out = width});
    context.Keep(y_, 0, width);
  }

  std::string Describe() const override {
    std::string text = "embedding: tokens";
    if (positions_.data != nullptr) text += " + positions";
    if (types_.data != nullptr) text += " + types";
    return text;
  }

 private:
  EmbeddingTable tokens_, positions_, types_;
  Value y_;
  EmbeddingFn embed_;
};

// Adds the sum of the tables embeddings.{tokens,positions,types}.weight that the file has.
inline Result<Value> AddEmbedding(Graph& graph) {
  const ModelConfig& config = graph.config();
  WeightCache& weights = graph.weights();
  EmbeddingTable positions = weights.GetTable("embeddings.positions.weight");
  if (positions.data != nullptr && config.position_offset > 0) {
    return Status(ErrorCode::kUnsupported, "a table of positions with an offset is not run yet",
                  "position_offset");
  }
  const Value y = graph.NewValue("embeddings", config.embedding_size, Domain::kTokens, false);
  Node node;
  node.writes = y;
  node.step =
      std::make_unique<EmbeddingStep>(weights.GetTable("embeddings.tokens.weight"), positions,
                                      weights.GetTable("embeddings.types.weight"), y);
  graph.Add(std::move(node));
  return y;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_EMBEDDING_H_
