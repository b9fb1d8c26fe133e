#include "engine/config_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

namespace attend {
namespace {

constexpr std::string_view kScale = ".scale";
constexpr std::string_view kBias = ".bias";
constexpr std::string_view kWeight = ".weight";
constexpr float kLargestInt8 = 127.0f;

// Collects specs under a growing prefix.
class Specs {
 public:
  // NAME.weight [rows, columns] and NAME.bias [rows].
  void Linear(const std::string& name, int64_t rows, int64_t columns, bool required = true) {
    Add(name + ".weight", {rows, columns}, required, true);
    Add(name + ".bias", {rows}, false, false);
  }
  // NAME.weight [width] and, of layer norms, NAME.bias [width].
  void Norm(const std::string& name, const ModelConfig& config, int64_t width,
            bool required = true) {
    Add(name + ".weight", {width}, required, false);
    if (config.norm_type == NormType::kLayerNorm) Add(name + ".bias", {width}, false, false);
  }
  void Table(const std::string& name, int64_t rows, int64_t columns) {
    Add(name + ".weight", {rows, columns}, true, true);
  }
  void Plain(const std::string& name, int64_t rows, int64_t columns) {
    Add(name, {rows, columns}, true, false);
  }
  void Vector(const std::string& name, int64_t width, bool required = true) {
    Add(name, {width}, required, false);
  }

  std::vector<TensorSpec> Take() { return std::move(specs_); }

 private:
  void Add(std::string name, std::initializer_list<int64_t> shape, bool required,
           bool quantizable) {
    specs_.push_back({std::move(name), {shape.begin(), shape.end()}, required, quantizable});
  }

  std::vector<TensorSpec> specs_;
};

void AddInput(const ModelConfig& c, Specs* specs) {
  const int64_t width = c.embedding_size;
  if (c.vocab_size > 0) {
    specs->Table("embeddings.tokens", c.vocab_size, width);
  } else {
    specs->Linear("input.projection", c.hidden_size, c.input_size,
                  /*required=*/c.input_size != c.hidden_size);
  }
  if (c.position == Position::kLearned) {
    specs->Table("embeddings.positions", c.max_positions, width);
  }
  if (c.type_vocab_size > 0) specs->Table("embeddings.types", c.type_vocab_size, width);
  specs->Norm("embeddings.norm", c, width, /*required=*/false);
  if (width != c.hidden_size) specs->Linear("embeddings.projection", c.hidden_size, width);
}

// `cross`: a decoder's layer, which reads an encoder too.
void AddLayer(const ModelConfig& c, const std::string& layer, bool cross, Specs* specs) {
  const int64_t width = c.hidden_size;
  const std::string attention = layer + "attention.";
  if (c.score == Score::kAdditive) {
    specs->Linear(attention + "qa", c.num_heads * c.score_size, width);
    specs->Linear(attention + "ka", c.num_kv_heads * c.score_size, width);
    specs->Plain(attention + "va", c.num_heads, c.score_size);
  } else {
    specs->Linear(attention + "q", c.num_heads * c.head_dim, width);
    specs->Linear(attention + "k", c.num_kv_heads * c.head_dim, width);
  }
  specs->Linear(attention + "v", c.num_kv_heads * c.head_dim, width);
  if (c.output_projection) specs->Linear(attention + "o", width, c.num_heads * c.head_dim);
  if (c.qk_norm) {
    specs->Vector(attention + "q_norm.weight", c.head_dim);
    specs->Vector(attention + "k_norm.weight", c.head_dim);
  }
  if (c.norm != NormPlace::kNone) specs->Norm(layer + "attention_norm", c, width);
  if (cross) {
    for (const char* name : {"cross_attention.q", "cross_attention.k", "cross_attention.v"}) {
      specs->Linear(layer + name, c.num_heads * c.head_dim, width);
    }
    specs->Linear(layer + "cross_attention.o", width, c.num_heads * c.head_dim);
    if (c.norm != NormPlace::kNone) specs->Norm(layer + "cross_norm", c, width);
  }
  if (c.intermediate_size == 0) return;
  specs->Linear(layer + "ffn.up", c.intermediate_size, width);
  if (IsGated(c.activation)) specs->Linear(layer + "ffn.gate", c.intermediate_size, width);
  specs->Linear(layer + "ffn.down", width, c.intermediate_size);
  if (c.norm != NormPlace::kNone) specs->Norm(layer + "ffn_norm", c, width);
}

// The decoder of an encoder-decoder, which shares the table of token embeddings.
void AddDecoderSide(const ModelConfig& config, Specs* specs) {
  const ModelConfig c = DecoderSide(config);
  if (c.position == Position::kLearned) {
    specs->Table("decoder.embeddings.positions", c.max_positions, c.hidden_size);
  }
  specs->Norm("decoder.embeddings.norm", c, c.hidden_size, /*required=*/false);
  for (int64_t i = 0; i < c.num_layers; ++i) {
    AddLayer(c, "decoder.layers." + std::to_string(i) + ".", /*cross=*/true, specs);
  }
  if (c.score_bias == ScoreBias::kRelative) {
    specs->Plain("decoder.relative.weight", c.relative_buckets, c.num_heads);
  }
  if (c.norm == NormPlace::kPre) specs->Norm("decoder.final_norm", c, c.hidden_size);
}

void AddOutput(const ModelConfig& c, Specs* specs) {
  if (c.norm == NormPlace::kPre) specs->Norm("final_norm", c, c.hidden_size);
  if (c.pooler) specs->Linear("pooler", c.hidden_size, c.hidden_size);
  if (c.task == Task::kSequence && c.head_dense) {
    specs->Linear("head.dense", c.hidden_size, c.hidden_size);
  }
  if (c.task == Task::kTokens || c.task == Task::kSequence) {
    specs->Linear("head", c.num_labels, c.hidden_size);
  }
  if (c.task == Task::kGenerate) {
    if (!c.tied_head) specs->Table("head", c.vocab_size, c.hidden_size);
    specs->Vector("logits_bias", c.vocab_size, /*required=*/false);
  }
  if (c.task != Task::kEmbedding) return;
  int64_t width = c.hidden_size;
  for (size_t i = 0; i < c.dense_sizes.size(); ++i) {
    specs->Linear("dense." + std::to_string(i), c.dense_sizes[i], width);
    width = c.dense_sizes[i];
  }
}

std::string ShapeText(std::span<const uint64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

Status Corrupt(std::string what, std::string_view tensor, std::string hint = {}) {
  return Status(ErrorCode::kCorrupt, std::move(what), std::string(tensor), std::move(hint));
}

Status CheckShape(const TensorView& tensor, std::span<const uint64_t> expected) {
  const std::span<const uint64_t> got = tensor.shape;
  if (std::equal(got.begin(), got.end(), expected.begin(), expected.end())) return Status();
  const bool transposed =
      got.size() == expected.size() && std::equal(got.begin(), got.end(), expected.rbegin());
  return Corrupt("Expected the shape " + ShapeText(expected) + ", got " + ShapeText(got) +
                     (transposed ? ": it is transposed." : "."),
                 tensor.name, transposed ? "weights are stored as [out, in]" : "");
}

// NAME.scale of an I8 tensor: one finite factor a row, none negative.
Status CheckScale(const FileView& file, const TensorView& tensor) {
  const std::string name = std::string(tensor.name) + std::string(kScale);
  const std::optional<TensorView> scale = file.FindTensor(name);
  if (!scale) {
    return Corrupt("The tensor is missing; an I8 tensor needs one scale a row.", name);
  }
  if (scale->dtype != DType::kF32) {
    return Corrupt(std::string("Expected the type F32, got ") + DTypeName(scale->dtype) + ".",
                   name);
  }
  ATTEND_RETURN_IF_ERROR(CheckShape(*scale, tensor.shape.first(1)));
  for (size_t row = 0; row < tensor.shape[0]; ++row) {
    float value;
    std::memcpy(&value, scale->bytes.data() + row * sizeof(value), sizeof(value));
    if (!(value >= 0) || !std::isfinite(value * kLargestInt8)) {
      return Corrupt("Expected a finite scale of 0 or more, with room for 127 times it, at row " +
                         std::to_string(row) + ", got " + std::to_string(value) + ".",
                     name);
    }
  }
  return Status();
}

Status CheckTensor(const FileView& file, const TensorView& tensor, const TensorSpec& spec) {
  ATTEND_RETURN_IF_ERROR(CheckShape(tensor, spec.shape));
  switch (tensor.dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBf16:
      return Status();
    case DType::kI8:
      if (spec.quantizable) return CheckScale(file, tensor);
      break;
    case DType::kU8:
    case DType::kI32:
      break;
  }
  return Status(ErrorCode::kUnsupported,
                std::string("Expected the type F32, F16, BF16") +
                    (spec.quantizable ? " or I8" : "") + ", got " + DTypeName(tensor.dtype) + ".",
                std::string(tensor.name));
}

// A tensor that no spec names: a tokenizer, a scale, or a mistake.
Status CheckOther(const FileView& file, const TensorView& tensor) {
  if (tensor.name == "tokenizer" || tensor.name == "target_tokenizer") {
    if (tensor.dtype == DType::kU8 && tensor.shape.size() == 1) return Status();
    return Corrupt(std::string("Expected U8 with one dimension, got ") + DTypeName(tensor.dtype) +
                       " " + ShapeText(tensor.shape) + ".",
                   tensor.name);
  }
  if (tensor.name.ends_with(kScale)) {
    // Whether the tensor it scales may be I8, and has this one as it should, is checked with that.
    const std::string_view base = tensor.name.substr(0, tensor.name.size() - kScale.size());
    const std::optional<TensorView> scaled = file.FindTensor(base);
    if (scaled && scaled->dtype == DType::kI8) return Status();
  }
  return Status(ErrorCode::kUnsupported, "The tensor is unknown, or does not apply to this model.",
                std::string(tensor.name));
}

// The element at `index` in words: "row 3, column 4", or "element 7".
std::string PlaceText(std::span<const uint64_t> shape, size_t index) {
  if (shape.size() < 2) return "element " + std::to_string(index);
  const uint64_t columns = shape.back();
  return "row " + std::to_string(index / columns) + ", column " + std::to_string(index % columns);
}

// The first of `count` elements for which `bad` holds. In blocks, so that the search through good
// ones is vectorised.
template <typename T, typename Bad>
std::optional<size_t> FindFirst(const std::byte* data, size_t count, Bad bad) {
  constexpr size_t kBlock = 1024;
  T block[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    std::memcpy(block, data + begin * sizeof(T), size * sizeof(T));
    unsigned found = 0;
    for (size_t i = 0; i < size; ++i) found |= bad(block[i]) ? 1u : 0u;
    if (found == 0) continue;
    for (size_t i = 0; i < size; ++i) {
      if (bad(block[i])) return begin + i;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config) {
  Specs specs;
  AddInput(config, &specs);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    AddLayer(config, "layers." + std::to_string(i) + ".", /*cross=*/false, &specs);
  }
  if (config.score_bias == ScoreBias::kRelative) {
    specs.Plain("relative.weight", config.relative_buckets, config.num_heads);
  }
  if (IsEncoderDecoder(config)) AddDecoderSide(config, &specs);
  AddOutput(config, &specs);
  return specs.Take();
}

Status CheckTensors(const ModelConfig& config, const FileView& file) {
  const std::vector<TensorSpec> specs = ExpectedTensors(config);
  std::map<std::string_view, const TensorSpec*> by_name;
  for (const TensorSpec& spec : specs) {
    by_name[spec.name] = &spec;
    if (file.FindTensor(spec.name)) continue;
    if (spec.required) {
      return Corrupt(
          "The tensor is missing; expected it with the shape " + ShapeText(spec.shape) + ".",
          spec.name);
    }
  }
  for (size_t i = 0; i < file.num_tensors(); ++i) {
    const TensorView tensor = file.tensor(i);
    const auto found = by_name.find(tensor.name);
    ATTEND_RETURN_IF_ERROR(found == by_name.end() ? CheckOther(file, tensor)
                                                  : CheckTensor(file, tensor, *found->second));
    if (tensor.name.ends_with(kBias)) {
      const std::string weight =
          std::string(tensor.name.substr(0, tensor.name.size() - kBias.size())) +
          std::string(kWeight);
      if (!file.FindTensor(weight)) {
        return Corrupt("The tensor is missing, but its bias is there.", weight);
      }
    }
  }
  return Status();
}

std::optional<size_t> FindBadWeight(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kF32:
      return FindFirst<uint32_t>(bytes.data(), bytes.size() / 4,
                                 [](uint32_t bits) { return (bits & 0x7F800000u) == 0x7F800000u; });
    case DType::kF16:
      return FindFirst<uint16_t>(bytes.data(), bytes.size() / 2,
                                 [](uint16_t bits) { return (bits & 0x7C00u) == 0x7C00u; });
    case DType::kBf16:
      return FindFirst<uint16_t>(bytes.data(), bytes.size() / 2,
                                 [](uint16_t bits) { return (bits & 0x7F80u) == 0x7F80u; });
    case DType::kI8:
      return FindFirst<int8_t>(bytes.data(), bytes.size(),
                               [](int8_t value) { return value == INT8_MIN; });
    case DType::kU8:
    case DType::kI32:
      break;
  }
  return std::nullopt;
}

Status CheckFinite(const FileView& file) {
  for (size_t i = 0; i < file.num_tensors(); ++i) {
    const TensorView tensor = file.tensor(i);
    const std::optional<size_t> bad = FindBadWeight(tensor.dtype, tensor.bytes);
    if (!bad) continue;
    const bool is_int = tensor.dtype == DType::kI8;
    return Corrupt(
        (is_int ? "Expected -127 to 127, got -128 at "
                : "Expected finite weights, got NaN or infinity at ") +
            PlaceText(tensor.shape, *bad) + ".",
        tensor.name,
        is_int ? "" : "the training that made it diverged, or its conversion overflowed");
  }
  return Status();
}

}  // namespace attend
