// attend generate: text out of text.
#include <algorithm>
#include <memory>
#include <optional>

#include "attend/text.h"
#include "tools/commands.h"
#include "tools/growing_generator.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"
#include "tools/stream.h"
#include "tools/texts.h"

namespace attend::tools {
namespace {

constexpr size_t kMaxAdded = 64;  // tokens that a template adds to a text

struct GenerateOptions {
  ModelOptions model;
  TextOptions texts;
  std::optional<int32_t> beam, max_new_tokens, top_k;
  std::optional<double> length_penalty, temperature, top_p;
  std::optional<uint64_t> seed;
};

// Whatever only sampling knows asks for it; the temperature 0 asks for its opposite.
GenerationSettings SettingsOf(const GenerateOptions& options) {
  GenerationSettings settings;
  settings.num_beams = options.beam;
  settings.max_new_tokens = options.max_new_tokens;
  settings.length_penalty = options.length_penalty;
  settings.top_k = options.top_k;
  settings.top_p = options.top_p;
  settings.seed = options.seed;
  if (options.temperature == 0.0) {
    settings.do_sample = false;
    return settings;
  }
  settings.temperature = options.temperature;
  if (options.temperature.has_value() || options.top_k.has_value() || options.top_p.has_value() ||
      options.seed.has_value()) {
    settings.do_sample = true;
  }
  return settings;
}

void PrintJson(const TextItem& item, const Generation& generation, JsonWriter* writer) {
  const GeneratedText& best = generation.outputs.front();
  writer->BeginObject().Key("text").String(item.text).Key("output").String(best.text);
  writer->Key("ids").BeginArray();
  for (int32_t id : best.ids) writer->Int(id);
  writer->EndArray().Key("score").Float(static_cast<float>(best.score));
  if (generation.truncated) writer->Key("truncated").Bool(true);
  writer->EndObject().EndLine();
}

Status GenerateAll(GrowingGenerator* generators, std::span<const TextItem> items,
                   Console* console) {
  std::vector<std::string_view> texts;
  size_t longest = 0;
  for (const TextItem& item : items) {
    texts.push_back(item.text);
    longest = std::max(longest, item.text.size() + kMaxAdded);  // a token has a byte at least
  }
  const Result<Generator*> generator = generators->For(longest);
  if (!generator.ok()) return generator.status();
  const Result<std::vector<Generation>> generations = (*generator)->GenerateBatch(texts);
  if (!generations.ok()) return generations.status();
  JsonWriter writer;
  for (size_t i = 0; i < items.size(); ++i) {
    if (console->json) {
      PrintJson(items[i], (*generations)[i], &writer);
    } else {
      console->out().Write(Printable((*generations)[i].outputs.front().text) + "\n");
    }
  }
  console->out().Write(writer.text());
  return {};
}

int RunGenerate(const GenerateOptions& options, const Program::Arguments& arguments,
                Console* console) {
  if (const int code = ApplyOptions(options.model, console); code != kExitOk) return code;
  Result<Model> model = LoadModel(options.model, "g2p-en.attend", "generate");
  if (!model.ok()) return console->Fail(model.status());
  GeneratorOptions generator_options;
  generator_options.session = PipelineOptionsOf(options.model, *model).session;
  generator_options.settings = SettingsOf(options);
  generator_options.truncate = options.model.truncate;
  GrowingGenerator generators(*model, generator_options, options.model.max_length);
  if (const Result<Generator*> first = generators.For(1); !first.ok()) {
    return console->Fail(first.status());
  }
  TextSource source(arguments, options.texts);
  return Stream<TextItem>(&source, console, [&](std::span<const TextItem> items) {
    return GenerateAll(&generators, items, console);
  });
}

}  // namespace

void AddGenerate(Program* program) {
  auto options = std::make_shared<GenerateOptions>();
  Command command =
      program->Add("generate", "Text out of text: by default, how English words sound", "[TEXT...]",
                   0, -1, [options](const Program::Arguments& arguments, Console* console) {
                     options->texts.SetBatch(options->model.batch_tokens);
                     return RunGenerate(*options, arguments, console);
                   });
  AddModelOptions(&command, &options->model);
  AddLengthOptions(&command, &options->model, /*with_truncate=*/true);
  AddInputOption(&command, &options->texts);
  command.OptionalInt("--beam", &options->beam, 1, 256,
                      "Beams; 1: greedy, or plain sampling; default: what the file says");
  command.OptionalInt("--max-new-tokens", &options->max_new_tokens, 1, 1 << 20,
                      "The longest output in tokens; default: what the file says, else 20");
  command.OptionalFloat("--length-penalty", &options->length_penalty,
                        "Scores are divided by length to this power: above 0 favours long outputs");
  command.OptionalFloat("--temperature", &options->temperature,
                        "Sample, sharper below 1, flatter above; 0: do not sample");
  command.OptionalInt("--top-k", &options->top_k, 0, INT32_MAX,
                      "Sample from the K most probable tokens; 0: from all; default: 50");
  command.OptionalFloat("--top-p", &options->top_p,
                        "Sample from the most probable tokens that have this probability together");
  command.OptionalSeed("--seed", &options->seed,
                       "Sample; the same seed gives the same output. Default: 0");
}

}  // namespace attend::tools
