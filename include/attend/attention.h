// Who looks at whom: the attention weights of one sequence, every head of every layer.
//
//   auto map = attend::AttentionMap::Create(*model, {.max_tokens = 64});
//   const int32_t ids[] = {101, 1045, 2387, 1037, 2387, 102}, offsets[] = {0, 6};
//   auto seen = map->Run(attend::TokenBatch{.ids = ids, .offsets = offsets});
//   float w = seen->self.at(3, 0, 2, 4);  // layer 3, head 0: how much position 2 looks at 4
//
// For looking and for tests, not for speed: it computes the weights beside the outputs, in time and
// memory that grow with layers x heads x length^2. A Session carries nothing of it.
#ifndef ATTEND_ATTENTION_H_
#define ATTEND_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "attend/attend.h"
#include "attend/status.h"

namespace attend {

// weights[layer][head][i][j]: the factor that the value of position j has in the output of position
// i, so that the head's output is sum_j weights[..][i][j] v_j. Under softmax a row sums to 1. What
// is not seen is 0; a row that sees nobody is 0 throughout.
struct AttentionWeights {
  int32_t layers = 0, heads = 0, queries = 0, keys = 0;
  std::span<const float> values = {};  // [layers, heads, queries, keys]

  // [queries, keys] of one head.
  std::span<const float> Head(int32_t layer, int32_t head) const {
    const size_t size = static_cast<size_t>(queries) * static_cast<size_t>(keys);
    return values.subspan(
        (static_cast<size_t>(layer) * static_cast<size_t>(heads) + static_cast<size_t>(head)) *
            size,
        size);
  }
  float at(int32_t layer, int32_t head, int32_t query, int32_t key) const {
    return Head(
        layer,
        head)[static_cast<size_t>(query) * static_cast<size_t>(keys) + static_cast<size_t>(key)];
  }
};

struct AttentionMapOptions {
  int32_t max_tokens = 512;  // the longest sequence, source and written alike
  int32_t max_edges = 0;     // as in SessionOptions
  Precision precision = Precision::kFile;
  Trace* trace = nullptr;    // as in SessionOptions,
  Logger* logger = nullptr;  // and this
};

// What one run gave. Views, valid until the next Run.
struct AttentionRun {
  AttentionWeights self;     // of the sequence over itself
  AttentionWeights decoder;  // of an encoder-decoder: of what was written over itself,
  AttentionWeights cross;    // and over the source; queries are what was written. Else empty
  Output output;             // bit by bit what a Session gives for the same sequence
};

// Runs a model over one sequence at a time and keeps the weights. Belongs to one caller at a time.
class ATTEND_EXPORT AttentionMap {
 public:
  // The most bytes that weights may take.
  static constexpr int64_t kMaxBytes = int64_t{1} << 30;

  // Errors: as Session::Create; kCapacity (the weights of max_tokens positions, or of as many as
  // the model takes if those are fewer, are more than kMaxBytes).
  static Result<AttentionMap> Create(const Model& model, const AttentionMapOptions& options = {});

  AttentionMap(AttentionMap&&) noexcept;
  AttentionMap& operator=(AttentionMap&&) noexcept;
  ~AttentionMap();

  // Errors: as Session::Run; kCapacity (more than one sequence).
  Result<AttentionRun> Run(const TokenBatch& batch);
  Result<AttentionRun> Run(const VectorBatch& batch);

  // All that it holds, weights included; packed weights of the model belong to the Model.
  size_t memory_bytes() const;

 private:
  explicit AttentionMap(Session session);
  AttentionRun Finish(const Output& output);
  Session session_;
};

}  // namespace attend

#endif  // ATTEND_ATTENTION_H_
