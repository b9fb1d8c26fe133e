// What a model file says of its model, typed and checked. The keys of the file are the names here
// ("hidden_size"); enums are stored by their names ("post"); engine/FORMAT.md says how.
// Every published encoder is a point of this family.
#ifndef ATTEND_ENGINE_CONFIG_H_
#define ATTEND_ENGINE_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"
#include "engine/format.h"

namespace attend {

// Sinusoidal: sines at even columns, cosines at odd ones; halves: all sines, then all cosines.
enum class Position { kNone, kLearned, kSinusoidal, kRotary, kSinusoidalHalves };
// How rotary angles of long texts are squeezed: frequencies divided by the factor, all of them, or
// the low ones (Llama 3.1).
enum class RopeScaling { kNone, kLinear, kLlama3 };
enum class Score { kScaledDot, kDot, kAdditive };
enum class ScoreBias { kNone, kAlibi, kRelative };
enum class Normalizer { kSoftmax, kSoftmax1, kRelu, kRelu2, kSigmoid, kNone };
enum class NormPlace { kPost, kPre, kNone };
enum class NormType { kLayerNorm, kRmsNorm };
// Geglu, geglu_tanh, swiglu, reglu: gelu, gelu_tanh, silu, relu of the gate, times up.
enum class Activation {
  kNone,
  kGelu,
  kGeluTanh,
  kRelu,
  kSilu,
  kTanh,
  kGeglu,
  kSwiglu,
  kGegluTanh,
  kReglu,
};
enum class Pooling { kNone, kFirst, kMean, kMax, kLast };

// The names by which the file and messages know the values ("scaled_dot", ...).
const char* Name(Position value);
const char* Name(RopeScaling value);
const char* Name(Score value);
const char* Name(ScoreBias value);
const char* Name(Normalizer value);
const char* Name(NormPlace value);
const char* Name(NormType value);
const char* Name(Activation value);
const char* Name(Pooling value);
const char* Name(Task value);       // "hidden", "tokens", "sequence", "embedding", "generate"
const char* Name(Precision value);  // "f32", "bf16", "int8"

struct ModelConfig {
  std::string architecture = "encoder";  // the file in engine/models/ that builds it
  std::string source;                    // Hugging Face model_type it came from
  std::string description;
  Task task = Task::kHidden;
  Precision precision = Precision::kF32;
  // Layers that lose too much in `precision`: computed in f32 (precision bf16 or int8) or in bf16
  // (precision int8) instead. "layers.0.ffn.down" for layers.0.ffn.down.weight; ascending.
  std::vector<std::string> f32_layers, bf16_layers;

  int64_t hidden_size = 0;        // D, 1 .. 65536
  int64_t num_layers = 0;         // 0 .. 1024
  int64_t num_heads = 0;          // H
  int64_t num_kv_heads = 0;       // G, divides H
  int64_t head_dim = 0;           // E
  int64_t intermediate_size = 0;  // F; 0: no feed-forward block
  int64_t vocab_size = 0;         // V; 0: input vectors
  int64_t input_size = 0;         // width of input vectors; 0: tokens
  int64_t embedding_size = 0;     // width of the embedding tables; D unless projected (ELECTRA)
  int64_t type_vocab_size = 0;    // 0: no type embeddings
  int64_t max_positions = 0;      // rows of the position table (learned)
  int64_t position_offset = 0;    // row of the position table for position 0 (RoBERTa: pad + 1)
  int64_t max_length = 0;         // the longest sequence; 0: no limit

  Position position = Position::kNone;
  double rope_theta = 10000;
  // Of architectures that decode, as all that is said to be so below.
  RopeScaling rope_scaling = RopeScaling::kNone;
  double rope_factor = 1;
  double rope_low_factor = 1,
         rope_high_factor = 4;       // llama3: where low frequencies end, high begin
  int64_t rope_original_length = 0;  // llama3: what the model was first trained for
  Score score = Score::kScaledDot;
  int64_t score_size = 0;  // A, additive only
  ScoreBias score_bias = ScoreBias::kNone;
  int64_t relative_buckets = 32;
  int64_t relative_max_distance = 128;
  bool causal = false;
  bool windowed = false;
  int64_t window_left = 0, window_right = 0;
  int64_t global_tokens = 0;
  bool edges = false;
  Normalizer normalizer = Normalizer::kSoftmax;
  bool normalizer_length = false;
  NormPlace norm = NormPlace::kPost;
  NormType norm_type = NormType::kLayerNorm;
  double norm_eps = 1e-12;
  bool residual = true;
  bool output_projection = true;
  Activation activation = Activation::kGelu;

  // What follows the last layer.
  bool pooler = false;                                   // tanh(W x_first + b), BERT's
  Pooling pooling = Pooling::kNone;                      // of task sequence and embedding
  Activation head_dense_activation = Activation::kNone;  // with tensor head.dense.*; of sequence
                                                         // classification heads
  bool head_dense = false;
  bool head_from_pooler = false;     // logits = head(pooler output), BERT's
  std::vector<Activation> dense;     // activations of dense.0, dense.1, ... (sentence embedding)
  std::vector<int64_t> dense_sizes;  // their output widths
  bool normalize = false;            // embeddings divided by their length
  int64_t num_labels = 0;            // C
  std::vector<std::string> labels;   // [C]

  // Decoders, alone or behind an encoder. A decoder alone has the sizes above.
  double embedding_scale = 1;  // token embeddings are multiplied with it
  bool qk_norm = false;        // queries and keys are normalised, head by head (Qwen3)
  bool tied_head = true;    // task generate: logits by the table of token embeddings, else by head
  double logits_scale = 1;  // task generate: multiplies W x, not logits_bias
  // architecture encoder_decoder: the decoder, where it differs from the encoder.
  int64_t decoder_layers = 0;
  int64_t decoder_heads = 0;
  int64_t decoder_head_dim = 0;
  int64_t decoder_intermediate_size = 0;

  bool word_shape_types = false;  // taggers: type ids are the shapes of words (text.h)
};

// One tensor that a config calls for.
struct TensorSpec {
  std::string name;
  std::vector<uint64_t> shape;
  bool required = true;
  bool quantizable = false;  // may be stored as I8 with NAME.scale F32 [shape[0]]
};

// Every tensor that a model of this config has, and no other may be there (but "tokenizer", U8).
//   embeddings.tokens.weight [V, De]  embeddings.positions.weight [P, De]
//   embeddings.types.weight [types, De]  embeddings.norm.{weight,bias} [De] (optional)
//   embeddings.projection.{weight [D, De],bias} if De != D;  input.projection.{weight [D, in],bias}
//   layers.i.attention.{q,k,v,o}.{weight,bias}; additive: {qa,ka}.{weight,bias} and va [H, A]
//   layers.i.attention_norm.*  layers.i.ffn.{up,gate,down}.*  layers.i.ffn_norm.*  final_norm.*
//   relative.weight [buckets, H]   pooler.{weight [D, D],bias}   head.dense.{weight [D, D],bias}
//   head.{weight [C, D],bias}   dense.i.{weight,bias}
// qk_norm: layers.i.attention.{q,k}_norm.weight [E]. Task generate: head.weight [V, D] unless tied,
// logits_bias [V] (optional). An encoder-decoder has the encoder's as above, and under "decoder.":
// embeddings.positions, embeddings.norm, layers.i.*, relative.weight, final_norm; its layers have
//   decoder.layers.i.cross_attention.{q,k,v,o}.{weight,bias}  decoder.layers.i.cross_norm.*
// Weights are [out, in] row-major.
std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config);

// Whether the feed-forward block has a gate (ffn.gate) beside its up projection.
inline bool IsGated(Activation activation) {
  return activation == Activation::kGeglu || activation == Activation::kSwiglu ||
         activation == Activation::kGegluTanh || activation == Activation::kReglu;
}

// The kinds of whole models.
inline bool IsDecoder(const ModelConfig& c) { return c.architecture == "decoder"; }
inline bool IsEncoderDecoder(const ModelConfig& c) { return c.architecture == "encoder_decoder"; }
inline bool Decodes(const ModelConfig& c) { return IsDecoder(c) || IsEncoderDecoder(c); }

// Each side of an encoder-decoder as a config of its own; their tensors begin with "" and
// "decoder.". Of a decoder alone, DecoderSide is the config itself.
ModelConfig EncoderSide(const ModelConfig& config);
ModelConfig DecoderSide(const ModelConfig& config);

// Whether the sizes are inside the published limits and the fields combine.
// Errors: kInvalidArgument naming field, value and what is allowed.
Status CheckConfig(const ModelConfig& config);

// Reads and checks the config, and holds the file's tensors against ExpectedTensors: names, shapes,
// types, scales. A key that is unknown or does not apply is refused, unless it has a dot in it
// (those are free for notes: "note.licence") or is "tokenizer", the kind of the tokenizer. Reads no
// weight, and of I8 tensors the scales. Errors: kCorrupt or kUnsupported naming key or tensor,
// expected and got.
Result<ModelConfig> ReadConfig(const FileView& file);

// Stores every field that applies.
void WriteConfig(const ModelConfig& config, FileWriter* writer);

// The index of the first element that no weight may be: NaN or infinite; -128 of I8, whose scales
// are symmetric. `bytes` may be a part of a tensor.
std::optional<size_t> FindBadWeight(DType dtype, std::span<const std::byte> bytes);

// Looks at every weight. Errors: kCorrupt naming tensor, row, column and value.
// Cost: one pass over the file.
Status CheckFinite(const FileView& file);

}  // namespace attend

#endif  // ATTEND_ENGINE_CONFIG_H_
