// ModelConfig to and from a file's values, and whether its fields are allowed. The fields are
// listed once, in VisitFields: what is written, what must be there to be read, and each one's
// range.
#include "engine/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <set>
#include <utility>

#include "engine/config_check.h"
#include "engine/config_tensors.h"

namespace attend {
namespace {

// The names of an enum's values, in their order.
template <typename T>
struct Names;
template <>
struct Names<Position> {
  static constexpr std::array kAll = {"none", "learned", "sinusoidal", "rotary",
                                      "sinusoidal_halves"};
};
template <>
struct Names<RopeScaling> {
  static constexpr std::array kAll = {"none", "linear", "llama3"};
};
template <>
struct Names<Score> {
  static constexpr std::array kAll = {"scaled_dot", "dot", "additive"};
};
template <>
struct Names<ScoreBias> {
  static constexpr std::array kAll = {"none", "alibi", "relative"};
};
template <>
struct Names<Normalizer> {
  static constexpr std::array kAll = {"softmax", "softmax1", "relu", "relu2", "sigmoid", "none"};
};
template <>
struct Names<NormPlace> {
  static constexpr std::array kAll = {"post", "pre", "none"};
};
template <>
struct Names<NormType> {
  static constexpr std::array kAll = {"layer_norm", "rms_norm"};
};
template <>
struct Names<Activation> {
  static constexpr std::array kAll = {"none", "gelu",  "gelu_tanh", "relu",       "silu",
                                      "tanh", "geglu", "swiglu",    "geglu_tanh", "reglu"};
};
template <>
struct Names<Pooling> {
  static constexpr std::array kAll = {"none", "first", "mean", "max", "last"};
};
template <>
struct Names<Task> {
  static constexpr std::array kAll = {"hidden", "tokens", "sequence", "embedding", "generate"};
};
template <>
struct Names<Precision> {
  static constexpr std::array kAll = {"file", "f32", "bf16", "int8"};
};

template <typename T>
const char* NameOf(T value) {
  const auto index = static_cast<size_t>(value);
  return index < Names<T>::kAll.size() ? Names<T>::kAll[index] : "unknown";
}

template <typename T>
std::optional<T> FromName(std::string_view name) {
  for (size_t i = 0; i < Names<T>::kAll.size(); ++i) {
    if (name == Names<T>::kAll[i]) return static_cast<T>(i);
  }
  return std::nullopt;
}

// "post, pre, none"
template <typename T>
std::string AllNames() {
  std::string all;
  for (const char* name : Names<T>::kAll) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

// The published limits.
constexpr int64_t kMaxWidth = 65536;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxIntermediate = 1 << 20;
constexpr int64_t kMaxVocab = 1 << 21;
constexpr int64_t kMaxLength = 1 << 20;
constexpr int64_t kMaxWindow = INT32_MAX;
constexpr size_t kMaxTextBytes = size_t{1} << 20;

// The kind of the file's tokenizer, which is the text part's to read.
constexpr std::string_view kTokenizerKey = "tokenizer";

// The fields of decoders and encoder-decoders.
template <typename Config, typename Visitor>
void VisitDecoder(Config& config, Visitor& visit) {
  if (config.position == Position::kRotary) {
    visit.Enum("rope_scaling", config.rope_scaling);
    if (config.rope_scaling != RopeScaling::kNone) {
      visit.Positive("rope_factor", config.rope_factor);
    }
    if (config.rope_scaling == RopeScaling::kLlama3) {
      visit.Positive("rope_low_factor", config.rope_low_factor);
      visit.Positive("rope_high_factor", config.rope_high_factor);
      visit.Int("rope_original_length", config.rope_original_length, 1, kMaxLength);
    }
  }
  visit.Positive("embedding_scale", config.embedding_scale);
  visit.Bool("qk_norm", config.qk_norm);
  if (config.task == Task::kGenerate) {
    visit.Bool("tied_head", config.tied_head);
    visit.Positive("logits_scale", config.logits_scale);
  }
  if (IsEncoderDecoder(config)) {
    visit.Int("decoder_layers", config.decoder_layers, 0, kMaxLayers);
    visit.Int("decoder_heads", config.decoder_heads, 1, kMaxWidth);
    visit.Int("decoder_head_dim", config.decoder_head_dim, 1, kMaxWidth);
    visit.Int("decoder_intermediate_size", config.decoder_intermediate_size, 0, kMaxIntermediate);
  }
}

// Calls `visit` for every field that applies to `config`. A visitor that reads fills fields in this
// order, so whether a field applies may depend on those before it only.
template <typename Config, typename Visitor>
void VisitFields(Config& config, Visitor& visit) {
  visit.Text("architecture", config.architecture);
  visit.Text("source", config.source);
  visit.Text("description", config.description);
  visit.Enum("task", config.task);
  visit.Enum("precision", config.precision);
  if (config.precision != Precision::kF32) visit.Texts("f32_layers", config.f32_layers);
  if (config.precision == Precision::kInt8) visit.Texts("bf16_layers", config.bf16_layers);
  visit.Int("hidden_size", config.hidden_size, 1, kMaxWidth);
  visit.Int("num_layers", config.num_layers, 0, kMaxLayers);
  visit.Int("num_heads", config.num_heads, 1, kMaxWidth);
  visit.Int("num_kv_heads", config.num_kv_heads, 1, kMaxWidth);
  visit.Int("head_dim", config.head_dim, 1, kMaxWidth);
  visit.Int("intermediate_size", config.intermediate_size, 0, kMaxIntermediate);
  visit.Int("vocab_size", config.vocab_size, 0, kMaxVocab);
  visit.Int("input_size", config.input_size, 0, kMaxWidth);
  visit.Int("embedding_size", config.embedding_size, 1, kMaxWidth);
  visit.Int("type_vocab_size", config.type_vocab_size, 0, kMaxWidth);
  if (config.type_vocab_size > 0) visit.Bool("word_shape_types", config.word_shape_types);
  visit.Int("max_length", config.max_length, 0, kMaxLength);
  visit.Enum("position", config.position);
  if (config.position == Position::kLearned) {
    visit.Int("max_positions", config.max_positions, 1, kMaxLength);
    visit.Int("position_offset", config.position_offset, 0, kMaxLength);
  }
  if (config.position == Position::kRotary) visit.Positive("rope_theta", config.rope_theta);
  if (Decodes(config)) VisitDecoder(config, visit);
  visit.Enum("score", config.score);
  if (config.score == Score::kAdditive) visit.Int("score_size", config.score_size, 1, kMaxWidth);
  visit.Enum("score_bias", config.score_bias);
  if (config.score_bias == ScoreBias::kRelative) {
    visit.Int("relative_buckets", config.relative_buckets, 4, kMaxWidth);
    visit.Int("relative_max_distance", config.relative_max_distance, 1, kMaxWindow);
  }
  visit.Bool("causal", config.causal);
  visit.Bool("windowed", config.windowed);
  if (config.windowed) {
    visit.Int("window_left", config.window_left, 0, kMaxWindow);
    visit.Int("window_right", config.window_right, 0, kMaxWindow);
  }
  visit.Int("global_tokens", config.global_tokens, 0, kMaxWindow);
  visit.Bool("edges", config.edges);
  visit.Enum("normalizer", config.normalizer);
  visit.Bool("normalizer_length", config.normalizer_length);
  visit.Enum("norm", config.norm);
  visit.Enum("norm_type", config.norm_type);
  visit.Positive("norm_eps", config.norm_eps);
  visit.Bool("residual", config.residual);
  visit.Bool("output_projection", config.output_projection);
  if (config.intermediate_size > 0) visit.Enum("activation", config.activation);
  visit.Bool("pooler", config.pooler);
  visit.Enum("pooling", config.pooling);
  if (config.task == Task::kSequence) {
    visit.Bool("head_from_pooler", config.head_from_pooler);
    visit.Bool("head_dense", config.head_dense);
    if (config.head_dense) visit.Enum("head_dense_activation", config.head_dense_activation);
  }
  if (config.task == Task::kEmbedding) {
    visit.Enums("dense", config.dense);
    visit.Ints("dense_sizes", config.dense_sizes, 1, kMaxWidth);
    visit.Bool("normalize", config.normalize);
  }
  if (config.task == Task::kTokens || config.task == Task::kSequence) {
    visit.Int("num_labels", config.num_labels, 1, kMaxVocab);
    visit.Texts("labels", config.labels);
  }
}

class Writer {
 public:
  explicit Writer(FileWriter* file) : file_(file) {}
  void Text(const char* key, const std::string& value) { file_->SetString(key, value); }
  void Texts(const char* key, const std::vector<std::string>& values) {
    file_->SetStrings(key, values);
  }
  void Bool(const char* key, bool value) { file_->SetBool(key, value); }
  void Int(const char* key, int64_t value, int64_t, int64_t) { file_->SetInt(key, value); }
  void Ints(const char* key, const std::vector<int64_t>& values, int64_t, int64_t) {
    file_->SetInts(key, values);
  }
  void Positive(const char* key, double value) { file_->SetFloat(key, value); }
  template <typename T>
  void Enum(const char* key, T value) {
    file_->SetString(key, NameOf(value));
  }
  void Enums(const char* key, const std::vector<Activation>& values) {
    std::vector<std::string> names;
    for (const Activation value : values) names.emplace_back(NameOf(value));
    file_->SetStrings(key, names);
  }

 private:
  FileWriter* file_;
};

class Reader {
 public:
  explicit Reader(const FileView& file) : file_(file) {}

  void Text(const char* key, std::string& out) {
    if (const auto value = Take(key, file_.FindString(key), "a string")) out = *value;
  }
  void Texts(const char* key, std::vector<std::string>& out) {
    const auto values = Take(key, file_.FindStrings(key), "a list of strings");
    if (values) out.assign(values->begin(), values->end());
  }
  void Bool(const char* key, bool& out) {
    if (const auto value = Take(key, file_.FindBool(key), "true or false")) out = *value;
  }
  void Int(const char* key, int64_t& out, int64_t, int64_t) {
    if (const auto value = Take(key, file_.FindInt(key), "an integer")) out = *value;
  }
  void Ints(const char* key, std::vector<int64_t>& out, int64_t, int64_t) {
    if (auto values = Take(key, file_.FindInts(key), "a list of integers")) out = *values;
  }
  void Positive(const char* key, double& out) {
    if (const auto value = Take(key, file_.FindFloat(key), "a floating-point number")) out = *value;
  }
  template <typename T>
  void Enum(const char* key, T& out) {
    if (const auto name = Take(key, file_.FindString(key), "a string")) SetEnum(key, *name, &out);
  }
  void Enums(const char* key, std::vector<Activation>& out) {
    const auto names = Take(key, file_.FindStrings(key), "a list of strings");
    if (!names) return;
    for (const std::string_view name : *names) {
      Activation value{};
      SetEnum(key, name, &value);
      out.push_back(value);
    }
  }

  // The first error, or the first key of the file that was not asked for.
  Status Finish() const {
    ATTEND_RETURN_IF_ERROR(status_);
    for (const std::string_view key : file_.keys()) {
      if (key == kTokenizerKey || key.find('.') != std::string_view::npos) continue;
      if (!seen_.contains(key)) {
        return Status(ErrorCode::kUnsupported,
                      "The key is unknown, or does not apply to this model.", std::string(key),
                      "notes of your own need a dot in their key, as in note.licence");
      }
    }
    return Status();
  }

 private:
  template <typename T>
  T Take(const char* key, T value, const char* expected) {
    seen_.insert(key);
    if (!value && status_.ok()) {
      const auto keys = file_.keys();
      const bool there = std::binary_search(keys.begin(), keys.end(), std::string_view(key));
      status_ = Status(ErrorCode::kCorrupt,
                       std::string("Expected ") + expected +
                           (there ? ", got a value of another type." : ", got nothing."),
                       key);
    }
    return value;
  }

  template <typename T>
  void SetEnum(const char* key, std::string_view name, T* out) {
    const std::optional<T> value = FromName<T>(name);
    if (value) {
      *out = *value;
    } else if (status_.ok()) {
      status_ = Status(ErrorCode::kUnsupported,
                       "Unknown value \"" + std::string(name.substr(0, 64)) + "\"; allowed are " +
                           AllNames<T>() + ".",
                       key);
    }
  }

  const FileView& file_;
  std::set<std::string_view> seen_;
  Status status_;
};

Status Bad(const char* field, std::string what) {
  return Status(ErrorCode::kInvalidArgument, std::move(what), field);
}

// Every field by itself.
class RangeChecker {
 public:
  void Text(const char* key, const std::string& value) {
    if (value.size() <= kMaxTextBytes) return;
    Fail(key, "Expected at most 1 MiB of text, got " + std::to_string(value.size()) + " bytes.");
  }
  void Texts(const char*, const std::vector<std::string>&) {}
  void Bool(const char*, bool) {}
  void Int(const char* key, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return;
    Fail(key, "Expected " + std::to_string(low) + " to " + std::to_string(high) + ", got " +
                  std::to_string(value) + ".");
  }
  void Ints(const char* key, const std::vector<int64_t>& values, int64_t low, int64_t high) {
    for (const int64_t value : values) Int(key, value, low, high);
  }
  void Positive(const char* key, double value) {
    if (std::isfinite(value) && value > 0) return;
    Fail(key, "Expected a positive number, got " + std::to_string(value) + ".");
  }
  template <typename T>
  void Enum(const char* key, T value) {
    if (static_cast<size_t>(value) < Names<T>::kAll.size()) return;
    Fail(key, "Unknown value; allowed are " + AllNames<T>() + ".");
  }
  void Enums(const char* key, const std::vector<Activation>& values) {
    for (const Activation value : values) Enum(key, value);
  }

  Status status;

 private:
  void Fail(const char* key, std::string what) {
    if (status.ok()) status = Bad(key, std::move(what));
  }
};

Result<ModelConfig> ReadFields(const FileView& file) {
  ModelConfig config;
  Reader reader(file);
  VisitFields(config, reader);
  ATTEND_RETURN_IF_ERROR(reader.Finish());
  const Status status = CheckConfig(config);
  if (!status.ok()) return Status(ErrorCode::kCorrupt, status.what(), status.where());
  ATTEND_RETURN_IF_ERROR(CheckTensors(config, file));
  return config;
}

}  // namespace

const char* Name(Position value) { return NameOf(value); }
const char* Name(RopeScaling value) { return NameOf(value); }
const char* Name(Score value) { return NameOf(value); }
const char* Name(ScoreBias value) { return NameOf(value); }
const char* Name(Normalizer value) { return NameOf(value); }
const char* Name(NormPlace value) { return NameOf(value); }
const char* Name(NormType value) { return NameOf(value); }
const char* Name(Activation value) { return NameOf(value); }
const char* Name(Pooling value) { return NameOf(value); }
const char* Name(Task value) { return NameOf(value); }
const char* Name(Precision value) { return NameOf(value); }

Status CheckConfig(const ModelConfig& config) {
  RangeChecker ranges;
  VisitFields(config, ranges);
  ATTEND_RETURN_IF_ERROR(ranges.status);
  return CheckFields(config);
}

Result<ModelConfig> ReadConfig(const FileView& file) {
  try {
    return ReadFields(file);
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "No memory for the model's description.");
  }
}

void WriteConfig(const ModelConfig& config, FileWriter* writer) {
  Writer visitor(writer);
  VisitFields(config, visitor);
}

}  // namespace attend
