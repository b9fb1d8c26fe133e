// Sequences of any model of the family: ids or vectors, with a graph where the model takes one.
#ifndef ATTEND_TESTS_FAMILY_BATCH_H_
#define ATTEND_TESTS_FAMILY_BATCH_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "engine/config.h"
#include "tests/testing.h"

namespace attend::testing {

struct FamilySequence {
  std::vector<int32_t> ids;
  std::vector<float> rows;  // [length, input_size]
  std::vector<Edge> edges;
  int64_t length = 0;
};

// What a model of `config` may be given: ids or vectors of normal numbers, and about four edges a
// position, some twice, some positions without any.
inline FamilySequence RandomSequence(const ModelConfig& config, int64_t length, uint64_t seed) {
  Random random(seed);
  FamilySequence sequence;
  sequence.length = length;
  for (int64_t i = 0; i < length && config.vocab_size > 0; ++i) {
    sequence.ids.push_back(static_cast<int32_t>(random.Below(config.vocab_size)));
  }
  for (int64_t i = 0; i < length * config.input_size; ++i) sequence.rows.push_back(random.Normal());
  for (int64_t i = 0; i < length && config.edges; ++i) {
    for (int64_t n = random.Below(9); n > 0; --n) {
      sequence.edges.push_back(
          {static_cast<int32_t>(i), static_cast<int32_t>(random.Below(length))});
      if (random.Below(8) == 0) sequence.edges.push_back(sequence.edges.back());
    }
  }
  // In no order.
  for (size_t k = sequence.edges.size(); k > 1; --k) {
    std::swap(sequence.edges[k - 1],
              sequence.edges[static_cast<size_t>(random.Below(static_cast<int64_t>(k)))]);
  }
  return sequence;
}

// Sequences end to end, as a Session takes them.
class FamilyBatch {
 public:
  explicit FamilyBatch(const ModelConfig& config) : vectors_(config.vocab_size == 0) {
    if (config.edges) edge_offsets_.push_back(0);
  }

  void Add(const FamilySequence& sequence) {
    ids_.insert(ids_.end(), sequence.ids.begin(), sequence.ids.end());
    rows_.insert(rows_.end(), sequence.rows.begin(), sequence.rows.end());
    edges_.insert(edges_.end(), sequence.edges.begin(), sequence.edges.end());
    offsets_.push_back(offsets_.back() + static_cast<int32_t>(sequence.length));
    if (!edge_offsets_.empty()) edge_offsets_.push_back(static_cast<int32_t>(edges_.size()));
  }

  Result<Output> Run(Session* session) const {
    if (vectors_) {
      return session->Run(VectorBatch{
          .rows = rows_, .offsets = offsets_, .edges = edges_, .edge_offsets = edge_offsets_});
    }
    return session->Run(TokenBatch{
        .ids = ids_, .offsets = offsets_, .edges = edges_, .edge_offsets = edge_offsets_});
  }

  int64_t sequences() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t begin(int64_t sequence) const { return offsets_[static_cast<size_t>(sequence)]; }
  int64_t tokens() const { return offsets_.back(); }

 private:
  bool vectors_;
  std::vector<int32_t> ids_, offsets_{0}, edge_offsets_;
  std::vector<float> rows_;
  std::vector<Edge> edges_;
};

// The rows of one sequence of an output [T, width], or its row of [B, width].
inline std::span<const float> RowsOf(std::span<const float> all, const FamilyBatch& batch,
                                     int64_t sequence, bool by_token) {
  if (all.empty()) return {};
  const int64_t rows = by_token ? batch.tokens() : batch.sequences();
  const int64_t width = static_cast<int64_t>(all.size()) / rows;
  const int64_t begin = by_token ? batch.begin(sequence) : sequence;
  const int64_t end = by_token ? batch.begin(sequence + 1) : sequence + 1;
  return all.subspan(static_cast<size_t>(begin * width),
                     static_cast<size_t>((end - begin) * width));
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_FAMILY_BATCH_H_
