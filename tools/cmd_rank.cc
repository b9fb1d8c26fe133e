// attend rank: texts by relevance to a query.
#include <algorithm>
#include <memory>

#include "attend/text.h"
#include "tools/commands.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"
#include "tools/stream.h"
#include "tools/texts.h"

namespace attend::tools {
namespace {

struct RankOptions {
  ModelOptions model;
  TextOptions texts;
};

struct Entry {
  Ranked ranked;
  std::string text;
};

// Adds the scores of a batch to those of the texts before it.
Status RankMore(Reranker* reranker, const std::string& query, std::span<const TextItem> items,
                std::vector<Entry>* entries) {
  std::vector<std::string_view> texts;
  for (const TextItem& item : items) texts.push_back(item.text);
  Result<std::vector<Ranked>> ranked = reranker->Rank(query, texts);
  if (!ranked.ok()) return ranked.status();
  const size_t first = entries->size();
  for (const Ranked& one : *ranked) {
    entries->push_back({one, items[one.index].text});
    entries->back().ranked.index += first;
  }
  return {};
}

void Print(const Entry& entry, Console* console) {
  if (!console->json) {
    console->out().Write(FormatFloat(entry.ranked.score) + "\t" + Printable(entry.text) + "\n");
    return;
  }
  JsonWriter writer;
  writer.BeginObject().Key("index").Int(static_cast<int64_t>(entry.ranked.index));
  writer.Key("text").String(entry.text).Key("score").Float(entry.ranked.score);
  if (entry.ranked.truncated) writer.Key("truncated").Bool(true);
  writer.EndObject().EndLine();
  console->out().Write(writer.text());
}

int RunRank(const RankOptions& options, const Program::Arguments& arguments, Console* console) {
  if (const int code = ApplyOptions(options.model, console); code != kExitOk) return code;
  Result<Model> model = LoadModel(options.model, "", "rank");
  if (!model.ok()) return console->Fail(model.status());
  Result<Reranker> reranker = Reranker::Create(*model, PipelineOptionsOf(options.model, *model));
  if (!reranker.ok()) return console->Fail(reranker.status());

  std::vector<Entry> entries;
  TextSource source(Program::Arguments(arguments.begin() + 1, arguments.end()), options.texts);
  const int code = Stream<TextItem>(&source, console, [&](std::span<const TextItem> items) {
    return RankMore(&*reranker, arguments[0], items, &entries);
  });
  if (code != kExitOk) return code;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.ranked.score != b.ranked.score ? a.ranked.score > b.ranked.score
                                            : a.ranked.index < b.ranked.index;
  });
  for (const Entry& entry : entries) Print(entry, console);
  return console->Finish();
}

}  // namespace

void AddRank(Program* program) {
  auto options = std::make_shared<RankOptions>();
  Command command =
      program->Add("rank", "Texts by relevance to a query, best first", "QUERY [TEXT...]", 1, -1,
                   [options](const Program::Arguments& arguments, Console* console) {
                     options->texts.SetBatch(options->model.batch_tokens);
                     return RunRank(*options, arguments, console);
                   });
  AddModelOptions(&command, &options->model);
  AddLengthOptions(&command, &options->model, /*with_truncate=*/true);
  AddInputOption(&command, &options->texts);
}

}  // namespace attend::tools
