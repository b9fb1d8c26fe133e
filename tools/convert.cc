#include "tools/convert.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "engine/generate_settings.h"
#include "engine/layer_choice.h"
#include "tools/calibration.h"
#include "tools/convert_generation.h"
#include "tools/convert_plan.h"
#include "tools/convert_sentence.h"
#include "tools/convert_source.h"
#include "tools/convert_tokenizer.h"
#include "tools/describe_family.h"
#include "tools/folder.h"
#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

// What can be converted: the model_type of config.json, and the file that knows it.
struct ArchitectureRow {
  std::string_view model_type;
  Status (*plan)(const ConversionSource& source, ConversionPlan* plan);
  bool encoder_decoder = false;
  // Whether config.json is written by transformers: fields beside the architecture's own are then
  // expected, and looked at here. Otherwise the planner knows every field that may be there.
  bool transformers = true;
};

constexpr ArchitectureRow kArchitectures[] = {
    {"bert", PlanBert},
    {"distilbert", PlanDistilBert},
    {"electra", PlanElectra},
    {"t5", PlanT5, /*encoder_decoder=*/true},
    {"bart", PlanBart, /*encoder_decoder=*/true},
    {"marian", PlanMarian, /*encoder_decoder=*/true},
    {"gpt2", PlanGpt2},
    {"llama", PlanLlama},
    {"qwen3", PlanQwen3},
    {"attend_encoder", PlanAttendEncoder, /*encoder_decoder=*/false, /*transformers=*/false},
};

// One conversion, step by step; what a step reads, the next ones use.
class Conversion {
 public:
  Conversion(const ConvertOptions& options, ConvertReport* report)
      : options_(options), report_(report) {}

  Status Run() {
    ATTEND_RETURN_IF_ERROR(ReadFolder());
    ATTEND_RETURN_IF_ERROR(MakePlan());
    ATTEND_RETURN_IF_ERROR(ReadTokenizer());
    const Status config = CheckConfig(plan_.config);
    if (!config.ok()) {
      return {ErrorCode::kUnsupported, config.where() + ": " + config.what(), where_};
    }
    if (options_.precision == Precision::kBf16 || options_.precision == Precision::kInt8) {
      ATTEND_RETURN_IF_ERROR(ChooseExactLayers());
    }
    FileWriter writer;
    WriteConfig(plan_.config, &writer);
    if (plan_.config.task == Task::kGenerate) {
      const Result<GenerationSettings> settings =
          ReadFolderGeneration(transformer(), config_, plan_.config.vocab_size, &plan_.notes);
      if (!settings.ok()) return settings.status();
      WriteGenerationKeys(*settings, &writer);
    }
    ATTEND_RETURN_IF_ERROR(AddTensors(&writer));
    report_->num_tensors = static_cast<int64_t>(writer.num_tensors());
    ListUnused();
    Report();
    return writer.Write(options_.output);
  }

 private:
  // The model as the folder has it goes to a file beside the output, is loaded, and measured.
  Status ChooseExactLayers() {
    const Precision precision = std::exchange(plan_.config.precision, Precision::kF32);
    const std::string path = options_.output + ".measured";
    FileWriter writer;
    WriteConfig(plan_.config, &writer);
    ATTEND_RETURN_IF_ERROR(AddTensors(&writer));
    plan_.config.precision = precision;
    ATTEND_RETURN_IF_ERROR(writer.Write(path));
    const Result<Model> model = Model::Load(path);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);  // it stays mapped
    if (!model.ok()) return model.status();
    Result<LayerChoice> choice = ChooseLayers(
        *model,
        {.precision = precision, .budget = options_.budget, .texts = CalibrationIds(*model)});
    if (!choice.ok()) return choice.status();
    plan_.config.f32_layers = choice->f32_layers;
    plan_.config.bf16_layers = choice->bf16_layers;
    if (!choice->measured) {
      plan_.notes.push_back("what " + std::string(Name(precision)) +
                            " loses could not be measured: the model's answer is not finite");
    }
    choice_ = *std::move(choice);
    return {};
  }

  const FolderReader& transformer() const { return inside_.has_value() ? *inside_ : *folder_; }

  Status ReadFolder() {
    Result<FolderReader> folder = FolderReader::Open(options_.folder);
    if (!folder.ok()) return folder.status();
    folder_ = *std::move(folder);
    Result<SentencePipeline> pipeline = ReadSentencePipeline(*folder_);
    if (!pipeline.ok()) return pipeline.status();
    pipeline_ = *std::move(pipeline);
    if (!pipeline_.transformer_folder.empty()) {
      Result<FolderReader> inside = folder_->OpenFolder(pipeline_.transformer_folder);
      if (!inside.ok()) return inside.status();
      inside_ = *std::move(inside);
    }
    where_ = transformer().PathOf("config.json");
    Result<json> config = transformer().ReadJson("config.json", kMaxJsonBytes);
    if (!config.ok()) {
      if (config.status().code() != ErrorCode::kNotFound) return config.status();
      return {ErrorCode::kNotFound, "expected a Hugging Face folder, got one without config.json",
              where_, "give the folder that holds config.json and model.safetensors"};
    }
    config_ = *std::move(config);
    if (!config_.is_object()) {
      return {ErrorCode::kCorrupt, "expected an object, got " + JsonExcerpt(config_), where_};
    }
    ATTEND_RETURN_IF_ERROR(weights_.AddFolder(transformer(), ""));
    for (const SentenceDense& dense : pipeline_.dense) {
      Result<FolderReader> inside = folder_->OpenFolder(dense.folder);
      if (!inside.ok()) return inside.status();
      ATTEND_RETURN_IF_ERROR(weights_.AddFolder(*inside, dense.folder + "/"));
    }
    return {};
  }

  // The first of config.json's architectures, or "".
  Status ReadClassName() {
    const json* classes = JsonFind(config_, "architectures");
    if (classes == nullptr || (classes->is_array() && classes->empty())) return {};
    const auto* name = classes->is_array() ? (*classes)[0].get_ptr<const std::string*>() : nullptr;
    if (name == nullptr) {
      return JsonFieldError("architectures", *classes, "an array of strings", where_);
    }
    report_->source_class = *name;
    return {};
  }

  Status MakePlan() {
    const Result<std::string> type = JsonString(config_, "model_type", where_);
    if (!type.ok()) return type.status();
    const auto* row = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                   [&](const ArchitectureRow& r) { return r.model_type == *type; });
    if (row == std::end(kArchitectures)) {
      std::string names;
      for (const ArchitectureRow& r : kArchitectures) {
        names += (names.empty() ? "" : ", ") + std::string(r.model_type);
      }
      return UnsupportedField("model_type", json(*type), names, where_);
    }
    ATTEND_RETURN_IF_ERROR(ReadClassName());
    const bool embedding = pipeline_.pooling != Pooling::kNone;
    const ConversionSource source{config_, where_, weights_, report_->source_class, embedding};
    plan_.config.source = *type;
    plan_.notes = pipeline_.notes;
    if (row->transformers) {
      ATTEND_RETURN_IF_ERROR(CheckCommonFields(source, row->encoder_decoder));
      NoteUnknownFields(source, &plan_);
    }
    ATTEND_RETURN_IF_ERROR(row->plan(source, &plan_));
    if (embedding) {
      ATTEND_RETURN_IF_ERROR(
          PlanSentenceEmbedding(pipeline_, folder_->PathOf("modules.json"), &plan_));
    }
    ATTEND_RETURN_IF_ERROR(LimitLength());
    return ReadOwnFields();
  }

  Status LimitLength() {
    const Result<SentenceLimits> limits = ReadSentenceLimits(transformer());
    if (!limits.ok()) return limits.status();
    lower_case_ = limits->lower_case;
    ModelConfig& config = plan_.config;
    const bool bounded = config.max_length > 0;  // by its positions
    if (limits->max_seq_length == 0) return {};
    if (bounded && limits->max_seq_length >= config.max_length) return {};
    plan_.notes.push_back(
        "the model's makers limit texts to " + std::to_string(limits->max_seq_length) + " tokens" +
        (bounded ? "; its positions reach " + std::to_string(config.max_length) : std::string()));
    config.max_length = limits->max_seq_length;
    return {};
  }

  // What folders made for attend say beside what transformers knows.
  Status ReadOwnFields() {
    FieldReader fields(config_, where_);
    plan_.config.description = fields.String("description", "");
    fields.MustBe("attend_type_ids", "word_shape");
    plan_.config.word_shape_types = JsonFind(config_, "attend_type_ids") != nullptr;
    plan_.config.precision =
        options_.precision == Precision::kFile ? Precision::kF32 : options_.precision;
    return fields.status();
  }

  Status CheckVocabulary(const CompiledTokenizer& tokenizer) const {
    if (tokenizer.vocab_size <= plan_.config.vocab_size) return {};
    return {ErrorCode::kCorrupt,
            "the tokenizer has " + std::to_string(tokenizer.vocab_size) +
                " tokens; expected at most vocab_size, " + std::to_string(plan_.config.vocab_size),
            where_, "the tokenizer is not this model's"};
  }

  Status ReadTokenizer() {
    tokenizer_ = std::make_shared<CompiledTokenizer>();
    if (plan_.config.vocab_size == 0) return {};  // the model takes vectors
    // Old sentence-transformers folders keep the tokenizer with the transformer.
    Result<CompiledTokenizer> tokenizer = CompileTokenizer(transformer());
    if (!tokenizer.ok()) return tokenizer.status();
    *tokenizer_ = *std::move(tokenizer);
    if (!tokenizer_->note.empty()) plan_.notes.push_back(tokenizer_->note);
    if (plan_.config.task == Task::kGenerate && transformer().Has(kTargetTokenizerFile)) {
      Result<CompiledTokenizer> target = CompileTargetTokenizer(transformer());
      if (!target.ok()) return target.status();
      ATTEND_RETURN_IF_ERROR(CheckVocabulary(*target));
      target_tokenizer_ = std::make_shared<CompiledTokenizer>(*std::move(target));
    }
    if (tokenizer_->kind.empty()) return {};
    ATTEND_RETURN_IF_ERROR(CheckVocabulary(*tokenizer_));
    if (lower_case_ && !tokenizer_->lowercase) {
      return {ErrorCode::kUnsupported,
              "sentence_bert_config.json asks for lower case, and the tokenizer does not lower "
              "case; allowed: do_lower_case false",
              where_};
    }
    return {};
  }

  // Of all weights but those of layers that are more exact than the rest.
  WeightStorage Storage() const {
    if (options_.weights != WeightStorage::kKeep) return options_.weights;
    if (plan_.config.precision == Precision::kBf16) return WeightStorage::kBf16;
    if (plan_.config.precision == Precision::kInt8) return WeightStorage::kInt8;
    return WeightStorage::kKeep;
  }

  WeightStorage StorageOf(const std::string& tensor) const {
    const std::string layer = tensor.substr(0, tensor.rfind('.'));
    const auto named = [&](const std::vector<std::string>& layers) {
      return std::binary_search(layers.begin(), layers.end(), layer);
    };
    if (named(plan_.config.f32_layers)) return WeightStorage::kKeep;
    return named(plan_.config.bf16_layers) ? WeightStorage::kBf16 : Storage();
  }

  Status AddTensors(FileWriter* writer) {
    size_t mapped = 0;
    report_->num_parameters = 0;
    for (const TensorSpec& spec : ExpectedTensors(plan_.config)) {
      const auto from = plan_.tensors.find(spec.name);
      if (from == plan_.tensors.end()) {
        if (!spec.required) continue;
        return {ErrorCode::kInternal, "no tensor of the folder is known for " + spec.name, where_};
      }
      ++mapped;
      const TensorSource& part = from->second;
      const SourceTensor* found = weights_.Find(part.name);
      ATTEND_RETURN_IF_ERROR(CheckTensor(part, found, spec));
      used_.insert(part.name);
      SourceTensor source = *found;
      source.transposed = part.transposed;
      source.row = part.row;
      if (part.total_rows > 0) source.rows = spec.shape[0];
      AddWeight(source, spec, StorageOf(spec.name), writer);
      report_->num_parameters += static_cast<int64_t>(source.num_elements());
    }
    if (mapped != plan_.tensors.size()) {
      return {ErrorCode::kInternal,
              "a tensor of the folder is mapped to one the file does not have", where_};
    }
    if (!tokenizer_->kind.empty()) writer->SetString("tokenizer", tokenizer_->kind);
    AddTokenizer("tokenizer", tokenizer_, writer);
    AddTokenizer("target_tokenizer", target_tokenizer_, writer);
    return {};
  }

  static void AddTokenizer(const char* name, std::shared_ptr<CompiledTokenizer> tokenizer,
                           FileWriter* writer) {
    if (tokenizer == nullptr || tokenizer->kind.empty()) return;
    const uint64_t size = tokenizer->bytes.size();
    writer->AddTensor(name, DType::kU8, {size}, [tokenizer](std::span<std::byte> out) {
      std::copy(tokenizer->bytes.begin(), tokenizer->bytes.end(), out.begin());
      return Status();
    });
  }

  Status CheckTensor(const TensorSource& part, const SourceTensor* source,
                     const TensorSpec& spec) const {
    const std::string& name = part.name;
    std::vector<uint64_t> shape = spec.shape;
    if (part.total_rows > 0) shape[0] = part.total_rows;
    if (part.transposed) std::reverse(shape.begin(), shape.end());
    if (part.as_matrix) shape.insert(shape.begin(), 1);
    std::string expected = "[";
    for (const uint64_t dimension : shape) {
      expected += (expected.size() == 1 ? "" : ", ") + std::to_string(dimension);
    }
    expected += "]";
    const std::string who = "the tensor " + Quoted(name) + " ";
    if (source == nullptr) {
      return {ErrorCode::kCorrupt, who + "is missing; expected it with the shape " + expected,
              transformer().PathOf("model.safetensors"),
              "the weights are not those of this config.json"};
    }
    if (source->stored->shape != shape) {
      return {ErrorCode::kCorrupt,
              who + "is " + source->stored->Describe() + "; expected the shape " + expected,
              source->file->path(),
              std::equal(spec.shape.begin(), spec.shape.end(), source->stored->shape.rbegin(),
                         source->stored->shape.rend())
                  ? "it is transposed: weights are [out, in]"
                  : "the weights are not those of this config.json"};
    }
    if (!IsWeightType(source->stored->type)) {
      return {ErrorCode::kUnsupported,
              who + "has the type " + StoredTypeName(source->stored->type) +
                  "; allowed: F32, F16, BF16",
              source->file->path()};
    }
    return {};
  }

  void ListUnused() {
    for (const auto& [name, tensor] : weights_.tensors()) {
      if (used_.contains(name)) continue;
      const auto known = std::find_if(plan_.unused_reasons.begin(), plan_.unused_reasons.end(),
                                      [&](const auto& row) { return name.starts_with(row.first); });
      report_->unused.push_back({Printable(name), tensor.stored->Describe(),
                                 known == plan_.unused_reasons.end()
                                     ? "not a part of this architecture"
                                     : known->second});
    }
  }

  void Report() {
    const ModelConfig& c = plan_.config;
    report_->config = c;
    report_->notes = plan_.notes;
    report_->tokenizer = tokenizer_->kind;
    report_->source_bytes = weights_.file_bytes();
    auto& lines = report_->understood;
    const auto add = [&](const char* name, std::string value) {
      lines.emplace_back(name, std::move(value));
    };
    add("source", c.source + (report_->source_class.empty() ? "" : ", " + report_->source_class));
    add("task", Name(c.task));
    add("layers",
        std::to_string(c.num_layers) + " of width " + std::to_string(c.hidden_size) + ", " +
            std::to_string(c.num_heads) + " heads of " + std::to_string(c.head_dim) +
            (c.num_kv_heads == c.num_heads ? std::string()
                                           : " over " + std::to_string(c.num_kv_heads)) +
            (c.intermediate_size == 0 ? std::string(", no feed-forward")
                                      : ", feed-forward " + std::to_string(c.intermediate_size) +
                                            " (" + Name(c.activation) + ")"));
    for (const auto& [name, value] : DescribeFamily(c)) add(name.c_str(), value);
    if (c.vocab_size > 0) {
      add("vocabulary", std::to_string(c.vocab_size) + " tokens, " +
                            std::to_string(c.type_vocab_size) + " types");
    } else {
      add("input", "vectors of " + std::to_string(c.input_size) + " numbers");
    }
    if (c.max_length > 0) {
      add("longest text", std::to_string(c.max_length) + " tokens");
    } else {
      add("longest input", "no limit");
    }
    if (c.num_labels > 0) add("labels", std::to_string(c.num_labels));
    if (c.pooler) add("pooler", "yes");
    if (c.pooling != Pooling::kNone) add("pooling", Name(c.pooling));
    for (size_t i = 0; i < c.dense.size(); ++i) {
      add("dense", std::to_string(c.dense_sizes[i]) + " (" + Name(c.dense[i]) + ")");
    }
    if (c.task == Task::kEmbedding) add("normalised", c.normalize ? "yes" : "no");
    if (c.vocab_size > 0) {
      add("tokenizer", tokenizer_->kind.empty() ? "none: token ids only" : tokenizer_->kind);
    }
    add("precision", Name(c.precision));
    if (choice_ && choice_->measured) AddChoice(*choice_);
    constexpr const char* kStorageNames[] = {"as in the folder", "bf16", "int8 per output row"};
    add("weights", kStorageNames[static_cast<size_t>(Storage())]);
    add("parameters", std::to_string(report_->num_parameters));
  }

  // What was measured, and which layers follow from it.
  void AddChoice(const LayerChoice& choice) {
    const auto percent = [](double part) {
      char text[32];
      std::snprintf(text, sizeof(text), "%.2f %%", 100 * part);
      return std::string(text);
    };
    std::string loss = percent(choice.loss) + " of the answer";
    if (choice.loss != choice.loss_of_all) {
      loss += " (" + percent(choice.loss_of_all) + " with every layer in " +
              Name(plan_.config.precision) + ")";
    }
    auto& lines = report_->understood;
    lines.emplace_back("loss", loss);
    const auto add_names = [&](const char* key, const std::vector<std::string>& names) {
      std::string all;
      for (const std::string& name : names) all += (all.empty() ? "" : " ") + name;
      if (!all.empty()) lines.emplace_back(key, all);
    };
    add_names("in f32", choice.f32_layers);
    add_names("in bf16", choice.bf16_layers);
  }

  const ConvertOptions& options_;
  ConvertReport* report_;
  std::optional<FolderReader> folder_;
  std::optional<FolderReader> inside_;  // where the transformer is, if not in folder_ itself
  SentencePipeline pipeline_;
  std::string where_;
  json config_;
  WeightStore weights_;
  ConversionPlan plan_;
  std::shared_ptr<CompiledTokenizer> tokenizer_, target_tokenizer_;
  std::optional<LayerChoice> choice_;  // of bf16 and int8
  bool lower_case_ = false;
  std::set<std::string, std::less<>> used_;
};

}  // namespace

Status ConvertFolder(const ConvertOptions& options, ConvertReport* report) {
  try {
    *report = {};
    return Conversion(options, report).Run();
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kCapacity, "there is not enough memory to convert this folder",
            options.folder};
  } catch (const std::exception& error) {
    return {ErrorCode::kInternal, error.what(), options.folder};
  }
}

}  // namespace attend
