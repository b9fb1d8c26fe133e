// attend inspect: what is in a file, before any weight is loaded.
#include <memory>
#include <optional>

#include "attend/attend.h"
#include "engine/config.h"
#include "engine/format.h"
#include "tools/commands.h"
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

void PrintJson(const std::string& path, const Model& model, const FileView& file,
               Console* console) {
  const ModelInfo& info = model.info();
  JsonWriter writer;
  writer.BeginObject().Key("file").String(path);
  writer.Key("architecture").String(info.architecture).Key("source").String(info.source);
  writer.Key("description").String(info.description).Key("task").String(Name(info.task));
  writer.Key("precision").String(Name(info.precision));
  for (const Field& field : Sizes(info)) writer.Key(field.key).Int(field.value);
  writer.Key("pooling").String(info.pooling).Key("normalized").Bool(info.normalized);
  writer.Key("tokenizer").String(info.tokenizer).Key("labels").BeginArray();
  for (const std::string& label : info.labels) writer.String(label);
  writer.EndArray();
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

void Line(std::string_view key, std::string_view value, Console* console) {
  if (value.empty()) return;
  std::string line(key);
  line.resize(std::max<size_t>(line.size() + 1, 20), ' ');
  console->out().Write(console->Paint(line, "2") + Printable(value) + "\n");
}

void PrintPlain(const std::string& path, const Model& model, const FileView& file, bool tensors,
                Console* console) {
  const ModelInfo& info = model.info();
  Line("file", path, console);
  Line("description", info.description, console);
  Line("architecture", info.architecture, console);
  Line("source", info.source, console);
  Line("task", Name(info.task), console);
  Line("precision", Name(info.precision), console);
  for (const Field& field : Sizes(info)) {
    if (field.value != 0) Line(field.key, std::to_string(field.value), console);
  }
  Line("pooling", info.pooling, console);
  if (info.task == Task::kEmbedding) Line("normalized", info.normalized ? "yes" : "no", console);
  Line("tokenizer", info.tokenizer.empty() ? "none: takes ids only" : info.tokenizer, console);
  std::string labels;
  for (const std::string& label : info.labels) labels += (labels.empty() ? "" : " ") + label;
  Line("labels", labels, console);
  if (const std::optional<size_t> bytes = SessionBytes(model)) {
    Line("session_bytes", std::to_string(*bytes) + " (8192 tokens, 64 sequences, weights included)",
         console);
  }
  Line("tensors", std::to_string(file.num_tensors()), console);
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
  if (console->json) {
    PrintJson(path, *model, *file, console);
  } else {
    PrintPlain(path, *model, *file, options.tensors, console);
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
