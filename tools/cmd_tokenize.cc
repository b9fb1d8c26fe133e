// attend tokenize: ids, tokens and offsets.
#include <memory>

#include "attend/text.h"
#include "engine/text/tokenizer_data.h"
#include "tools/commands.h"
#include "tools/find_model.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"
#include "tools/stream.h"
#include "tools/texts.h"
#include "tools/tokenizer_json.h"

namespace attend::tools {
namespace {

struct TokenizeOptions {
  std::string model;
  TextOptions texts;
  std::string offsets = "bytes";
  int32_t max_length = 0;
  bool no_special = false;
  bool pair = false;
};

Result<Tokenizer> LoadTokenizer(const std::string& named) {
  std::string path = named;
  if (path.empty()) {
    Result<std::string> shipped = FindShippedModel("pos-en.attend");
    if (!shipped.ok()) return shipped.status();
    path = *shipped;
  }
  if (!path.ends_with(".json")) return Tokenizer::Load(path);
  Result<TokenizerSpec> spec = ReadTokenizerJson(path);
  if (!spec.ok()) return spec.status();
  return Tokenizer::FromBytes(SerializeTokenizer(*spec));
}

void PrintJson(const TextItem& item, bool pair, const Encoding& encoding, JsonWriter* writer) {
  writer->BeginObject().Key("text").String(item.text);
  if (pair) writer->Key("pair").String(item.pair);
  writer->Key("ids").BeginArray();
  for (int32_t id : encoding.ids) writer->Int(id);
  writer->EndArray().Key("type_ids").BeginArray();
  for (int32_t id : encoding.type_ids) writer->Int(id);
  writer->EndArray().Key("tokens").BeginArray();
  for (const std::string& token : encoding.tokens) writer->String(token);
  writer->EndArray().Key("offsets").BeginArray();
  for (const TextRange& range : encoding.offsets) {
    writer->BeginArray().Int(range.begin).Int(range.end).EndArray();
  }
  writer->EndArray();
  if (encoding.truncated) writer->Key("truncated").Bool(true);
  writer->EndObject().EndLine();
}

void PrintPlain(const Encoding& encoding, Console* console) {
  std::string line;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    line += (i == 0 ? "" : " ") + Printable(encoding.tokens[i]);
    line += console->Paint(":" + std::to_string(encoding.ids[i]), "2");
  }
  console->out().Write(line + "\n");
}

int RunTokenize(const TokenizeOptions& options, const Program::Arguments& arguments,
                Console* console) {
  Result<Tokenizer> tokenizer = LoadTokenizer(options.model);
  if (!tokenizer.ok()) return console->Fail(tokenizer.status());
  EncodeOptions encode;
  encode.add_special_tokens = !options.no_special;
  encode.offset_unit = OffsetUnitOf(options.offsets);
  encode.max_tokens = options.max_length;
  TextSource source(arguments, options.texts);
  return Stream<TextItem>(&source, console, [&](std::span<const TextItem> items) -> Status {
    JsonWriter writer;
    std::vector<Encoding> encodings;
    for (const TextItem& item : items) {
      Result<Encoding> encoding = options.pair ? tokenizer->EncodePair(item.text, item.pair, encode)
                                               : tokenizer->Encode(item.text, encode);
      if (!encoding.ok()) return encoding.status();
      encodings.push_back(*std::move(encoding));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      if (console->json) {
        PrintJson(items[i], options.pair, encodings[i], &writer);
      } else {
        PrintPlain(encodings[i], console);
      }
    }
    console->out().Write(writer.text());
    return {};
  });
}

}  // namespace

void AddTokenize(Program* program) {
  auto options = std::make_shared<TokenizeOptions>();
  Command command = program->Add("tokenize", "Ids, tokens and offsets", "[TEXT...]", 0, -1,
                                 [options](const Program::Arguments& arguments, Console* console) {
                                   if (options->pair) options->texts.shape = LineShape::kPair;
                                   return RunTokenize(*options, arguments, console);
                                 });
  command.Text("-m,--model", &options->model, "FILE", "An .attend file or a tokenizer.json");
  AddInputOption(&command, &options->texts);
  AddOffsetOption(&command, &options->offsets);
  command.Int("--max-length", &options->max_length, 1, 1 << 30,
              "Cut to this many tokens, special ones included; default: never");
  command.Flag("--no-special", &options->no_special, "Without [CLS], [SEP] and the like");
  command.Flag("--pair", &options->pair, "Every line is two texts with a TAB between them");
}

}  // namespace attend::tools
