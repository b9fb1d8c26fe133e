// attend inspect: what is in a file, before any weight is loaded.
#include <memory>
#include <optional>

#include "attend/attend.h"
#include "engine/config.h"
#include "engine/format.h"
#include "tools/commands.h"
#include "tools/describe_family.h"
#include "tools/json_writer.h"

namespace attend::tools {
namespace {

struct InspectOptions {
  bool tensors = false;
};

// The bytes of a Session with the default options; nothing where this build cannot run the model.
std::optional<size_t> SessionBytes(const Model& model) {
  Result<size_t> bytes = Session::PredictMemoryBytes(model);
  return bytes.ok() ? std::optional<size_t>(*bytes) : std::nullopt;
}

std::string Shape(const TensorView& tensor) {
  std::string text = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  }
  return text + "]";
}

struct Field {
  const char* key;
  int64_t value;
};

std::vector<Field> Sizes(const ModelInfo& info) {
  return {{"hidden_size", info.hidden_size},
          {"num_layers", info.num_layers},
          {"num_heads", info.num_heads},
          {"num_kv_heads", info.num_kv_heads},
          {"head_dim", info.head_dim},
          {"intermediate_size", info.intermediate_size},
          {"vocab_size", info.vocab_size},
          {"input_size", info.input_size},
          {"type_vocab_size", info.type_vocab_size},
          {"max_length", info.max_length},
          {"num_parameters", info.num_parameters},
          {"file_bytes", info.file_bytes}};
}

// Where the model stands in the attention family, by the names of docs/family.md.
void WriteFamily(const ModelConfig& c, JsonWriter* writer) {
  writer->Key("position").String(Name(c.position)).Key("score").String(Name(c.score));
  if (c.position == Position::kRotary) {
    writer->Key("rope_theta").Float(static_cast<float>(c.rope_theta));
  }
  if (c.score == Score::kAdditive) writer->Key("score_size").Int(c.score_size);
  writer->Key("score_bias").String(Name(c.score_bias));
  if (c.score_bias == ScoreBias::kRelative) {
    writer->Key("relative_buckets").Int(c.relative_buckets);
    writer->Key("relative_max_distance").Int(c.relative_max_distance);
  }
  writer->Key("causal").Bool(c.causal);
  if (c.windowed) {
    writer->Key("window").BeginArray().Int(c.window_left).Int(c.window_right).EndArray();
  }
  writer->Key("global_tokens").Int(c.global_tokens).Key("edges").Bool(c.edges);
  writer->Key("normalizer").String(Name(c.normalizer));
  writer->Key("normalizer_scale").String(c.normalizer_length ? "length" : "none");
  writer->Key("norm").String(Name(c.norm)).Key("norm_type").String(Name(c.norm_type));
  writer->Key("residual").Bool(c.residual);
  writer->Key("output_projection").Bool(c.output_projection);
  if (c.intermediate_size > 0) writer->Key("activation").String(Name(c.activation));
}

void WriteNames(const char* key, const std::vector<std::string>& names, JsonWriter* writer) {
  writer->Key(key).BeginArray();
  for (const std::string& name : names) writer->String(name);
  writer->EndArray();
}

void PrintJson(const std::string& path, const Model& model, const FileView& file,
               const ModelConfig& config, Console* console) {
  const ModelInfo& info = model.info();
  JsonWriter writer;
  writer.BeginObject().Key("file").String(path);
  writer.Key("architecture").String(info.architecture).Key("source").String(info.source);
  writer.Key("description").String(info.description).Key("task").String(Name(info.task));
  writer.Key("precision").String(Name(info.precision));
  WriteNames("f32_layers", config.f32_layers, &writer);
  WriteNames("bf16_layers", config.bf16_layers, &writer);
  for (const Field& field : Sizes(info)) writer.Key(field.key).Int(field.value);
  WriteFamily(config, &writer);
  writer.Key("pooling").String(info.pooling).Key("normalized").Bool(info.normalized);
  writer.Key("tokenizer").String(info.tokenizer);
  WriteNames("labels", info.labels, &writer);
  if (const std::optional<size_t> bytes = SessionBytes(model)) {
    writer.Key("session_bytes").Int(static_cast<int64_t>(*bytes));
  }
  writer.Key("tensors").BeginArray();
  for (size_t i = 0; i < file.num_tensors(); ++i) {
    const TensorView tensor = file.tensor(i);
    writer.BeginObject().Key("name").String(tensor.name);
    writer.Key("dtype").String(DTypeName(tensor.dtype)).Key("shape").BeginArray();
    for (uint64_t size : tensor.shape) writer.Int(static_cast<int64_t>(size));
    writer.EndArray().Key("bytes").Int(static_cast<int64_t>(tensor.bytes.size())).EndObject();
  }
  writer.EndArray().EndObject().EndLine();
  console->out().Write(writer.text());
}

void FactLine(std::string_view key, std::string_view value, Console* console) {
  if (value.empty()) return;
  std::string line(key);
  line.resize(std::max<size_t>(line.size() + 1, 20), ' ');
  console->out().Write(console->Paint(line, "2") + Printable(value) + "\n");
}

std::string Joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : " ") + name;
  return all;
}

void PrintPlain(const std::string& path, const Model& model, const FileView& file,
                const ModelConfig& config, bool tensors, Console* console) {
  const ModelInfo& info = model.info();
  FactLine("file", path, console);
  FactLine("description", info.description, console);
  FactLine("architecture", info.architecture, console);
  FactLine("source", info.source, console);
  FactLine("task", Name(info.task), console);
  FactLine("precision", Name(info.precision), console);
  FactLine("f32_layers", Joined(config.f32_layers), console);
  FactLine("bf16_layers", Joined(config.bf16_layers), console);
  for (const Field& field : Sizes(info)) {
    if (field.value != 0) FactLine(field.key, std::to_string(field.value), console);
  }
  for (const auto& [name, value] : DescribeFamily(config)) FactLine(name, value, console);
  FactLine("pooling", info.pooling, console);
  if (info.task == Task::kEmbedding)
    FactLine("normalized", info.normalized ? "yes" : "no", console);
  if (info.vocab_size > 0) {
    FactLine("tokenizer", info.tokenizer.empty() ? "none: takes ids only" : info.tokenizer,
             console);
  }
  FactLine("labels", Joined(info.labels), console);
  if (const std::optional<size_t> bytes = SessionBytes(model)) {
    FactLine("session_bytes",
             std::to_string(*bytes) + " (8192 tokens, 64 sequences, weights included)", console);
  }
  FactLine("tensors", std::to_string(file.num_tensors()), console);
  for (size_t i = 0; tensors && i < file.num_tensors(); ++i) {
    const TensorView tensor = file.tensor(i);
    console->out().Write("  " + Printable(tensor.name) + " " + DTypeName(tensor.dtype) + " " +
                         Shape(tensor) + "\n");
  }
}

int RunInspect(const std::string& path, const InspectOptions& options, Console* console) {
  Result<FileBytes> bytes = FileBytes::Open(path, FileBytes::Mode::kMap);
  if (!bytes.ok()) return console->Fail(bytes.status());
  Result<FileView> file = FileView::Open(bytes->bytes(), VerifyLevel::kStructure, path);
  if (!file.ok()) return console->Fail(file.status());
  Result<Model> model = Model::Load(path);
  if (!model.ok()) return console->Fail(model.status());
  Result<ModelConfig> config = ReadConfig(*file);
  if (!config.ok()) return console->Fail(config.status());
  if (console->json) {
    PrintJson(path, *model, *file, *config, console);
  } else {
    PrintPlain(path, *model, *file, *config, options.tensors, console);
  }
  return console->Finish();
}

}  // namespace

void AddInspect(Program* program) {
  auto options = std::make_shared<InspectOptions>();
  Command command =
      program->Add("inspect", "What is in a file, before any weight is loaded", "FILE", 1, 1,
                   [options](const Program::Arguments& arguments, Console* console) {
                     return RunInspect(arguments[0], *options, console);
                   });
  command.Flag("--tensors", &options->tensors, "List every tensor (--json always does)");
}

}  // namespace attend::tools
