// What comes in becomes rows: token ids by their tables, or the caller's vectors; and positions.
#ifndef ATTEND_ENGINE_OPS_EMBEDDING_H_
#define ATTEND_ENGINE_OPS_EMBEDDING_H_

#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "engine/graph.h"
#include "engine/ops/residual.h"
#include "kernels/embedding.h"

namespace attend::ops {

// A table by position: the file's, or sinusoids, which are computed.
struct PositionTable {
  EmbeddingTable table;  // data is null: positions are not added
  bool computed = false;
};

// Sines and cosines of pos / 10000^(2i/width), [longest sequence, width]: sin at column 2i and cos
// at 2i + 1, or, as halves, all sines before all cosines. Vaswani et al. 2017, section 3.5.
inline const float* SinusoidTable(Graph& graph, int64_t width) {
  const int64_t rows = graph.longest_sequence(), sines = (width + 1) / 2;
  const bool halves = graph.config().position == Position::kSinusoidalHalves;
  return graph.SharedTable("sinusoid", rows * width, [=](float* table) {
    for (int64_t column = 0; column < width; ++column) {
      const int64_t pair = !halves ? column / 2 : column < sines ? column : column - sines;
      const bool sine = halves ? column < sines : column % 2 == 0;
      const double exponent = 2 * static_cast<double>(pair) / static_cast<double>(width);
      const double divisor = std::pow(10000.0, exponent);
      for (int64_t row = 0; row < rows; ++row) {
        const double angle = static_cast<double>(row) / divisor;
        table[row * width + column] = static_cast<float>(sine ? std::sin(angle) : std::cos(angle));
      }
    }
  });
}

// The table from row `rows` on.
inline EmbeddingTable SkipRows(EmbeddingTable table, int64_t rows, int64_t width) {
  if (table.data == nullptr) return table;
  const int64_t element = table.type == TableType::kF32 ? 4 : table.type == TableType::kI8 ? 1 : 2;
  table.data = static_cast<const std::byte*>(table.data) + rows * width * element;
  if (table.scale != nullptr) table.scale += rows;
  return table;
}

// `prefix` goes before the name of the table.
inline PositionTable GetPositions(Graph& graph, int64_t width, const std::string& prefix = {}) {
  const ModelConfig& config = graph.config();
  PositionTable positions;
  switch (config.position) {
    case Position::kLearned:
      positions.table = SkipRows(graph.weights().GetTable(prefix + "embeddings.positions.weight"),
                                 config.position_offset, width);
      break;
    case Position::kSinusoidal:
    case Position::kSinusoidalHalves:
      positions.computed = true;
      positions.table.data = SinusoidTable(graph, width);
      break;
    case Position::kNone:
    case Position::kRotary:
      break;
  }
  return positions;
}

class EmbeddingStep final : public Step {
 public:
  EmbeddingStep(EmbeddingTable tokens, PositionTable positions, EmbeddingTable types, Value y)
      : tokens_(tokens), positions_(positions), types_(types), y_(y), embed_(BindEmbedding()) {}

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

  WorkKind kind() const override { return WorkKind::kEmbedding; }
  std::string Describe() const override {
    std::string text = "embedding: tokens";
    if (positions_.table.data != nullptr) {
      text += positions_.computed ? " + sinusoids" : " + positions";
    }
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
// tokens and sinusoids. `prefix` goes before the names of all but the tokens' table.
inline Value AddEmbedding(Graph& graph, const std::string& prefix = {}) {
  const ModelConfig& config = graph.config();
  WeightCache& weights = graph.weights();
  EmbeddingTable tokens = weights.GetTable("embeddings.tokens.weight");
  tokens.factor = static_cast<float>(config.embedding_scale);
  const Value y = graph.NewValue("embeddings", config.embedding_size, Domain::kTokens, false);
  Node node;
  node.writes = y;
  node.step =
      std::make_unique<EmbeddingStep>(tokens, GetPositions(graph, config.embedding_size, prefix),
                                      weights.GetTable(prefix + "embeddings.types.weight"), y);
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
  WorkKind kind() const override { return WorkKind::kEmbedding; }

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

// The rows of a table for the positions.
class PositionStep final : public Step {
 public:
  PositionStep(PositionTable positions, Value y)
      : positions_(positions), y_(y), embed_(BindEmbedding()) {}

  void Run(const StepContext& context) const override {
    const int64_t width = context.width(y_);
    embed_({.tables = {positions_.table},
            .index = {context.batch->positions + context.row_begin},
            .out = context.Tile(y_),
            .rows = context.rows,
            .width = width,
            .ld_out = width});
    context.Keep(y_, 0, width);
  }

  std::string Describe() const override { return positions_.computed ? "sinusoids" : "positions"; }
  WorkKind kind() const override { return WorkKind::kEmbedding; }

 private:
  PositionTable positions_;
  Value y_;
  EmbeddingFn embed_;
};

// Adds positions to x, if the config has a table of them.
inline Value AddPositions(Graph& graph, Value x) {
  const int64_t width = graph.values()[x.id].width;
  PositionTable positions = GetPositions(graph, width);
  if (positions.table.data == nullptr) return x;
  const Value y = graph.NewValue("positions", width, Domain::kTokens, false);
  Node node;
  node.writes = y;
  node.step = std::make_unique<PositionStep>(positions, y);
  graph.Add(std::move(node));
  return AddResidual(graph, x, y);
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_EMBEDDING_H_
