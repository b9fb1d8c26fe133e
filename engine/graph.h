// What a model's page of straight-line code writes to: values and steps in order.
#ifndef ATTEND_ENGINE_GRAPH_H_
#define ATTEND_ENGINE_GRAPH_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/status.h"
#include "engine/attention_recorder.h"
#include "engine/config.h"
#include "engine/step.h"
#include "engine/weights.h"

namespace attend {

// A step with what the planner must know of it.
struct Node {
  std::unique_ptr<Step> step;
  std::vector<Value> reads;
  Value writes;  // id -1: an AttentionState
  Domain domain = Domain::kTokens;
  bool reads_state = false;     // attention: other rows of the sequence, by its packed keys
  int attends = -1;             // attention: the state that it reads
  bool reads_sequence = false;  // pooling: all rows of the sequence
};

// The longest sequence that a Session of `max_tokens` can be given.
inline int64_t LongestSequence(const ModelConfig& config, int64_t max_tokens) {
  return config.max_length > 0 ? std::min(config.max_length, max_tokens) : max_tokens;
}

// What a Session computes in: what was asked for, or else what the file says.
Precision EffectivePrecision(Precision asked, const ModelConfig& config);

class Graph {
 public:
  // Linear layers are computed in `precision`, but for those that the config asks to be more exact.
  Graph(const ModelConfig& config, WeightCache* weights, int64_t max_tokens, Precision precision)
      : config_(config),
        weights_(*weights),
        longest_sequence_(LongestSequence(config, max_tokens)),
        precision_(precision) {}

  const ModelConfig& config() const { return config_; }
  WeightCache& weights() { return weights_; }
  // A linear layer, as WeightCache::GetLinear; layers that are computed together are so in the
  // most exact type that one of them asks for.
  Result<Linear> GetLinear(const std::vector<RowBlock>& blocks, int64_t panel_width);
  // The whole of NAME.weight with NAME.bias.
  Result<Linear> GetLinear(const std::string& name);
  // What tables by position must reach to.
  int64_t longest_sequence() const { return longest_sequence_; }

  Value NewValue(std::string_view name, int64_t width, Domain domain, bool split);
  void Add(Node node) { nodes_.push_back(std::move(node)); }
  // The index by which a step finds its runner.
  int UseKernel(std::shared_ptr<const LinearKernel> kernel);
  // The state of the next attention. In a cache and of a source each has its own; of the batch two
  // alternate, so that a thread may fill one while another still reads the last.
  int NextState(const StateInfo& info);

  // A table of `count` floats that steps share by its name, filled when it is first asked for. It
  // lives as long as the plan.
  const float* SharedTable(const std::string& name, int64_t count,
                           const std::function<void(float*)>& fill);

  // What the linear layer NAME is computed in.
  GemmType LayerType(const std::string& name) const;

  // Of an AttentionMap: what keeps the weights of the attentions that are added. Not owned.
  const RecordedMaps& recorded() const { return recorded_; }
  void set_recorded(const RecordedMaps& maps) { recorded_ = maps; }

  // What the caller gets. A value that is not set is not an output.
  Value hidden, pooled, logits;

  // For the planner.
  std::vector<Node>& nodes() { return nodes_; }
  std::vector<ValueInfo>& values() { return values_; }
  const std::vector<std::shared_ptr<const LinearKernel>>& kernels() const { return kernels_; }
  const std::vector<StateInfo>& states() const { return states_; }
  std::map<std::string, std::vector<float>>& tables() { return tables_; }

 private:
  const ModelConfig& config_;
  WeightCache& weights_;
  int64_t longest_sequence_;
  Precision precision_;
  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  std::vector<std::shared_ptr<const LinearKernel>> kernels_;
  std::vector<StateInfo> states_;
  std::vector<int> batch_states_;  // at most 2
  int next_batch_state_ = 0;
  std::map<std::string, std::vector<float>> tables_;
  RecordedMaps recorded_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_GRAPH_H_
