#include "engine/layer_choice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "engine/config.h"
#include "engine/model.h"

namespace attend {
namespace {

constexpr int64_t kLongest = 64;  // of an input, in tokens
constexpr size_t kRandomInputs = 8;
constexpr int64_t kRandomLength = 32;

// SplitMix64: the same numbers on every machine.
class Numbers {
 public:
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int32_t Below(int64_t n) {
    return static_cast<int32_t>(Next() % static_cast<uint64_t>(std::max<int64_t>(n, 1)));
  }
  // Near enough to normal, with a variance of 1.
  float Spread() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(Next() >> 11) * 0x1p-53;
    return static_cast<float>(sum);
  }

 private:
  uint64_t state_ = 1;
};

// What the model is measured with.
struct Inputs {
  std::vector<int32_t> ids, offsets{0}, decoder_ids, decoder_offsets, edge_offsets;
  std::vector<float> rows;
  std::vector<Edge> edges;
  bool vectors = false;

  int64_t tokens() const { return offsets.back(); }

  Result<Output> Run(Session* session) const {
    if (vectors) {
      return session->Run(VectorBatch{
          .rows = rows, .offsets = offsets, .edges = edges, .edge_offsets = edge_offsets});
    }
    return session->Run(TokenBatch{.ids = ids,
                                   .offsets = offsets,
                                   .decoder_ids = decoder_ids,
                                   .decoder_offsets = decoder_offsets,
                                   .edges = edges,
                                   .edge_offsets = edge_offsets});
  }
};

// Every position sees itself and the three before it.
void AddEdges(int32_t length, Inputs* inputs) {
  for (int32_t i = 0; i < length; ++i) {
    for (int32_t j = std::max(0, i - 3); j <= i; ++j) inputs->edges.push_back({i, j});
  }
  inputs->edge_offsets.push_back(static_cast<int32_t>(inputs->edges.size()));
}

Inputs MakeInputs(const ModelConfig& config, const std::vector<std::vector<int32_t>>& texts) {
  Inputs inputs;
  inputs.vectors = config.vocab_size == 0;
  if (config.edges) inputs.edge_offsets.push_back(0);
  if (IsEncoderDecoder(config)) inputs.decoder_offsets.push_back(0);
  Numbers numbers;
  const int64_t longest = config.max_length > 0 ? std::min(kLongest, config.max_length) : kLongest;
  const auto finish = [&](int64_t length) {
    inputs.offsets.push_back(inputs.offsets.back() + static_cast<int32_t>(length));
    if (config.edges) AddEdges(static_cast<int32_t>(length), &inputs);
    if (!IsEncoderDecoder(config)) return;
    for (int64_t i = 0; i < std::min<int64_t>(length, 16); ++i) {
      inputs.decoder_ids.push_back(numbers.Below(config.vocab_size));
    }
    inputs.decoder_offsets.push_back(static_cast<int32_t>(inputs.decoder_ids.size()));
  };
  for (const std::vector<int32_t>& text : texts) {
    const bool known = std::all_of(text.begin(), text.end(),
                                   [&](int32_t id) { return id >= 0 && id < config.vocab_size; });
    if (inputs.vectors || text.empty() || !known) continue;
    const auto length = std::min<int64_t>(longest, static_cast<int64_t>(text.size()));
    inputs.ids.insert(inputs.ids.end(), text.begin(), text.begin() + length);
    finish(length);
  }
  if (inputs.tokens() > 0) return inputs;
  for (size_t b = 0; b < kRandomInputs; ++b) {
    const int64_t length = std::min(longest, kRandomLength);
    for (int64_t i = 0; i < length; ++i) {
      if (!inputs.vectors) inputs.ids.push_back(numbers.Below(config.vocab_size));
      for (int64_t c = 0; inputs.vectors && c < config.input_size; ++c) {
        inputs.rows.push_back(numbers.Spread());
      }
    }
    finish(length);
  }
  return inputs;
}

// Layers that are computed together, and how.
struct Group {
  std::vector<std::string> names;
  Precision precision = Precision::kFile;
  std::optional<double> loss;  // of this group alone in `precision`
};

Precision MoreExact(Precision precision) {
  return precision == Precision::kInt8 ? Precision::kBf16 : Precision::kF32;
}

// "layers.0.attention.q" belongs to what is called "layers.0.attention.qkv" here.
std::string GroupOf(const std::string& name) {
  const size_t dot = name.rfind('.');
  const std::string_view last = std::string_view(name).substr(dot + 1);
  const std::string before = name.substr(0, dot + 1);
  const bool projection = last == "q" || last == "k" || last == "v" || last == "qa" || last == "ka";
  if (!projection) return name;
  if (before.ends_with("cross_attention.")) return last == "q" ? name : before + "kv";
  return before + "qkv";
}

// The linear layers of the model: matrices that are no tables, or tables that are both.
std::vector<Group> FindGroups(const ModelConfig& config, Precision precision) {
  constexpr std::string_view kWeight = ".weight";
  const bool tied = config.task == Task::kGenerate && config.tied_head;
  std::map<std::string, std::vector<std::string>> groups;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (!spec.quantizable || !spec.name.ends_with(kWeight)) continue;
    const std::string name = spec.name.substr(0, spec.name.size() - kWeight.size());
    const bool table = name == "embeddings.tokens" || name.ends_with("embeddings.positions") ||
                       name == "embeddings.types";
    if (table && !(tied && name == "embeddings.tokens")) continue;
    groups[GroupOf(name)].push_back(name);
  }
  std::vector<Group> found;
  for (auto& [key, names] : groups) found.push_back({std::move(names), precision, {}});
  return found;
}

class Measurement {
 public:
  Measurement(const Model& model, const LayerChoiceOptions& options)
      : model_(model),
        options_(options),
        config_(model.shared()->config),
        inputs_(MakeInputs(config_, options.texts)),
        groups_(FindGroups(config_, options.precision)) {}
  ~Measurement() { SetLayers({}); }

  Result<LayerChoice> Choose() {
    Result<std::vector<float>> exact = Answer(Precision::kF32);
    if (!exact.ok()) return exact.status();
    exact_ = *std::move(exact);
    LayerChoice choice;
    Result<double> loss = LossOf(groups_);
    if (!loss.ok()) return loss.status();
    choice.loss_of_all = *loss;
    if (!std::isfinite(*loss)) {
      choice.measured = false;
      return choice;
    }
    while (*loss > options_.budget) {
      Result<Group*> worst = Worst();
      if (!worst.ok()) return worst.status();
      if (*worst == nullptr) break;  // all of them are in f32
      (*worst)->precision = MoreExact((*worst)->precision);
      (*worst)->loss.reset();
      loss = LossOf(groups_);
      if (!loss.ok()) return loss.status();
    }
    choice.loss = *loss;
    choice.f32_layers = NamesOf(groups_, Precision::kF32);
    choice.bf16_layers = options_.precision == Precision::kBf16
                             ? std::vector<std::string>()
                             : NamesOf(groups_, Precision::kBf16);
    return choice;
  }

 private:
  static std::vector<std::string> NamesOf(const std::vector<Group>& groups, Precision precision) {
    std::vector<std::string> names;
    for (const Group& group : groups) {
      if (group.precision != precision) continue;
      names.insert(names.end(), group.names.begin(), group.names.end());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void SetLayers(const std::vector<Group>& groups) {
    config_.f32_layers = NamesOf(groups, Precision::kF32);
    config_.bf16_layers = NamesOf(groups, Precision::kBf16);
  }

  // The model's answer with the layers as they are set.
  Result<std::vector<float>> Answer(Precision precision) {
    const auto sequences = static_cast<int32_t>(inputs_.offsets.size()) - 1;
    Result<Session> session =
        Session::Create(model_, {.num_threads = 0,
                                 .max_tokens = std::max(1, inputs_.offsets.back()),
                                 .max_sequences = sequences,
                                 .max_edges = static_cast<int32_t>(inputs_.edges.size()),
                                 .precision = precision});
    if (!session.ok()) return session.status();
    Result<Output> output = inputs_.Run(&*session);
    if (!output.ok()) return output.status();
    const std::span<const float> answer = !output->logits.empty()         ? output->logits
                                          : config_.task == Task::kHidden ? output->hidden
                                                                          : output->pooled;
    return std::vector<float>(answer.begin(), answer.end());
  }

  Result<double> LossOf(const std::vector<Group>& groups) {
    SetLayers(groups);
    Result<std::vector<float>> answer = Answer(options_.precision);
    if (!answer.ok()) return answer.status();
    double lost = 0, size = 0;
    for (size_t i = 0; i < exact_.size(); ++i) {
      const double difference = double{(*answer)[i]} - exact_[i];
      lost += difference * difference;
      size += double{exact_[i]} * exact_[i];
    }
    return lost == 0 ? 0.0 : std::sqrt(lost / size);
  }

  // The group that loses most by itself; null if none loses anything.
  Result<Group*> Worst() {
    Group* worst = nullptr;
    for (Group& group : groups_) {
      if (group.precision == Precision::kF32) continue;
      if (!group.loss) {
        std::vector<Group> alone = groups_;
        for (Group& other : alone) other.precision = Precision::kF32;
        alone[static_cast<size_t>(&group - groups_.data())].precision = group.precision;
        const Result<double> loss = LossOf(alone);
        if (!loss.ok()) return loss.status();
        group.loss = *loss;
      }
      if (worst == nullptr || *group.loss > *worst->loss) worst = &group;
    }
    return worst;
  }

  const Model& model_;
  const LayerChoiceOptions& options_;
  ModelConfig& config_;
  const Inputs inputs_;
  std::vector<Group> groups_;
  std::vector<float> exact_;
};

}  // namespace

Result<LayerChoice> ChooseLayers(const Model& model, const LayerChoiceOptions& options) {
  return Measurement(model, options).Choose();
}

}  // namespace attend
