// What comes in becomes rows: token ids by their tables, or the caller's vectors; and positions.
#ifndef ATTEND_ENGINE_OPS_EMBEDDING_H_
#define ATTEND_ENGINE_OPS_EMBEDDING_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph.h"
#include "kernels/embedding.h"
#include "kernels/residual.h"

namespace attend::ops {

// A table by position: the file's, or sinusoids, which belong to nobody's file.
struct PositionTable {
  EmbeddingTable table;  // data is null: positions are not added
  std::shared_ptr<const std::vector<float>> sinusoid;
};

inline PositionTable GetPositions(Graph& graph, int64_t width) {
  PositionTable positions;
  switch (graph.config().position) {
    case Position::kLearned:
      positions.table = graph.weights().GetTable("embeddings.positions.weight");
      break;
    case Position::kSinusoidal:
      positions.sinusoid = graph.weights().GetSinusoid(graph.longest_sequence(), width);
      positions.table.data = positions.sinusoid->data();
      break;
    case Position::kNone:
    case Position::kRotary:
      break;
  }
  return positions;
}

inline const char* Describe(const PositionTable& positions) {
  if (positions.table.data == nullptr) return "";
  return positions.sinusoid == nullptr ? " + positions" : " + sinusoids";
}

class EmbeddingStep final : public Step {
 public:
  EmbeddingStep(EmbeddingTable tokens, PositionTable positions, EmbeddingTable types, Value y)
      : tokens_(tokens),
        positions_(std::move(positions)),
        types_(types),
        y_(y),
        embed_(BindEmbedding()) {}

  void Run(const StepContext& context) const override {
    const BatchView& batch = *context.batch;
    const int64_t at = context.row_begin, width = context.width(y_);
    embed_({.tables = {tokens_, positions_.table, types_},
            .index = {batch.ids + at, batch.positions + at,
                      batch.type_ids == nullptr ? nullptr : batch.type_ids + at},
            .out = context.Tile(y_),
            .rows = context.rows,
            .width = width,
            .ld_out = width});
    context.Keep(y_, 0, width);
  }

  std::string Describe() const override {
    std::string text = std::string("embedding: tokens") + ops::Describe(positions_);
    if (types_.data != nullptr) text += " + types";
    return text;
  }

 private:
  EmbeddingTable tokens_;
  PositionTable positions_;
  EmbeddingTable types_;
  Value y_;
  EmbeddingFn embed_;
};

// Adds the sum of the tables embeddings.{tokens,positions,types}.weight that the file has, or of
// tokens and sinusoids.
inline Result<Value> AddEmbedding(Graph& graph) {
  const ModelConfig& config = graph.config();
  WeightCache& weights = graph.weights();
  if (config.position == Position::kLearned && config.position_offset > 0) {
    return Status(ErrorCode::kUnsupported, "a table of positions with an offset is not run yet",
                  "position_offset");
  }
  const Value y = graph.NewValue("embeddings", config.embedding_size, Domain::kTokens, false);
  Node node;
  node.writes = y;
  node.step = std::make_unique<EmbeddingStep>(weights.GetTable("embeddings.tokens.weight"),
                                              GetPositions(graph, config.embedding_size),
                                              weights.GetTable("embeddings.types.weight"), y);
  graph.Add(std::move(node));
  return y;
}

// The caller's vectors, as they are.
class VectorStep final : public Step {
 public:
  explicit VectorStep(Value y) : y_(y) {}

  void Run(const StepContext& context) const override {
    const int64_t width = context.width(y_);
    std::memcpy(context.Tile(y_), context.batch->vectors + context.row_begin * width,
                static_cast<size_t>(context.rows * width) * sizeof(float));
    context.Keep(y_, 0, width);
  }

  std::string Describe() const override { return "input vectors"; }

 private:
  Value y_;
};

inline Value AddVectors(Graph& graph) {
  const Value y = graph.NewValue("input", graph.config().input_size, Domain::kTokens, false);
  Node node;
  node.writes = y;
  node.step = std::make_unique<VectorStep>(y);
  graph.Add(std::move(node));
  return y;
}

// y = x + the row of the table for the position.
class PositionStep final : public Step {
 public:
  PositionStep(PositionTable positions, Value x, Value y)
      : positions_(std::move(positions)),
        x_(x),
        y_(y),
        embed_(BindEmbedding()),
        residual_(BindResidual()) {}

  void Run(const StepContext& context) const override {
    const int64_t width = context.width(y_);
    float* const y = context.Tile(y_);
    embed_({.tables = {positions_.table},
            .index = {context.batch->positions + context.row_begin},
            .out = y,
            .rows = context.rows,
            .width = width,
            .ld_out = width});
    residual_({.x = context.Read(x_),
               .residual = y,
               .out = y,
               .rows = context.rows,
               .width = width,
               .ldx = width,
               .ld_residual = width,
               .ld_out = width});
    context.Keep(y_, 0, width);
  }

  std::string Describe() const override {
    return std::string("position") + ops::Describe(positions_);
  }

 private:
  PositionTable positions_;
  Value x_, y_;
  EmbeddingFn embed_;
  ResidualFn residual_;
};

// Adds positions to x, if the config has a table of them.
inline Value AddPositions(Graph& graph, Value x) {
  const int64_t width = graph.values()[x.id].width;
  PositionTable positions = GetPositions(graph, width);
  if (positions.table.data == nullptr) return x;
  const Value y = graph.NewValue("positions", width, Domain::kTokens, false);
  Node node;
  node.reads = {x};
  node.writes = y;
  node.step = std::make_unique<PositionStep>(std::move(positions), x, y);
  graph.Add(std::move(node));
  return y;
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_EMBEDDING_H_
