#include "tools/convert_sentence.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr char kModules[] = "modules.json";

// One entry of modules.json.
struct Module {
  std::string kind;  // "Transformer", "Pooling", "Dense", "Normalize"
  std::string path;
};

// Types are Python classes: "sentence_transformers.models.Pooling", and in newer versions
// "sentence_transformers.sentence_transformer.modules.pooling.Pooling".
Result<Module> ReadModule(const json& entry, const std::string& where) {
  const Result<std::string> type = JsonString(entry, "type", where);
  if (!type.ok()) return type.status();
  const Result<std::string> path = JsonString(entry, "path", where, "");
  if (!path.ok()) return path.status();
  const size_t dot = type->rfind('.');
  const std::string kind = dot == std::string::npos ? "" : type->substr(dot + 1);
  const bool known =
      kind == "Transformer" || kind == "Pooling" || kind == "Dense" || kind == "Normalize";
  if (!type->starts_with("sentence_transformers.") || !known) {
    return UnsupportedField("type", json(*type),
                            "the Transformer, Pooling, Dense and Normalize of "
                            "sentence_transformers",
                            where);
  }
  if (!path->empty() && !IsPlainName(*path)) {
    return JsonFieldError("path", json(*path), "the plain name of a folder in this one", where);
  }
  return Module{kind, *path};
}

struct PoolingRow {
  std::string_view flag;  // the old form: one boolean a way of pooling
  std::string_view name;  // the new form: "pooling_mode": "mean"
  Pooling pooling;        // kNone: not run
};

constexpr PoolingRow kPoolings[] = {
    {"pooling_mode_cls_token", "cls", Pooling::kFirst},
    {"pooling_mode_mean_tokens", "mean", Pooling::kMean},
    {"pooling_mode_max_tokens", "max", Pooling::kMax},
    {"pooling_mode_lasttoken", "lasttoken", Pooling::kLast},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::kNone},
    {"pooling_mode_weightedmean_tokens", "weightedmean", Pooling::kNone},
};
constexpr char kAllowedPoolings[] = "exactly one of cls, mean, max and lasttoken";

Status ReadPooling(const FolderReader& folder, SentencePipeline* pipeline) {
  const std::string where = folder.PathOf("config.json");
  auto config = folder.ReadJson("config.json", kMaxJsonBytes);
  if (!config.ok()) return config.status();
  FieldReader fields(*config, where);
  pipeline->pooling_width = fields.Int("word_embedding_dimension", 0, 65536, 0);
  if (pipeline->pooling_width == 0) {
    pipeline->pooling_width = fields.Int("embedding_dimension", 0, 65536, 0);
  }
  const std::string mode = fields.String("pooling_mode", "");
  std::vector<const PoolingRow*> chosen;
  for (const PoolingRow& row : kPoolings) {
    if (fields.Bool(row.flag, false) || row.name == mode) chosen.push_back(&row);
  }
  if (!fields.Bool("include_prompt", true)) {
    pipeline->notes.push_back(
        "pooling leaves out prompts: attend knows no prompts, so give texts without them");
  }
  ATTEND_RETURN_IF_ERROR(fields.status());
  if (chosen.size() != 1 || chosen[0]->pooling == Pooling::kNone) {
    std::string names;
    for (const PoolingRow* row : chosen) {
      names += (names.empty() ? "" : " and ") + std::string(row->name);
    }
    if (names.empty()) names = mode.empty() ? "none" : Printable(mode, 80);
    return UnsupportedField("pooling_mode", json(names), kAllowedPoolings, where);
  }
  pipeline->pooling = chosen[0]->pooling;
  return {};
}

struct DenseActivationRow {
  std::string_view name;
  Activation activation;
};

// The name is a path in Python; it is looked up here and never followed.
constexpr DenseActivationRow kDenseActivations[] = {
    {"torch.nn.modules.activation.Tanh", Activation::kTanh},
    {"torch.nn.modules.linear.Identity", Activation::kNone},
    {"torch.nn.modules.activation.ReLU", Activation::kRelu},
    {"torch.nn.modules.activation.GELU", Activation::kGelu},
    {"torch.nn.modules.activation.SiLU", Activation::kSilu},
};

Status ReadDense(const FolderReader& folder, const std::string& name, SentencePipeline* pipeline) {
  const std::string where = folder.PathOf("config.json");
  auto config = folder.ReadJson("config.json", kMaxJsonBytes);
  if (!config.ok()) return config.status();
  FieldReader fields(*config, where);
  SentenceDense dense;
  dense.folder = name;
  dense.in_features = fields.Int("in_features", 1, 65536);
  dense.out_features = fields.Int("out_features", 1, 65536);
  dense.bias = fields.Bool("bias", true);
  const std::string activation = fields.String("activation_function", kDenseActivations[0].name);
  fields.MustBe("module_input_name", "sentence_embedding");
  fields.MustBe("module_output_name", "sentence_embedding");
  ATTEND_RETURN_IF_ERROR(fields.status());
  std::string allowed;
  bool known = false;
  for (const DenseActivationRow& row : kDenseActivations) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(row.name);
    if (row.name != activation) continue;
    dense.activation = row.activation;
    known = true;
  }
  if (!known) return UnsupportedField("activation_function", json(activation), allowed, where);
  pipeline->dense.push_back(dense);
  return {};
}

// The order that is run: Transformer, then Pooling, then Dense any number of times, then Normalize.
int Place(std::string_view kind) {
  if (kind == "Transformer") return 0;
  if (kind == "Pooling") return 1;
  return kind == "Dense" ? 2 : 3;
}

Status AddModule(const FolderReader& folder, const Module& module, SentencePipeline* pipeline) {
  if (module.kind == "Transformer") {
    pipeline->transformer_folder = module.path;
    return {};
  }
  if (module.kind == "Normalize") {
    pipeline->normalize = true;
    return {};
  }
  const auto inside = folder.OpenFolder(module.path);
  if (!inside.ok()) return inside.status();
  if (module.kind == "Pooling") return ReadPooling(*inside, pipeline);
  return ReadDense(*inside, module.path, pipeline);
}

}  // namespace

Result<SentencePipeline> ReadSentencePipeline(const FolderReader& folder) {
  SentencePipeline pipeline;
  if (!folder.Has(kModules)) return pipeline;
  const std::string where = folder.PathOf(kModules);
  auto modules = folder.ReadJson(kModules, kMaxJsonBytes);
  if (!modules.ok()) return modules.status();
  if (!modules->is_array() || modules->empty() || modules->size() > 32) {
    return Status(ErrorCode::kCorrupt,
                  "expected an array of 1 to 32 modules, got " + JsonExcerpt(*modules), where);
  }
  int last = -1;
  std::string order;
  for (const json& entry : *modules) {
    const Result<Module> module = ReadModule(entry, where);
    if (!module.ok()) return module.status();
    order += (order.empty() ? "" : ", ") + module->kind;
    const int place = Place(module->kind);
    const bool skipped = place > 1 && last < 1;  // dense layers and lengths are of pooled vectors
    if (place < last || (place == last && place != 2) || (last < 0 && place != 0) || skipped) {
      return Status(ErrorCode::kUnsupported,
                    "the modules are " + order +
                        "; expected Transformer, Pooling, any number of Dense, and Normalize or "
                        "not",
                    where);
    }
    last = place;
    ATTEND_RETURN_IF_ERROR(AddModule(folder, *module, &pipeline));
  }
  if (pipeline.pooling == Pooling::kNone) {
    pipeline.notes.push_back("modules.json has no Pooling: the file is one of hidden states");
  }
  if (folder.Has("config_sentence_transformers.json")) {
    auto prompts = folder.ReadJson("config_sentence_transformers.json", kMaxJsonBytes);
    if (!prompts.ok()) return prompts.status();
    if (JsonFind(*prompts, "default_prompt_name") != nullptr) {
      pipeline.notes.push_back(
          "config_sentence_transformers.json has a default prompt: it is not applied, so put it in "
          "front of the texts");
    }
  }
  return pipeline;
}

Result<SentenceLimits> ReadSentenceLimits(const FolderReader& transformer_folder) {
  SentenceLimits limits;
  // The names that sentence-transformers looks for, in its order, as far as they apply here.
  for (const char* name : {"sentence_bert_config.json", "sentence_distilbert_config.json"}) {
    if (!transformer_folder.Has(name)) continue;
    auto config = transformer_folder.ReadJson(name, kMaxJsonBytes);
    if (!config.ok()) return config.status();
    FieldReader fields(*config, transformer_folder.PathOf(name));
    limits.max_seq_length = fields.Int("max_seq_length", 1, INT64_MAX, 0);
    limits.lower_case = fields.Bool("do_lower_case", false);
    ATTEND_RETURN_IF_ERROR(fields.status());
    break;
  }
  return limits;
}

Status PlanSentenceEmbedding(const SentencePipeline& pipeline, const std::string& where,
                             ConversionPlan* plan) {
  ModelConfig& config = plan->config;
  config.task = Task::kEmbedding;
  config.pooling = pipeline.pooling;
  config.normalize = pipeline.normalize;
  int64_t width = config.hidden_size;
  if (pipeline.pooling_width != 0 && pipeline.pooling_width != width) {
    return {ErrorCode::kCorrupt,
            "the pooling expects vectors of " + std::to_string(pipeline.pooling_width) +
                ", but hidden_size is " + std::to_string(width),
            where};
  }
  for (const SentenceDense& dense : pipeline.dense) {
    if (dense.in_features != width) {
      return {ErrorCode::kCorrupt,
              dense.folder + " has in_features " + std::to_string(dense.in_features) +
                  "; expected " + std::to_string(width) + ", the width of what comes before it",
              where};
    }
    const std::string name = "dense." + std::to_string(config.dense.size());
    plan->MapLinear(name, dense.folder + "/linear");
    if (!dense.bias) plan->tensors.erase(name + ".bias");
    config.dense.push_back(dense.activation);
    config.dense_sizes.push_back(dense.out_features);
    width = dense.out_features;
  }
  return {};
}

}  // namespace attend
