// The decoder: layers of causal self-attention over what has been written so far, attention to an
// encoder's output if there is one, and the logits of the next token. GPT-2, Llama and Qwen3 are
// decoders alone; T5, BART and Marian stand behind an encoder. Vaswani et al. 2017; Radford et al.
// 2019; Touvron et al. 2023.
#include <string>

#include "engine/models/layers.h"
#include "engine/models/models.h"
#include "engine/ops/attention_spec.h"
#include "engine/ops/linear.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool.h"
#include "engine/ops/qkv.h"

namespace attend {
namespace {

// scale W x + logits_bias, W the table of token embeddings or a weight of its own.
Status AddLogits(Graph& graph, Value x) {
  const ModelConfig& config = graph.config();
  const RowBlock rows = {.tensor = config.tied_head ? "embeddings.tokens" : "head",
                         .count = config.vocab_size,
                         .bias = "logits_bias",
                         .scale = static_cast<float>(config.logits_scale),
                         .shared = config.tied_head};
  Result<Linear> linear = graph.GetLinear({rows}, 0);
  if (!linear.ok()) return linear.status();
  graph.logits = ops::AddLinear(graph, x, "logits", *std::move(linear));
  return Status();
}

}  // namespace

Status BuildSource(Graph& graph, const ModelConfig& decoder) {
  ATTEND_RETURN_IF_ERROR(BuildEncoder(graph));
  for (int64_t i = 0; i < decoder.num_layers; ++i) {
    const std::string name = "decoder.layers." + std::to_string(i) + ".cross_attention";
    const ops::HeadGroups groups = ops::GroupHeads(ops::CrossAttentionSpec(graph, decoder, name));
    const Result<int> state = ops::AddQkv(graph, graph.hidden, name, groups,
                                          {.memory = Memory::kSource, .queries = false});
    if (!state.ok()) return state.status();
  }
  return Status();
}

Status BuildDecoder(Graph& graph, const DecoderRole& role) {
  const ModelConfig& config = graph.config();
  const std::string prefix = role.has_source ? "decoder." : "";
  Value x;
  ATTEND_ASSIGN(x, AddInput(graph, prefix));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    ATTEND_RETURN_IF_ERROR(AddLayer(graph, x, prefix + "layers." + std::to_string(i),
                                    {prefix, role.memory, role.has_source}));
  }
  if (config.norm == NormPlace::kPre) {
    ATTEND_ASSIGN(x, ops::AddNorm(graph, x, prefix + "final_norm"));
  }
  graph.hidden = x;
  if (config.task != Task::kGenerate) return Status();
  if (role.last_logits) x = ops::AddPool(graph, x, Pooling::kLast);
  return AddLogits(graph, x);
}

}  // namespace attend
