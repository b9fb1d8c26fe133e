// attend tag: a label for every word.
#include <memory>

#include "attend/text.h"
#include "tools/commands.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"
#include "tools/stream.h"
#include "tools/texts.h"

namespace attend::tools {
namespace {

struct TagOptions {
  ModelOptions model;
  TextOptions texts;
  bool words = false;
};

void PrintJson(const TextItem& item, const Tags& tags, JsonWriter* writer) {
  std::string joined;
  for (size_t i = 0; item.has_words && i < item.words.size(); ++i) {
    joined += (i == 0 ? "" : " ") + item.words[i];
  }
  writer->BeginObject().Key("text").String(item.has_words ? joined : item.text);
  writer->Key("words").BeginArray();
  for (const TaggedWord& word : tags.words) {
    writer->BeginObject().Key("text").String(word.text);
    writer->Key("begin").Int(word.range.begin).Key("end").Int(word.range.end);
    writer->Key("label").String(word.label).Key("score").Float(word.score).EndObject();
  }
  writer->EndArray();
  if (tags.windowed) writer->Key("windowed").Bool(true);
  writer->EndObject().EndLine();
}

void PrintPlain(const Tags& tags, Console* console) {
  bool first = true;
  for (const TaggedWord& word : tags.words) {
    if (!first) console->out().Write(" ");
    first = false;
    console->out().Write(Printable(word.text));
    console->out().Write(console->Paint("/" + Printable(word.label), "36"));
  }
  console->out().Write("\n");
}

// Tags a batch in which some lines may be cut into words already and others not.
Status TagAll(Tagger* tagger, std::span<const TextItem> items, Console* console) {
  std::vector<std::string_view> texts;
  std::vector<std::vector<std::string_view>> words;
  for (const TextItem& item : items) {
    if (item.has_words) {
      words.emplace_back(item.words.begin(), item.words.end());
    } else {
      texts.push_back(item.text);
    }
  }
  Result<std::vector<Tags>> of_texts = tagger->TagBatch(texts);
  if (!of_texts.ok()) return of_texts.status();
  Result<std::vector<Tags>> of_words = tagger->TagWordsBatch(words);
  if (!of_words.ok()) return of_words.status();
  size_t next_text = 0;
  size_t next_words = 0;
  JsonWriter writer;
  for (const TextItem& item : items) {
    const Tags& tags = item.has_words ? (*of_words)[next_words++] : (*of_texts)[next_text++];
    if (!console->json) {
      PrintPlain(tags, console);
      continue;
    }
    PrintJson(item, tags, &writer);
    console->out().Write(writer.text());
    writer.Clear();
  }
  return {};
}

int RunTag(const TagOptions& options, const Program::Arguments& arguments, Console* console) {
  if (const int code = ApplyOptions(options.model, console); code != kExitOk) return code;
  Result<Model> model = LoadModel(options.model, "pos-en.attend", "tag");
  if (!model.ok()) return console->Fail(model.status());
  Result<Tagger> tagger = Tagger::Create(*model, PipelineOptionsOf(options.model, *model));
  if (!tagger.ok()) return console->Fail(tagger.status());
  TextSource source(arguments, options.texts);
  return Stream<TextItem>(&source, console, [&](std::span<const TextItem> items) {
    return TagAll(&*tagger, items, console);
  });
}

}  // namespace

void AddTag(Program* program) {
  auto options = std::make_shared<TagOptions>();
  Command command = program->Add("tag", "A label for every word", "[TEXT...]", 0, -1,
                                 [options](const Program::Arguments& arguments, Console* console) {
                                   if (options->words) options->texts.shape = LineShape::kWords;
                                   options->texts.SetBatch(options->model.batch_tokens);
                                   return RunTag(*options, arguments, console);
                                 });
  AddModelOptions(&command, &options->model);
  AddLengthOptions(&command, &options->model, /*with_truncate=*/false);
  AddOffsetOption(&command, &options->model.offsets);
  AddInputOption(&command, &options->texts);
  command.Flag("--words", &options->words,
               "Texts are cut into words already, by single spaces: exactly one label a word");
}

}  // namespace attend::tools
