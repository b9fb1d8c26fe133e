#include "engine/models/layers.h"

#include "engine/ops/attention.h"
#include "engine/ops/embedding.h"
#include "engine/ops/linear.h"
#include "engine/ops/norm.h"
#include "engine/ops/qkv.h"
#include "engine/ops/residual.h"

namespace attend {
namespace {

// x = Norm(x + Block(x)), x + Block(Norm(x)) or x + Block(x), as the config says. `block` gets what
// the block reads, and the value it adds to (id -1: none).
template <typename Block>
Status AddResidualBlock(Graph& graph, Value& x, const std::string& norm_name, const Block& block) {
  const ModelConfig& config = graph.config();
  Value input = x;
  if (config.norm == NormPlace::kPre) ATTEND_ASSIGN(input, ops::AddNorm(graph, x, norm_name));
  Value output;
  ATTEND_ASSIGN(output, block(input, config.residual ? x : Value{}));
  if (config.norm == NormPlace::kPost) {
    ATTEND_ASSIGN(output, ops::AddNorm(graph, output, norm_name));
  }
  x = output;
  return Status();
}

}  // namespace

Result<Value> AddInput(Graph& graph, const std::string& prefix) {
  const ModelConfig& config = graph.config();
  Value x;
  if (config.vocab_size > 0) {
    x = ops::AddEmbedding(graph, prefix);
  } else {
    x = ops::AddVectors(graph);
    if (graph.weights().Has("input.projection.weight")) {
      ATTEND_ASSIGN(x, ops::AddLinear(graph, x, "input.projection"));
    }
    x = ops::AddPositions(graph, x);
  }
  if (graph.weights().Has(prefix + "embeddings.norm.weight")) {
    ATTEND_ASSIGN(x, ops::AddNorm(graph, x, prefix + "embeddings.norm"));
  }
  if (config.embedding_size != config.hidden_size) {
    ATTEND_ASSIGN(x, ops::AddLinear(graph, x, "embeddings.projection"));
  }
  return x;
}

Status AddLayer(Graph& graph, Value& x, const std::string& name, const LayerRole& role) {
  const ModelConfig& config = graph.config();
  const Result<AttentionSpec> spec =
      ops::SelfAttentionSpec(graph, name + ".attention", role.prefix);
  if (!spec.ok()) return spec.status();
  const ops::HeadGroups groups = ops::GroupHeads(*spec);
  const auto attention = [&](Value input, Value residual) -> Result<Value> {
    Result<int> state =
        ops::AddQkv(graph, input, name + ".attention", groups, {.memory = role.memory});
    if (!state.ok()) return state.status();
    const Value seen = ops::AddAttention(graph, *state, groups, *spec);
    if (!config.output_projection) {
      return residual.id < 0 ? seen : ops::AddResidual(graph, seen, residual);
    }
    return ops::AddLinear(graph, seen, name + ".attention.o", {.residual = residual});
  };
  ATTEND_RETURN_IF_ERROR(AddResidualBlock(graph, x, name + ".attention_norm", attention));
  const auto cross_attention = [&](Value input, Value residual) -> Result<Value> {
    const AttentionSpec cross = ops::CrossAttentionSpec(graph, config, name + ".cross_attention");
    const ops::HeadGroups cross_groups = ops::GroupHeads(cross);
    Result<int> state = ops::AddQkv(graph, input, name + ".cross_attention", cross_groups,
                                    {.memory = Memory::kSource, .keys = false});
    if (!state.ok()) return state.status();
    const Value seen = ops::AddAttention(graph, *state, cross_groups, cross);
    return ops::AddLinear(graph, seen, name + ".cross_attention.o", {.residual = residual});
  };
  if (role.has_source) {
    ATTEND_RETURN_IF_ERROR(AddResidualBlock(graph, x, name + ".cross_norm", cross_attention));
  }
  if (config.intermediate_size == 0) return Status();
  const auto feed_forward = [&](Value input, Value residual) -> Result<Value> {
    const bool gated = IsGated(config.activation);
    const Activation activation = config.activation;
    // Weights are packed in the order of use.
    Result<Linear> up = graph.GetLinear(name + ".ffn.up");
    if (!up.ok()) return up.status();
    Linear gate;
    if (gated) ATTEND_ASSIGN(gate, graph.GetLinear(name + ".ffn.gate"));
    Result<Linear> down = graph.GetLinear(name + ".ffn.down");
    if (!down.ok()) return down.status();
    // What the last layer reads is prepared where it is made.
    const bool prepared = down->kernel->prepared_floats() > 0;
    const auto reader = prepared ? down->kernel : nullptr;
    Value inner;
    if (gated) {
      inner = ops::AddLinear(graph, input, name + ".ffn.up", *std::move(up));
      inner = ops::AddLinear(graph, input, name + ".ffn.gate", std::move(gate),
                             {.activation = activation, .up = inner, .reader = reader});
    } else {
      inner = ops::AddLinear(graph, input, name + ".ffn.up", *std::move(up),
                             {.activation = activation, .reader = reader});
    }
    return ops::AddLinear(graph, inner, name + ".ffn.down", *std::move(down),
                          {.residual = residual, .prepared = prepared});
  };
  return AddResidualBlock(graph, x, name + ".ffn_norm", feed_forward);
}

}  // namespace attend
