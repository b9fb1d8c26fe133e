// What an AttentionMap has and a Session has not: the weights of every attention of its plans.
//
// out_i = sum_j w_ij v_j, so with the unit vector e_j for v_j the kernel of attention gives the
// weights themselves: w_ij in column j. There is no second implementation of scores, biases,
// structures and normalisers that could differ from the first.
#ifndef ATTEND_ENGINE_ATTENTION_RECORDER_H_
#define ATTEND_ENGINE_ATTENTION_RECORDER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/step.h"
#include "kernels/aligned.h"
#include "kernels/attention.h"

namespace attend {

// The unit vectors of `kColumns` keys at a time as packed values (kernels/attention.h): the value
// of key first + c is e_c, that of every other key 0.
class UnitValues {
 public:
  static constexpr int64_t kColumns = 64;

  UnitValues() = default;
  UnitValues(int64_t max_keys, int64_t kv_heads)
      : kv_heads_(kv_heads),
        keys_(RoundUp(max_keys, kKeyBlock)),
        values_(static_cast<size_t>(keys_ * kv_heads * kColumns)) {}

  void MoveTo(int64_t first) {
    Fill(0.0f);
    first_ = first;
    Fill(1.0f);
  }
  const float* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  void Fill(float value) {
    const int64_t end = std::min(first_ + kColumns, keys_);
    for (int64_t j = first_; j < end; ++j) {
      for (int64_t g = 0; g < kv_heads_; ++g) {
        const int64_t row = (j / kKeyBlock * kv_heads_ + g) * kKeyBlock + j % kKeyBlock;
        values_[static_cast<size_t>(row * kColumns + j - first_)] = value;
      }
    }
  }

  int64_t kv_heads_ = 0, keys_ = 0, first_ = 0;
  std::vector<float> values_;
};

// The weights of the attentions of one kind, [layers, heads, queries, keys] of the sequence that
// runs: at most `max_tokens` of either.
class WeightMap {
 public:
  // Takes the next attention in, while the graph is written. Returns its layer.
  int Add(const AttentionSpec& spec) {
    heads_ = spec.heads;
    kv_heads_ = spec.kv_heads;
    return layers_++;
  }

  // Takes the memory for what was added; at most `rows` are computed at a time.
  void Allocate(int64_t max_tokens, int64_t rows) {
    if (layers_ == 0) return;
    units_ = UnitValues(max_tokens, kv_heads_);
    out_.resize(static_cast<size_t>(rows * heads_ * UnitValues::kColumns));
    weights_.resize(static_cast<size_t>(layers_ * heads_ * max_tokens * max_tokens));
  }
  size_t bytes() const { return (units_.size() + out_.size() + weights_.size()) * sizeof(float); }

  // Of the sequence that runs from here on.
  void SetLengths(int64_t queries, int64_t keys) { queries_ = queries, keys_ = keys; }

  UnitValues& units() { return units_; }
  // [rows, heads, kColumns]: where the kernel puts its columns of weights.
  float* out() { return out_.data(); }
  // [heads, queries, keys] of one attention.
  float* Layer(int layer) { return weights_.data() + layer * heads_ * queries_ * keys_; }

  int64_t layers() const { return layers_; }
  int64_t heads() const { return heads_; }
  int64_t queries() const { return queries_; }
  int64_t keys() const { return keys_; }

 private:
  int layers_ = 0;
  int64_t heads_ = 0, kv_heads_ = 0, queries_ = 0, keys_ = 0;
  UnitValues units_;
  std::vector<float> out_, weights_;
};

// Used by the one thread of an AttentionMap, for one sequence at a time.
struct AttentionRecorder {
  int64_t max_tokens = 0;
  WeightMap self;     // of a model's sequences, an encoder-decoder's source
  WeightMap decoder;  // of what an encoder-decoder has written
  WeightMap cross;    // from there to the source

  void Allocate(int64_t rows) {
    for (WeightMap* map : {&self, &decoder, &cross}) map->Allocate(max_tokens, rows);
  }
  size_t bytes() const { return self.bytes() + decoder.bytes() + cross.bytes(); }
};

// Where the attentions of one graph go; null: nowhere.
struct RecordedMaps {
  WeightMap* self = nullptr;
  WeightMap* cross = nullptr;

  WeightMap* Of(Memory memory) const { return memory == Memory::kSource ? cross : self; }
  bool any() const { return self != nullptr || cross != nullptr; }
};

}  // namespace attend

#endif  // ATTEND_ENGINE_ATTENTION_RECORDER_H_
