// attend embed: a vector for every text.
#include <memory>
#include <optional>

#include "attend/text.h"
#include "tools/commands.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"
#include "tools/npy_writer.h"
#include "tools/stream.h"
#include "tools/texts.h"

namespace attend::tools {
namespace {

struct EmbedOptions {
  ModelOptions model;
  TextOptions texts;
  std::string output;
};

void Print(const TextItem& item, const Embedding& embedding, Console* console) {
  if (console->json) {
    JsonWriter writer;
    writer.BeginObject().Key("text").String(item.text);
    writer.Key("embedding").Floats(embedding.values);
    if (embedding.truncated) writer.Key("truncated").Bool(true);
    writer.EndObject().EndLine();
    console->out().Write(writer.text());
    return;
  }
  std::string line;
  for (float value : embedding.values) line += (line.empty() ? "" : " ") + FormatFloat(value);
  console->out().Write(line + "\n");
}

Status EmbedAll(Embedder* embedder, NpyWriter* file, std::span<const TextItem> items,
                Console* console) {
  if (file != nullptr) ATTEND_RETURN_IF_ERROR(file->status());  // a full disk ends the work now
  std::vector<std::string_view> texts;
  for (const TextItem& item : items) texts.push_back(item.text);
  Result<std::vector<Embedding>> embeddings = embedder->EmbedBatch(texts);
  if (!embeddings.ok()) return embeddings.status();
  for (size_t i = 0; i < items.size(); ++i) {
    if (file == nullptr) {
      Print(items[i], (*embeddings)[i], console);
    } else {
      file->AddRow((*embeddings)[i].values);
    }
  }
  return {};
}

int RunEmbed(const EmbedOptions& options, const Program::Arguments& arguments, Console* console) {
  if (const int code = ApplyOptions(options.model, console); code != kExitOk) return code;
  Result<Model> model = LoadModel(options.model, "", "embed");
  if (!model.ok()) return console->Fail(model.status());
  Result<Embedder> embedder = Embedder::Create(*model, PipelineOptionsOf(options.model, *model));
  if (!embedder.ok()) return console->Fail(embedder.status());
  std::optional<NpyWriter> file;
  if (!options.output.empty()) {
    file.emplace(options.output, static_cast<size_t>(embedder->dimensions()));
    if (!file->status().ok()) return console->Fail(file->status());
  }
  TextSource source(arguments, options.texts);
  const int code = Stream<TextItem>(&source, console, [&](std::span<const TextItem> items) {
    return EmbedAll(&*embedder, file ? &*file : nullptr, items, console);
  });
  if (code != kExitOk || !file) return code;
  const Status status = file->Finish();
  return status.ok() ? kExitOk : console->Fail(status);
}

}  // namespace

void AddEmbed(Program* program) {
  auto options = std::make_shared<EmbedOptions>();
  Command command = program->Add("embed", "A vector for every text", "[TEXT...]", 0, -1,
                                 [options](const Program::Arguments& arguments, Console* console) {
                                   options->texts.SetBatch(options->model.batch_tokens);
                                   return RunEmbed(*options, arguments, console);
                                 });
  AddModelOptions(&command, &options->model);
  AddLengthOptions(&command, &options->model, /*with_truncate=*/true);
  AddInputOption(&command, &options->texts);
  command.Text("-o,--output", &options->output, "FILE.npy", "Write [B, D] f32 here instead");
}

}  // namespace attend::tools
