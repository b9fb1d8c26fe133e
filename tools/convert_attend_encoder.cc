// attend's own model_type "attend_encoder": every point of the attention family, field by field. A
// field that is not known is an error, as are one that stands where it must not and a value that is
// not one of those allowed; one that does not apply must have the right type and has no effect.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "tools/convert_plan.h"
#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr int64_t kMaxWidth = 65536;
constexpr int64_t kMaxAttentionWidth = 262144;
constexpr int64_t kMaxPositions = 1 << 20;
constexpr int64_t kFar = std::numeric_limits<int32_t>::max();  // beyond any sequence

// "description" is text for people, as in the folders of other architectures.
constexpr std::string_view kFields[] = {
    "activation",
    "causal",
    "description",
    "edges",
    "global_tokens",
    "head_dim",
    "hidden_size",
    "id2label",
    "input",
    "input_size",
    "intermediate_size",
    "max_position_embeddings",
    "model_type",
    "norm",
    "norm_eps",
    "norm_type",
    "normalizer",
    "normalizer_scale",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "output_projection",
    "pooling",
    "position",
    "relative_buckets",
    "relative_max_distance",
    "residual",
    "rope_theta",
    "score",
    "score_bias",
    "score_size",
    "task",
    "vocab_size",
    "window",
};

// No field but these; null only where it means something.
Status CheckNames(const ConversionSource& source) {
  for (const auto& [name, value] : source.config.items()) {
    if (!std::binary_search(std::begin(kFields), std::end(kFields), name)) {
      std::string names;
      for (const std::string_view field : kFields) {
        names += (names.empty() ? "" : ", ") + std::string(field);
      }
      return {ErrorCode::kUnsupported,
              "the field " + Quoted(name, 80) + " is unknown; allowed: " + names, source.where};
    }
    if (value.is_null() && name != "window") {
      return JsonFieldError(name, value, "a value, or no such field", source.where);
    }
  }
  return {};
}

// Reads config.json into a ModelConfig. The first error is kept; what is read after it means
// nothing.
class Reader {
 public:
  Reader(const ConversionSource& source, ModelConfig* config)
      : source_(source), fields_(source.config, source.where), c_(*config) {}

  Status Read() {
    ReadInput();
    ReadSizes();
    ReadPositions();
    ReadAttention();
    ReadBlocks();
    ReadTask();
    return status();
  }

 private:
  const Status& status() const { return status_.ok() ? fields_.status() : status_; }

  void Fail(Status error) {
    if (status().ok()) status_ = std::move(error);
  }
  // `value` of `key` may not be, because ...
  void Fail(std::string_view key, const json& value, const std::string& expected) {
    Fail(JsonFieldError(key, value, expected, source_.where));
  }
  // Values that are allowed each, and not together.
  void FailTogether(std::string_view key, const std::string& value, const std::string& other,
                    const std::string& allowed) {
    Fail({ErrorCode::kUnsupported,
          "the field \"" + std::string(key) + "\" is " + value + ", which does not combine with " +
              other + "; allowed: " + allowed,
          source_.where});
  }

  bool Has(std::string_view key) const { return JsonFind(source_.config, key) != nullptr; }

  // One of `allowed`, of which the first is the default.
  template <typename T>
  T Choice(std::string_view key, std::initializer_list<std::pair<const char*, T>> allowed) {
    const std::string name = fields_.String(key, allowed.begin()->first);
    std::string names;
    for (const auto& [allowed_name, value] : allowed) {
      if (name == allowed_name) return value;
      names += (names.empty() ? "" : ", ") + std::string(allowed_name);
    }
    Fail(UnsupportedField(key, json(name), names, source_.where));
    return allowed.begin()->second;
  }

  // The field where it applies; elsewhere an integer without effect, or nothing.
  int64_t IntIf(bool applies, std::string_view key, int64_t min, int64_t max, int64_t fallback) {
    if (applies) return fields_.Int(key, min, max, fallback);
    fields_.Int(key, INT64_MIN, INT64_MAX, fallback);
    return fallback;
  }

  void ReadInput() {
    const bool vectors = Choice<bool>("input", {{"tokens", false}, {"vectors", true}});
    if (vectors) {
      c_.input_size = fields_.Int("input_size", 1, kMaxWidth);
      IntIf(false, "vocab_size", 0, 0, 0);
    } else {
      c_.vocab_size = fields_.Int("vocab_size", 1, 1 << 21);
      IntIf(false, "input_size", 0, 0, 0);
    }
  }

  void ReadSizes() {
    c_.hidden_size = fields_.Int("hidden_size", 1, kMaxWidth);
    c_.embedding_size = c_.hidden_size;
    c_.num_layers = fields_.Int("num_hidden_layers", 0, 1024);
    c_.num_heads = fields_.Int("num_attention_heads", 1, kMaxWidth);
    c_.num_kv_heads = fields_.Int("num_key_value_heads", 1, kMaxWidth, c_.num_heads);
    c_.head_dim = fields_.Int("head_dim", 1, kMaxWidth, 0);
    c_.intermediate_size = fields_.Int("intermediate_size", 0, 1 << 20, 0);
    if (!status().ok()) return;
    if (c_.num_heads % c_.num_kv_heads != 0) {
      return Fail("num_key_value_heads", c_.num_kv_heads,
                  "a divisor of num_attention_heads, " + std::to_string(c_.num_heads));
    }
    if (c_.head_dim == 0) {
      if (c_.hidden_size % c_.num_heads != 0) {
        return Fail("num_attention_heads", c_.num_heads,
                    "a divisor of hidden_size, " + std::to_string(c_.hidden_size) +
                        ", or the field \"head_dim\"");
      }
      c_.head_dim = c_.hidden_size / c_.num_heads;
    }
    if (c_.num_heads * c_.head_dim > kMaxAttentionWidth) {
      Fail("head_dim", c_.head_dim,
           "at most " + std::to_string(kMaxAttentionWidth) +
               " for num_attention_heads x head_dim, with num_attention_heads " +
               std::to_string(c_.num_heads));
    }
  }

  void ReadPositions() {
    c_.position = Choice<Position>("position", {{"none", Position::kNone},
                                                {"learned", Position::kLearned},
                                                {"sinusoidal", Position::kSinusoidal},
                                                {"rotary", Position::kRotary}});
    const bool learned = c_.position == Position::kLearned;
    const int64_t reach = IntIf(learned, "max_position_embeddings", 1, kMaxPositions, 512);
    if (learned) c_.max_positions = c_.max_length = reach;
    const bool rotary = c_.position == Position::kRotary;
    constexpr double kAny = std::numeric_limits<double>::max();
    const double theta = fields_.Float("rope_theta", rotary ? 1e-30 : -kAny, kAny, 10000);
    if (!rotary) return;
    c_.rope_theta = theta;
    if (c_.head_dim % 2 != 0) {
      FailTogether("position", "\"rotary\"", "heads of " + std::to_string(c_.head_dim) + " columns",
                   "an even head_dim");
    }
  }

  void ReadAttention() {
    c_.score = Choice<Score>(
        "score",
        {{"scaled_dot", Score::kScaledDot}, {"dot", Score::kDot}, {"additive", Score::kAdditive}});
    const bool additive = c_.score == Score::kAdditive;
    c_.score_size = IntIf(additive, "score_size", 1, kMaxWidth, c_.head_dim);
    if (additive && c_.num_heads * c_.score_size > kMaxAttentionWidth) {
      Fail("score_size", c_.score_size,
           "at most " + std::to_string(kMaxAttentionWidth) +
               " for num_attention_heads x score_size, with num_attention_heads " +
               std::to_string(c_.num_heads));
    }
    if (additive && c_.position == Position::kRotary) {
      FailTogether("position", "\"rotary\"", "score \"additive\"",
                   "position none, learned or sinusoidal, or score scaled_dot or dot");
    }
    ReadBias();
    c_.causal = fields_.Bool("causal", false);
    ReadWindow();
    c_.global_tokens = std::min(fields_.Int("global_tokens", 0, INT64_MAX, 0), kFar);
    c_.edges = fields_.Bool("edges", false);
    ReadNormalizer();
  }

  void ReadBias() {
    c_.score_bias = Choice<ScoreBias>("score_bias", {{"none", ScoreBias::kNone},
                                                     {"alibi", ScoreBias::kAlibi},
                                                     {"relative", ScoreBias::kRelative}});
    const bool relative = c_.score_bias == ScoreBias::kRelative;
    c_.relative_buckets = IntIf(relative, "relative_buckets", 4, kMaxWidth, 32);
    c_.relative_max_distance = IntIf(relative, "relative_max_distance", 1, kFar, 128);
    if (!relative) return;
    if (c_.relative_buckets % 2 != 0) {
      return Fail("relative_buckets", c_.relative_buckets, "an even number of 4 or more");
    }
    const int64_t exact = c_.relative_buckets / 4;  // distances that have a bucket of their own
    if (c_.relative_max_distance > exact) return;
    Fail("relative_max_distance", c_.relative_max_distance,
         "more than " + std::to_string(exact) + ", a quarter of relative_buckets, " +
             std::to_string(c_.relative_buckets));
  }

  void ReadWindow() {
    const json* window = JsonFind(source_.config, "window");  // null is the same as none
    if (window == nullptr) return;
    const auto reach = [&](size_t i) -> int64_t {
      const json& value = (*window)[i];
      if (!value.is_number_integer()) return -1;
      if (value.is_number_unsigned()) {
        return static_cast<int64_t>(std::min<uint64_t>(value.get<uint64_t>(), kFar));
      }
      return std::min(value.get<int64_t>(), kFar);
    };
    const bool pair = window->is_array() && window->size() == 2;
    if (!pair || reach(0) < 0 || reach(1) < 0) {
      return Fail({ErrorCode::kCorrupt,
                   "the field \"window\" is " + Printable(window->dump(), 80) +
                       "; expected null, or [left, right] with two integers of 0 or more",
                   source_.where});
    }
    c_.windowed = true;
    c_.window_left = reach(0);
    c_.window_right = reach(1);
  }

  void ReadNormalizer() {
    c_.normalizer = Choice<Normalizer>("normalizer", {{"softmax", Normalizer::kSoftmax},
                                                      {"softmax1", Normalizer::kSoftmax1},
                                                      {"relu", Normalizer::kRelu},
                                                      {"relu2", Normalizer::kRelu2},
                                                      {"sigmoid", Normalizer::kSigmoid},
                                                      {"none", Normalizer::kNone}});
    c_.normalizer_length = Choice<bool>("normalizer_scale", {{"none", false}, {"length", true}});
    const bool soft =
        c_.normalizer == Normalizer::kSoftmax || c_.normalizer == Normalizer::kSoftmax1;
    if (!c_.normalizer_length || !soft) return;
    FailTogether("normalizer_scale", "\"length\"",
                 "normalizer \"" + std::string(Name(c_.normalizer)) + "\"",
                 "normalizer_scale none, or normalizer relu, relu2, sigmoid or none");
  }

  void ReadBlocks() {
    c_.norm = Choice<NormPlace>(
        "norm", {{"post", NormPlace::kPost}, {"pre", NormPlace::kPre}, {"none", NormPlace::kNone}});
    c_.residual = fields_.Bool("residual", true);
    c_.norm_type = Choice<NormType>(
        "norm_type", {{"layer_norm", NormType::kLayerNorm}, {"rms_norm", NormType::kRmsNorm}});
    // It is added in f32, where a smaller one would be 0.
    c_.norm_eps = fields_.Float("norm_eps", std::numeric_limits<float>::min(), 1e30, 1e-12);
    c_.output_projection = fields_.Bool("output_projection", true);
    c_.activation = Choice<Activation>("activation", {{"gelu", Activation::kGelu},
                                                      {"gelu_tanh", Activation::kGeluTanh},
                                                      {"relu", Activation::kRelu},
                                                      {"silu", Activation::kSilu},
                                                      {"geglu", Activation::kGeglu},
                                                      {"swiglu", Activation::kSwiglu}});
    const int64_t width = c_.num_heads * c_.head_dim;
    if (!c_.output_projection && width != c_.hidden_size) {
      FailTogether("output_projection", "false",
                   "heads of " + std::to_string(c_.num_heads) + " x " +
                       std::to_string(c_.head_dim) + " = " + std::to_string(width) +
                       " columns and hidden_size " + std::to_string(c_.hidden_size),
                   "num_attention_heads x head_dim = hidden_size, or output_projection true");
    }
  }

  void ReadTask() {
    c_.task = Choice<Task>(
        "task",
        {{"none", Task::kHidden}, {"tokens", Task::kTokens}, {"sequence", Task::kSequence}});
    const Pooling pooling = Choice<Pooling>("pooling", {{"mean", Pooling::kMean},
                                                        {"max", Pooling::kMax},
                                                        {"first", Pooling::kFirst},
                                                        {"last", Pooling::kLast}});
    if (c_.task == Task::kSequence) c_.pooling = pooling;
    const json* labels = JsonFind(source_.config, "id2label");
    if (labels != nullptr && !labels->is_object()) Fail("id2label", *labels, "an object");
  }

  const ConversionSource& source_;
  FieldReader fields_;
  ModelConfig& c_;
  Status status_;
};

// The folder's names are the file's. What is optional is there if the folder has it.
Status MapTensors(const ConversionSource& source, ConversionPlan* plan) {
  plan->tensors.clear();
  for (const TensorSpec& spec : ExpectedTensors(plan->config)) {
    if (!spec.required && !source.weights.Has(spec.name)) continue;
    plan->tensors[spec.name] = spec.name;
  }
  constexpr std::string_view kBias = ".bias";
  for (const auto& [name, from] : plan->tensors) {
    if (!name.ends_with(kBias)) continue;
    const std::string weight = name.substr(0, name.size() - kBias.size()) + ".weight";
    if (plan->tensors.contains(weight)) continue;
    return {ErrorCode::kCorrupt,
            "the tensor \"" + weight + "\" is missing, but \"" + name + "\" is there",
            source.where};
  }
  return {};
}

}  // namespace

Status PlanAttendEncoder(const ConversionSource& source, ConversionPlan* plan) {
  ATTEND_RETURN_IF_ERROR(CheckNames(source));
  ModelConfig& config = plan->config;
  ATTEND_RETURN_IF_ERROR(Reader(source, &config).Read());
  if (source.sentence_embedding && config.task != Task::kHidden) {
    return {ErrorCode::kUnsupported,
            std::string("the field \"task\" is \"") + Name(config.task) +
                "\", and modules.json makes a sentence embedding; allowed: \"none\"",
            source.where};
  }
  if (config.task != Task::kHidden) ATTEND_RETURN_IF_ERROR(MapLabels(source, "head", plan));
  return MapTensors(source, plan);
}

}  // namespace attend
