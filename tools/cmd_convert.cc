// attend convert: a Hugging Face folder becomes one .attend file.
#include <memory>

#include "tools/commands.h"
#include "tools/convert.h"
#include "tools/interrupt.h"
#include "tools/json_writer.h"

namespace attend::tools {
namespace {

struct ConvertCommand {
  std::string output;
  std::string precision = "f32";
  std::string weights = "keep";
};

ConvertOptions OptionsOf(const ConvertCommand& command, const std::string& folder) {
  ConvertOptions options;
  options.folder = folder;
  options.output = command.output;
  if (command.precision == "f32") options.precision = Precision::kF32;
  if (command.precision == "bf16") options.precision = Precision::kBf16;
  if (command.precision == "int8") options.precision = Precision::kInt8;
  if (command.weights == "bf16") options.weights = WeightStorage::kBf16;
  if (command.weights == "int8") options.weights = WeightStorage::kInt8;
  return options;
}

void PrintJson(const ConvertReport& report, const ConvertOptions& options, Console* console) {
  JsonWriter writer;
  writer.BeginObject().Key("folder").String(options.folder).Key("output").String(options.output);
  writer.Key("source").String(report.config.source);
  writer.Key("source_class").String(report.source_class);
  writer.Key("task").String(Name(report.config.task));
  writer.Key("tokenizer").String(report.tokenizer);
  writer.Key("tensors").Int(report.num_tensors).Key("parameters").Int(report.num_parameters);
  writer.Key("understood").BeginObject();
  for (const auto& [name, value] : report.understood) writer.Key(name).String(value);
  writer.EndObject().Key("notes").BeginArray();
  for (const std::string& note : report.notes) writer.String(note);
  writer.EndArray().Key("unused").BeginArray();
  for (const UnusedTensor& tensor : report.unused) {
    writer.BeginObject().Key("name").String(tensor.name).Key("type").String(tensor.type);
    writer.Key("reason").String(tensor.reason).EndObject();
  }
  writer.EndArray().EndObject().EndLine();
  console->out().Write(writer.text());
}

void Line(const std::string& key, const std::string& value, Console* console) {
  std::string line = key;
  line.resize(std::max<size_t>(line.size() + 1, 20), ' ');
  console->out().Write(console->Paint(line, "2") + Printable(value) + "\n");
}

void PrintPlain(const ConvertReport& report, const ConvertOptions& options, Console* console) {
  for (const auto& [name, value] : report.understood) Line(name, value, console);
  for (const UnusedTensor& tensor : report.unused) {
    Line("not used", tensor.name + " (" + tensor.type + "): " + tensor.reason, console);
  }
  for (const std::string& note : report.notes) Line("note", note, console);
  Line("wrote",
       options.output + " (" + std::to_string(report.num_tensors) + " tensors, " +
           std::to_string(report.num_parameters) + " parameters)",
       console);
}

int RunConvert(const ConvertCommand& command, const std::string& folder, Console* console) {
  EndAtOnceWhenInterrupted();  // a file that is not complete has no name yet
  const ConvertOptions options = OptionsOf(command, folder);
  ConvertReport report;
  const Status status = ConvertFolder(options, &report);
  if (!status.ok()) return console->Fail(status);
  if (console->json) {
    PrintJson(report, options, console);
  } else {
    PrintPlain(report, options, console);
  }
  return console->Finish();
}

}  // namespace

void AddConvert(Program* program) {
  auto options = std::make_shared<ConvertCommand>();
  Command command =
      program->Add("convert", "A Hugging Face folder becomes one .attend file", "FOLDER -o FILE", 1,
                   1, [options](const Program::Arguments& arguments, Console* console) {
                     return RunConvert(*options, arguments[0], console);
                   });
  command.Text("-o,--output", &options->output, "FILE", "The file to write", /*required=*/true);
  command.Choice("--precision", &options->precision, "NAME", {"f32", "bf16", "int8"},
                 "Arithmetic that the file asks for");
  command.Choice("--weights", &options->weights, "NAME", {"keep", "bf16", "int8"},
                 "How weights are stored: as in the folder, or smaller");
}

}  // namespace attend::tools
