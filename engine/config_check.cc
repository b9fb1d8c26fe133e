#include "engine/config_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace attend {
namespace {

// The published limits.
constexpr int64_t kMaxAttentionWidth = 262144;
constexpr int64_t kMaxDense = 16;

Status Bad(const char* field, std::string what) {
  return Status(ErrorCode::kInvalidArgument, std::move(what), field);
}

Status CheckIdentity(const ModelConfig& c) {
  const bool named = !c.architecture.empty() && c.architecture.size() <= 64 &&
                     std::all_of(c.architecture.begin(), c.architecture.end(), [](char ch) {
                       return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_';
                     });
  if (!named) return Bad("architecture", "Expected 1 to 64 of the characters a-z, 0-9, _.");
  if (c.precision == Precision::kFile) {
    return Bad("precision", "Expected f32, bf16 or int8, got file.");
  }
  return Status();
}

Status CheckInput(const ModelConfig& c) {
  if ((c.vocab_size > 0) == (c.input_size > 0)) {
    return Bad("vocab_size", "Expected exactly one of vocab_size and input_size above 0, got " +
                                 std::to_string(c.vocab_size) + " and " +
                                 std::to_string(c.input_size) + ".");
  }
  if (c.vocab_size == 0 && c.type_vocab_size > 0) {
    return Bad("type_vocab_size", "Types are for tokens; this model takes vectors.");
  }
  if (c.word_shape_types && c.type_vocab_size == 0) {
    return Bad("word_shape_types", "Expected type_vocab_size above 0.");
  }
  const bool projected = c.embedding_size != c.hidden_size;
  const bool sinusoids =
      c.position == Position::kSinusoidal || c.position == Position::kSinusoidalHalves;
  if (projected && (c.vocab_size == 0 || sinusoids)) {
    return Bad("embedding_size", "Expected hidden_size " + std::to_string(c.hidden_size) +
                                     " (input vectors and sinusoidal positions have it), got " +
                                     std::to_string(c.embedding_size) + ".");
  }
  if (c.position == Position::kLearned) {
    const int64_t room = c.max_positions - c.position_offset;
    if (c.max_length < 1 || c.max_length > room) {
      return Bad("max_length", "Expected 1 to " + std::to_string(room) +
                                   " (max_positions - position_offset), got " +
                                   std::to_string(c.max_length) + ".");
    }
  }
  return Status();
}

Status CheckAttention(const ModelConfig& c) {
  if (c.num_heads % c.num_kv_heads != 0) {
    return Bad("num_kv_heads", "Expected a divisor of num_heads " + std::to_string(c.num_heads) +
                                   ", got " + std::to_string(c.num_kv_heads) + ".");
  }
  const int64_t width = c.num_heads * c.head_dim;
  if (width > kMaxAttentionWidth) {
    return Bad("head_dim", "Expected num_heads x head_dim of at most 262144, got " +
                               std::to_string(width) + ".");
  }
  if (!c.output_projection && width != c.hidden_size) {
    return Bad("output_projection", "Without it num_heads x head_dim must be hidden_size " +
                                        std::to_string(c.hidden_size) + ", got " +
                                        std::to_string(width) + ".");
  }
  if (c.position == Position::kRotary) {
    if (c.score == Score::kAdditive) {
      return Bad("position", "rotary does not combine with score additive.");
    }
    if (c.head_dim % 2 != 0) {
      return Bad("head_dim",
                 "Expected an even number for rotary, got " + std::to_string(c.head_dim) + ".");
    }
  }
  if (c.score == Score::kAdditive && c.num_heads * c.score_size > kMaxAttentionWidth) {
    return Bad("score_size", "Expected num_heads x score_size of at most 262144, got " +
                                 std::to_string(c.num_heads * c.score_size) + ".");
  }
  if (c.score_bias == ScoreBias::kRelative) {
    if (c.relative_buckets % 2 != 0) {
      return Bad("relative_buckets",
                 "Expected an even number, got " + std::to_string(c.relative_buckets) + ".");
    }
    if (c.relative_max_distance <= c.relative_buckets / 4) {
      return Bad("relative_max_distance", "Expected more than relative_buckets / 4, got " +
                                              std::to_string(c.relative_max_distance) + ".");
    }
  }
  const bool soft = c.normalizer == Normalizer::kSoftmax || c.normalizer == Normalizer::kSoftmax1;
  if (c.normalizer_length && soft) {
    return Bad("normalizer_length",
               std::string("length does not combine with normalizer ") + Name(c.normalizer) + ".");
  }
  if (c.intermediate_size > 0 &&
      (c.activation == Activation::kNone || c.activation == Activation::kTanh)) {
    return Bad("activation", std::string("Expected gelu, gelu_tanh, relu, silu, geglu or swiglu, "
                                         "got ") +
                                 Name(c.activation) + ".");
  }
  return Status();
}

// What decoders add, and what they do not have.
Status CheckDecoder(const ModelConfig& c) {
  if (!Decodes(c)) {
    if (c.task != Task::kGenerate) return Status();
    return Bad("task", "generate needs a decoder; the architecture is \"" +
                           c.architecture.substr(0, 64) + "\".");
  }
  const bool fits = c.task == Task::kGenerate || (IsDecoder(c) && c.task == Task::kHidden);
  if (!fits) {
    return Bad("task", std::string("Expected generate") + (IsDecoder(c) ? " or hidden" : "") +
                           " for the architecture " + c.architecture + ", got " + Name(c.task) +
                           ".");
  }
  if (c.causal != IsDecoder(c)) {
    return Bad("causal", IsDecoder(c) ? "Expected true for a decoder."
                                      : "Expected false: the decoder's is always, the encoder's "
                                        "never.");
  }
  if (c.vocab_size == 0) return Bad("vocab_size", "Expected tokens: decoders read no vectors.");
  if (c.score == Score::kAdditive) return Bad("score", "Expected scaled_dot or dot for a decoder.");
  if (c.type_vocab_size > 0) return Bad("type_vocab_size", "Expected 0 for a decoder.");
  if (c.embedding_size != c.hidden_size) {
    return Bad("embedding_size", "Expected hidden_size " + std::to_string(c.hidden_size) +
                                     " for a decoder, got " + std::to_string(c.embedding_size) +
                                     ".");
  }
  if (c.score_bias == ScoreBias::kRelative && c.relative_max_distance <= c.relative_buckets / 2) {
    return Bad("relative_max_distance",
               "Expected more than relative_buckets / 2 for a decoder, got " +
                   std::to_string(c.relative_max_distance) + ".");
  }
  if (c.edges || c.pooler) {
    return Bad(c.edges ? "edges" : "pooler", "Expected false for a decoder.");
  }
  if (c.rope_scaling == RopeScaling::kLlama3 && c.rope_high_factor <= c.rope_low_factor) {
    return Bad("rope_high_factor", "Expected more than rope_low_factor " +
                                       std::to_string(c.rope_low_factor) + ", got " +
                                       std::to_string(c.rope_high_factor) + ".");
  }
  if (IsEncoderDecoder(c) && c.decoder_heads * c.decoder_head_dim > kMaxAttentionWidth) {
    return Bad("decoder_head_dim", "Expected decoder_heads x decoder_head_dim of at most 262144.");
  }
  return Status();
}

Status CheckHead(const ModelConfig& c) {
  if (c.task == Task::kSequence) {
    if (c.head_from_pooler && !c.pooler) {
      return Bad("head_from_pooler", "Expected pooler to be true.");
    }
    if (!c.head_from_pooler && c.pooling == Pooling::kNone) {
      return Bad("pooling", "Expected first, mean, max or last for task sequence, got none.");
    }
    if (c.head_dense && IsGated(c.head_dense_activation)) {
      return Bad("head_dense_activation", "Expected an activation without a gate.");
    }
  }
  if (c.task == Task::kTokens || c.task == Task::kSequence) {
    if (c.labels.size() != static_cast<size_t>(c.num_labels)) {
      return Bad("labels", "Expected num_labels " + std::to_string(c.num_labels) + ", got " +
                               std::to_string(c.labels.size()) + ".");
    }
  }
  if (c.task != Task::kEmbedding) return Status();
  if (c.pooling == Pooling::kNone) {
    return Bad("pooling", "Expected first, mean, max or last for task embedding, got none.");
  }
  if (c.dense.size() != c.dense_sizes.size() || c.dense.size() > kMaxDense) {
    return Bad("dense_sizes", "Expected as many as in dense, at most 16, got " +
                                  std::to_string(c.dense_sizes.size()) + " for " +
                                  std::to_string(c.dense.size()) + ".");
  }
  if (std::any_of(c.dense.begin(), c.dense.end(), IsGated)) {
    return Bad("dense", "Expected activations without a gate.");
  }
  return Status();
}

}  // namespace

ModelConfig EncoderSide(const ModelConfig& config) {
  ModelConfig side = config;
  side.architecture = "encoder";
  side.task = Task::kHidden;
  return side;
}

ModelConfig DecoderSide(const ModelConfig& config) {
  if (!IsEncoderDecoder(config)) return config;
  ModelConfig side = config;
  side.architecture = "decoder";
  side.num_layers = config.decoder_layers;
  side.num_heads = side.num_kv_heads = config.decoder_heads;
  side.head_dim = config.decoder_head_dim;
  side.intermediate_size = config.decoder_intermediate_size;
  side.causal = true;
  return side;
}

namespace {

// Names of linear layers that the model has, ascending, each once.
Status CheckLayerNames(const char* field, const std::vector<std::string>& names,
                       const std::set<std::string>& known) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!known.contains(names[i])) {
      return Bad(field, "Expected names of linear layers of this model, got \"" +
                            names[i].substr(0, 64) + "\".");
    }
    if (i == 0 || names[i - 1] < names[i]) continue;
    return Bad(field, "Expected names in ascending order, each once, got \"" + names[i] +
                          "\" behind \"" + names[i - 1] + "\".");
  }
  return Status();
}

// The layers that are computed more exactly than the rest.
Status CheckLayers(const ModelConfig& c) {
  if (c.f32_layers.empty() && c.bf16_layers.empty()) return Status();
  constexpr std::string_view kWeight = ".weight";
  std::set<std::string> known;
  for (const TensorSpec& spec : ExpectedTensors(c)) {
    if (!spec.quantizable || !spec.name.ends_with(kWeight)) continue;
    known.insert(spec.name.substr(0, spec.name.size() - kWeight.size()));
  }
  ATTEND_RETURN_IF_ERROR(CheckLayerNames("f32_layers", c.f32_layers, known));
  ATTEND_RETURN_IF_ERROR(CheckLayerNames("bf16_layers", c.bf16_layers, known));
  for (const std::string& name : c.bf16_layers) {
    if (!std::binary_search(c.f32_layers.begin(), c.f32_layers.end(), name)) continue;
    return Bad("bf16_layers", "\"" + name + "\" is in f32_layers, too.");
  }
  return Status();
}

}  // namespace

Status CheckFields(const ModelConfig& config) {
  ATTEND_RETURN_IF_ERROR(CheckIdentity(config));
  ATTEND_RETURN_IF_ERROR(CheckInput(config));
  ATTEND_RETURN_IF_ERROR(CheckAttention(config));
  ATTEND_RETURN_IF_ERROR(CheckDecoder(config));
  ATTEND_RETURN_IF_ERROR(CheckHead(config));
  return CheckLayers(config);
}

}  // namespace attend
