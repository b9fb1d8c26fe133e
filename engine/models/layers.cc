#include "engine/models/layers.h"

#include "engine/ops/attention.h"
#include "engine/ops/embedding.h"
#include "engine/ops/linear.h"
#include "engine/ops/norm.h"
#include "engine/ops/qkv.h"
#include "engine/ops/residual.h"

namespace attend {
namespace {

Status NotRun(const char* field, const char* value) {
  return Status(ErrorCode::kUnsupported,
                std::string(field) + " \"" + value + "\" is not run by this build", field);
}

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

Status CheckRunnable(const ModelConfig& config) {
  if (config.position == Position::kRotary) return NotRun("position", Name(config.position));
  if (config.score != Score::kScaledDot) return NotRun("score", Name(config.score));
  if (config.score_bias != ScoreBias::kNone) return NotRun("score_bias", Name(config.score_bias));
  if (config.normalizer != Normalizer::kSoftmax) {
    return NotRun("normalizer", Name(config.normalizer));
  }
  if (config.causal) return NotRun("causal", "true");
  if (config.windowed) return NotRun("window", "set");
  if (config.edges) return NotRun("edges", "true");
  return Status();
}

Result<Value> AddInput(Graph& graph) {
  const ModelConfig& config = graph.config();
  Value x;
  if (config.vocab_size > 0) {
    ATTEND_ASSIGN(x, ops::AddEmbedding(graph));
  } else {
    x = ops::AddVectors(graph);
    if (graph.weights().Has("input.projection.weight")) {
      ATTEND_ASSIGN(x, ops::AddLinear(graph, x, "input.projection"));
    }
    x = ops::AddPositions(graph, x);
  }
  if (graph.weights().Has("embeddings.norm.weight")) {
    ATTEND_ASSIGN(x, ops::AddNorm(graph, x, "embeddings.norm"));
  }
  if (config.embedding_size != config.hidden_size) {
    ATTEND_ASSIGN(x, ops::AddLinear(graph, x, "embeddings.projection"));
  }
  return x;
}

Status AddLayer(Graph& graph, Value& x, const std::string& name) {
  const ModelConfig& config = graph.config();
  const ops::HeadGroups groups =
      ops::GroupHeads(config.num_heads, config.num_kv_heads, config.head_dim);
  const auto attention = [&](Value input, Value residual) -> Result<Value> {
    Result<int> state = ops::AddQkv(graph, input, name + ".attention", groups);
    if (!state.ok()) return state.status();
    const Value seen = ops::AddAttention(graph, *state, groups);
    if (!config.output_projection) {
      return residual.id < 0 ? seen : ops::AddResidual(graph, seen, residual);
    }
    return ops::AddLinear(graph, seen, name + ".attention.o", {.residual = residual});
  };
  ATTEND_RETURN_IF_ERROR(AddResidualBlock(graph, x, name + ".attention_norm", attention));
  if (config.intermediate_size == 0) return Status();
  const auto feed_forward = [&](Value input, Value residual) -> Result<Value> {
    const bool gated = IsGated(config.activation);
    const Activation activation = config.activation;
    Value inner;
    ATTEND_ASSIGN(inner, ops::AddLinear(graph, input, name + ".ffn.up",
                                        {.activation = gated ? Activation::kNone : activation}));
    if (gated) {
      ATTEND_ASSIGN(inner, ops::AddLinear(graph, input, name + ".ffn.gate",
                                          {.activation = activation, .up = inner}));
    }
    return ops::AddLinear(graph, inner, name + ".ffn.down", {.residual = residual});
  };
  return AddResidualBlock(graph, x, name + ".ffn_norm", feed_forward);
}

}  // namespace attend
