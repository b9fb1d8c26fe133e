// attend attention: who looks at whom.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "attend/attention.h"
#include "attend/text.h"
#include "tools/attention_picture.h"
#include "tools/commands.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"
#include "tools/raw_lines.h"
#include "tools/stream.h"
#include "tools/texts.h"
#include "tools/whole_file.h"

namespace attend::tools {
namespace {

constexpr int32_t kNotGiven = -1;
constexpr size_t kMaxPairsInPicture = 4000000;  // a file of some 20 MB

struct AttentionOptions {
  ModelOptions model;
  TextOptions texts;
  std::string output;
  std::string part;  // "self", "decoder" or "cross"; empty: cross where there is one
  int32_t layer = kNotGiven;
  int32_t head = kNotGiven;
  bool pair = false;
  bool raw = false;
};

// One sequence, as the model reads it, with a name for every position.
struct Sequence {
  std::string title;
  std::vector<std::string> tokens;
  std::vector<std::string> written;  // of an encoder-decoder
  RawItem item;
  bool truncated = false;
};

// Makes sequences of texts, as the command of the model's task does.
class Reader {
 public:
  static Result<Reader> Create(const Model& model, const AttentionOptions& options) {
    Reader reader(model, options);
    if (options.raw) return reader;
    const PipelineOptions pipeline = PipelineOptionsOf(options.model, model);
    if (model.info().task == Task::kTokens && !options.pair) {
      Result<Tagger> tagger = Tagger::Create(model, pipeline);
      if (!tagger.ok()) return tagger.status();
      reader.tagger_ = std::make_shared<Tagger>(*std::move(tagger));
      return reader;
    }
    Result<Tokenizer> tokenizer = Tokenizer::FromModel(model);
    if (!tokenizer.ok()) {
      if (tokenizer.status().code() != ErrorCode::kNotFound) return tokenizer.status();
      return Status(ErrorCode::kUnsupported, "the model has no tokenizer", "model",
                    "give token ids or vectors with --raw, as `attend run` takes them");
    }
    reader.tokenizer_ = std::make_shared<Tokenizer>(*std::move(tokenizer));
    return reader;
  }

  Result<Sequence> Read(const TextItem& text) const {
    Result<Encoding> encoding = Encode(text);
    if (!encoding.ok()) return encoding.status();
    Sequence sequence;
    sequence.title = options_.pair ? text.text + " | " + text.pair : text.text;
    sequence.tokens = std::move(encoding->tokens);
    sequence.item.length = encoding->ids.size();
    sequence.item.ids = std::move(encoding->ids);
    if (model_.info().type_vocab_size > 0) sequence.item.type_ids = std::move(encoding->type_ids);
    sequence.truncated = encoding->truncated;
    return sequence;
  }

  // Raw positions are known by their ids, or of vectors by their numbers.
  Sequence Read(const RawItem& item) const {
    Sequence sequence;
    sequence.title = item.where;
    sequence.item = item;
    for (size_t i = 0; i < item.length; ++i) {
      sequence.tokens.push_back(
          std::to_string(item.vectors ? static_cast<int32_t>(i) : item.ids[i]));
    }
    for (const int32_t id : item.decoder_ids) sequence.written.push_back(std::to_string(id));
    return sequence;
  }

 private:
  Reader(const Model& model, const AttentionOptions& options) : model_(model), options_(options) {}

  Result<Encoding> Encode(const TextItem& text) const {
    if (tagger_ != nullptr) return tagger_->Encode(text.text);
    const int32_t limit =
        options_.model.max_length > 0 ? options_.model.max_length : model_.info().max_length;
    EncodeOptions encode;
    encode.max_tokens = options_.model.truncate ? limit : 0;
    Result<Encoding> encoding = options_.pair ? tokenizer_->EncodePair(text.text, text.pair, encode)
                                              : tokenizer_->Encode(text.text, encode);
    if (encoding.ok() && limit > 0 && encoding->ids.size() > static_cast<size_t>(limit)) {
      return Status(ErrorCode::kCapacity,
                    "the text has " + std::to_string(encoding->ids.size()) +
                        " tokens; the model takes at most " + std::to_string(limit),
                    "text", "shorten it, or allow it to be cut (--truncate)");
    }
    return encoding;
  }

  Model model_;
  AttentionOptions options_;
  std::shared_ptr<Tagger> tagger_;
  std::shared_ptr<Tokenizer> tokenizer_;
};

// The layers and heads asked for, or all. Errors: kInvalidArgument (there is no such one).
Status Choose(int32_t asked, int32_t count, const char* option, const char* what,
              std::vector<int32_t>* chosen) {
  if (asked >= count) {
    return Status(ErrorCode::kInvalidArgument,
                  std::string("there is no ") + what + " " + std::to_string(asked) +
                      "; the model has 0 to " + std::to_string(count - 1),
                  option);
  }
  for (int32_t i = 0; i < count; ++i) {
    if (asked == kNotGiven || asked == i) chosen->push_back(i);
  }
  return {};
}

// Columns of the terminal; without one, a page.
int64_t OutputWidth() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int64_t width = columns == nullptr ? 0 : std::strtol(columns, nullptr, 10);
  return width > 0 ? width : 100;
}

class AttentionCommand {
 public:
  AttentionCommand(const Model& model, Reader reader, const AttentionOptions& options,
                   Console* console)
      : model_(model), reader_(std::move(reader)), options_(options), console_(console) {}

  template <typename Item>
  Status ShowAll(std::span<const Item> items) {
    if (!options_.output.empty() && (shown_ || items.size() > 1)) {
      shown_ = true;  // also where the items are tried again one by one
      return Status(ErrorCode::kInvalidArgument, "a file shows one text, and there are more",
                    "--output", "give one text, or leave out --output");
    }
    for (const Item& item : items) ATTEND_RETURN_IF_ERROR(ShowOne(item));
    return {};
  }

 private:
  Status ShowOne(const TextItem& text) {
    Result<Sequence> sequence = reader_.Read(text);
    return sequence.ok() ? Show(*sequence) : sequence.status();
  }
  Status ShowOne(const RawItem& item) { return Show(reader_.Read(item)); }

  Result<AttentionRun> Run(const RawItem& item) {
    const int32_t length = static_cast<int32_t>(std::max(item.length, item.decoder_ids.size()));
    if (!map_ || length > capacity_) {
      Result<AttentionMap> map = AttentionMap::Create(
          model_, {.max_tokens = std::max(length, 1),
                   .max_edges = static_cast<int32_t>(item.edges.size()),
                   .precision = PipelineOptionsOf(options_.model, model_).session.precision,
                   .trace = options_.model.trace->get()});
      if (!map.ok()) return map.status();
      map_.emplace(*std::move(map));
      capacity_ = length;
    }
    const std::vector<int32_t> offsets = {0, static_cast<int32_t>(item.length)};
    std::vector<int32_t> decoder_offsets, edge_offsets;
    if (IsEncoderDecoder(model_.info())) {
      decoder_offsets = {0, static_cast<int32_t>(item.decoder_ids.size())};
    }
    if (item.has_edges) edge_offsets = {0, static_cast<int32_t>(item.edges.size())};
    if (item.vectors) {
      return map_->Run(VectorBatch{.rows = item.rows,
                                   .offsets = offsets,
                                   .edges = item.edges,
                                   .edge_offsets = edge_offsets});
    }
    return map_->Run(TokenBatch{.ids = item.ids,
                                .offsets = offsets,
                                .type_ids = item.type_ids,
                                .decoder_ids = item.decoder_ids,
                                .decoder_offsets = decoder_offsets,
                                .edges = item.edges,
                                .edge_offsets = edge_offsets});
  }

  Status Show(const Sequence& sequence) {
    Result<AttentionRun> run = Run(sequence.item);
    if (!run.ok()) return run.status();
    AttentionPicture picture;
    picture.title = sequence.title;
    const bool has_cross = run->cross.layers > 0;
    const bool cross = options_.part == "cross" || (options_.part.empty() && has_cross);
    const bool written = cross || options_.part == "decoder";
    picture.keys = written && !cross ? sequence.written : sequence.tokens;
    picture.queries = written ? sequence.written : sequence.tokens;
    const AttentionWeights& shown = cross ? run->cross : written ? run->decoder : run->self;
    if (shown.layers == 0) {
      return Status(ErrorCode::kUnsupported,
                    written ? "the model has no decoder behind an encoder"
                            : "the model has no layers, so nobody looks at anybody",
                    written ? "--part" : "model");
    }
    ATTEND_RETURN_IF_ERROR(
        Choose(options_.layer, shown.layers, "--layer", "layer", &picture.layer_numbers));
    ATTEND_RETURN_IF_ERROR(
        Choose(options_.head, shown.heads, "--head", "head", &picture.head_numbers));
    for (const int32_t layer : picture.layer_numbers) {
      for (const int32_t head : picture.head_numbers) {
        const std::span<const float> weights = shown.Head(layer, head);
        picture.weights.insert(picture.weights.end(), weights.begin(), weights.end());
      }
    }
    picture.layer = static_cast<int32_t>(picture.layers()) - 1;  // the last, if none was chosen
    picture.head = picture.heads() == 1 ? 0 : kMeanOfHeads;
    if (console_->json) PrintJson(picture, sequence);
    if (!options_.output.empty()) return WritePicture(picture);
    if (!console_->json) PrintPlain(picture);
    return {};
  }

  void PrintPlain(const AttentionPicture& picture) {
    const auto paint = [this](std::string_view text, std::string_view sgr) {
      return console_->Paint(text, sgr);
    };
    if (shown_) console_->out().Write("\n");
    shown_ = true;
    console_->out().Write(DrawInTerminal(picture, OutputWidth(), paint));
  }

  void PrintJson(const AttentionPicture& picture, const Sequence& sequence) {
    JsonWriter writer;
    writer.BeginObject().Key("tokens").BeginArray();
    for (const std::string& token : sequence.tokens) writer.String(token);
    writer.EndArray();
    if (!sequence.written.empty()) {
      writer.Key("written").BeginArray();
      for (const std::string& token : sequence.written) writer.String(token);
      writer.EndArray();
    }
    if (options_.layer != kNotGiven) writer.Key("layer").Int(options_.layer);
    if (options_.head != kNotGiven) writer.Key("head").Int(options_.head);
    if (sequence.truncated) writer.Key("truncated").Bool(true);
    writer.Key("layers").BeginArray();
    const size_t columns = picture.keys.size();
    std::span<const float> rows = picture.weights;
    for (size_t layer = 0; layer < picture.layers(); ++layer) {
      writer.BeginArray();
      for (size_t head = 0; head < picture.heads(); ++head) {
        writer.BeginArray();
        for (size_t i = 0; i < picture.queries.size(); ++i) {
          writer.Floats(rows.first(columns));
          rows = rows.subspan(columns);
        }
        writer.EndArray();
      }
      writer.EndArray();
    }
    writer.EndArray().EndObject().EndLine();
    console_->out().Write(writer.text());
  }

  Status WritePicture(const AttentionPicture& picture) {
    shown_ = true;
    if (picture.weights.size() > kMaxPairsInPicture) {
      return Status(ErrorCode::kCapacity,
                    "the picture would have " + std::to_string(picture.weights.size()) +
                        " weights; at most " + std::to_string(kMaxPairsInPicture) + " are drawn",
                    "--output", "choose a --layer or a --head, or give a shorter text");
    }
    return WriteWholeFile(
        options_.output, options_.output.ends_with(".html") ? DrawHtml(picture) : DrawSvg(picture));
  }

  Model model_;
  Reader reader_;
  AttentionOptions options_;
  Console* console_;
  std::optional<AttentionMap> map_;
  int32_t capacity_ = 0;
  bool shown_ = false;
};

int RunAttention(const AttentionOptions& options, const Program::Arguments& arguments,
                 Console* console) {
  const std::string& output = options.output;
  if (!output.empty() && !output.ends_with(".svg") && !output.ends_with(".html")) {
    return console->FailUsage("pictures are .svg or .html files", output,
                              "name one, as in --output picture.svg");
  }
  if (options.raw && !arguments.empty()) {
    return console->FailUsage("with --raw, sequences come from standard input", "--raw",
                              "attend attention --raw -m FILE < LINES");
  }
  if (const int code = ApplyOptions(options.model, console); code != kExitOk) return code;
  Result<Model> model = LoadModel(options.model, "pos-en.attend", "attention");
  if (!model.ok()) return console->Fail(model.status());
  if (IsEncoderDecoder(model->info()) && !options.raw) {
    return console->Fail(
        Status(ErrorCode::kUnsupported, "the model answers a text with another one", "model",
               "give the ids of both with --raw, as {\"ids\": [...], \"decoder_ids\": [...]}"));
  }
  Result<Reader> reader = Reader::Create(*model, options);
  if (!reader.ok()) return console->Fail(reader.status());
  AttentionCommand command(*model, *std::move(reader), options, console);
  if (options.raw) {
    RawSource source(model->info(), 1, 1);
    return Stream<RawItem>(&source, console,
                           [&](std::span<const RawItem> items) { return command.ShowAll(items); });
  }
  TextSource source(arguments, options.texts);
  return Stream<TextItem>(&source, console,
                          [&](std::span<const TextItem> items) { return command.ShowAll(items); });
}

}  // namespace

void AddAttention(Program* program) {
  auto options = std::make_shared<AttentionOptions>();
  Command command =
      program->Add("attention", "Who looks at whom: attention weights as a picture", "[TEXT...]", 0,
                   -1, [options](const Program::Arguments& arguments, Console* console) {
                     if (options->pair) options->texts.shape = LineShape::kPair;
                     options->texts.SetBatch(options->model.batch_tokens);
                     return RunAttention(*options, arguments, console);
                   });
  AddModelOptions(&command, &options->model);
  AddLengthOptions(&command, &options->model, /*with_truncate=*/true);
  AddInputOption(&command, &options->texts);
  command.Int("--layer", &options->layer, 0, 1 << 20,
              "One layer, counted from 0; default: all, and of those the last one large");
  command.Int("--head", &options->head, 0, 1 << 20,
              "One head, counted from 0; default: all, and the mean over them large");
  command.Text("--output", &options->output, "FILE",
               "A picture of all of them: FILE.svg or FILE.html");
  command.Choice("--part", &options->part, "NAME", {"self", "decoder", "cross"},
                 "Of an encoder-decoder: the source over itself, what was written over itself, or "
                 "over the source (default)");
  command.Flag("--pair", &options->pair, "Every line is two texts with a TAB between them");
  command.Flag("--raw", &options->raw,
               "Lines are objects of ids or vectors, and edges, as `attend run` takes them");
}

}  // namespace attend::tools
