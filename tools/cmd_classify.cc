// attend classify: a label and scores for every text, or pair of texts.
#include <memory>

#include "attend/text.h"
#include "tools/commands.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"
#include "tools/stream.h"
#include "tools/texts.h"

namespace attend::tools {
namespace {

struct ClassifyOptions {
  ModelOptions model;
  TextOptions texts;
  bool pair = false;
};

void PrintJson(const TextItem& item, bool pair, const Classification& result,
               std::span<const std::string> labels, JsonWriter* writer) {
  writer->BeginObject().Key("text").String(item.text);
  if (pair) writer->Key("pair").String(item.pair);
  writer->Key("label").String(result.label).Key("scores").BeginObject();
  for (size_t i = 0; i < labels.size(); ++i) writer->Key(labels[i]).Float(result.scores[i]);
  writer->EndObject();
  if (result.truncated) writer->Key("truncated").Bool(true);
  writer->EndObject().EndLine();
}

void PrintPlain(const TextItem& item, bool pair, const Classification& result,
                std::span<const std::string> labels, Console* console) {
  float score = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == result.label) score = result.scores[i];
  }
  OutputStream& out = console->out();
  out.Write(console->Paint(Printable(result.label), "36") + "\t" + FormatFloat(score) + "\t");
  out.Write(Printable(item.text) + (pair ? "\t" + Printable(item.pair) : "") + "\n");
}

Status ClassifyAll(Classifier* classifier, bool pair, std::span<const TextItem> items,
                   Console* console) {
  std::vector<std::string_view> texts;
  std::vector<std::string_view> pairs;
  for (const TextItem& item : items) {
    texts.push_back(item.text);
    pairs.push_back(item.pair);
  }
  Result<std::vector<Classification>> results =
      pair ? classifier->ClassifyPairBatch(texts, pairs) : classifier->ClassifyBatch(texts);
  if (!results.ok()) return results.status();
  JsonWriter writer;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!console->json) {
      PrintPlain(items[i], pair, (*results)[i], classifier->labels(), console);
      continue;
    }
    PrintJson(items[i], pair, (*results)[i], classifier->labels(), &writer);
    console->out().Write(writer.text());
    writer.Clear();
  }
  return {};
}

int RunClassify(const ClassifyOptions& options, const Program::Arguments& arguments,
                Console* console) {
  if (const int code = ApplyOptions(options.model, console); code != kExitOk) return code;
  Result<Model> model = LoadModel(options.model, "sentiment-en.attend", "classify");
  if (!model.ok()) return console->Fail(model.status());
  Result<Classifier> classifier =
      Classifier::Create(*model, PipelineOptionsOf(options.model, *model));
  if (!classifier.ok()) return console->Fail(classifier.status());
  TextSource source(arguments, options.texts);
  return Stream<TextItem>(&source, console, [&](std::span<const TextItem> items) {
    return ClassifyAll(&*classifier, options.pair, items, console);
  });
}

}  // namespace

void AddClassify(Program* program) {
  auto options = std::make_shared<ClassifyOptions>();
  Command command =
      program->Add("classify", "A label and scores for every text", "[TEXT...]", 0, -1,
                   [options](const Program::Arguments& arguments, Console* console) {
                     if (options->pair) options->texts.shape = LineShape::kPair;
                     options->texts.SetBatch(options->model.batch_tokens);
                     return RunClassify(*options, arguments, console);
                   });
  AddModelOptions(&command, &options->model);
  AddLengthOptions(&command, &options->model, /*with_truncate=*/true);
  AddInputOption(&command, &options->texts);
  command.Flag("--pair", &options->pair, "Every line is two texts with a TAB between them");
}

}  // namespace attend::tools
