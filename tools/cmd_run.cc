// attend run: raw JSON Lines in and out, for other programs.
#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>

#include "attend/attend.h"
#include "tools/commands.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"
#include "tools/npy_reader.h"
#include "tools/raw_generate.h"
#include "tools/raw_lines.h"
#include "tools/stream.h"

namespace attend::tools {
namespace {

constexpr int32_t kMaxTokens = 1 << 22;  // what a Session takes
// Of models that generate a run scores the whole vocabulary behind every token: as many tokens as
// have room for that in 512 MiB.
constexpr int64_t kMaxLogits = int64_t{1} << 27;

struct RunOptions {
  ModelOptions model;
  std::vector<std::string> want;
  std::string input;
  int32_t max_edges = 0;
};

struct Want {
  bool generated = false;
  bool encoder_hidden = false;
  bool hidden = false;
  bool pooled = false;
  bool logits = false;
};

// What is printed: what was asked for, or what the model is for.
Want WantOf(const std::vector<std::string>& names, Task task) {
  Want want;
  for (const std::string& name : names) {
    if (name == "generated") want.generated = true;
    if (name == "encoder_hidden") want.encoder_hidden = true;
    if (name == "hidden") want.hidden = true;
    if (name == "pooled") want.pooled = true;
    if (name == "logits") want.logits = true;
  }
  if (!names.empty()) return want;
  want.hidden = task == Task::kHidden;
  want.pooled = task == Task::kEmbedding;
  want.logits = task == Task::kTokens || task == Task::kSequence || task == Task::kGenerate;
  return want;
}

// A matrix with `rows` rows, as a list of lists.
void PrintRows(std::span<const float> values, size_t rows, JsonWriter* writer) {
  writer->BeginArray();
  const size_t width = rows == 0 ? 0 : values.size() / rows;
  for (size_t i = 0; i < rows; ++i) writer->Floats(values.subspan(i * width, width));
  writer->EndArray();
}

// The items end to end, as a Session takes them.
struct Batch {
  std::vector<int32_t> ids, type_ids, offsets = {0}, edge_offsets;
  std::vector<int32_t> decoder_ids, decoder_offsets;
  std::vector<float> rows;
  std::vector<Edge> edges;

  // `decoder`: every item has decoder ids, or the Session says which has not.
  Batch(std::span<const RawItem> items, bool decoder) {
    if (decoder) decoder_offsets.push_back(0);
    const bool types = std::any_of(items.begin(), items.end(),
                                   [](const RawItem& item) { return !item.type_ids.empty(); });
    if (items.front().has_edges) edge_offsets.push_back(0);
    for (const RawItem& item : items) {
      ids.insert(ids.end(), item.ids.begin(), item.ids.end());
      rows.insert(rows.end(), item.rows.begin(), item.rows.end());
      if (types) {
        type_ids.insert(type_ids.end(), item.type_ids.begin(), item.type_ids.end());
        if (item.type_ids.empty()) type_ids.insert(type_ids.end(), item.length, 0);
      }
      offsets.push_back(offsets.back() + static_cast<int32_t>(item.length));
      decoder_ids.insert(decoder_ids.end(), item.decoder_ids.begin(), item.decoder_ids.end());
      if (decoder) decoder_offsets.push_back(static_cast<int32_t>(decoder_ids.size()));
      edges.insert(edges.end(), item.edges.begin(), item.edges.end());
      if (item.has_edges) edge_offsets.push_back(static_cast<int32_t>(edges.size()));
    }
  }

  Result<Output> Run(bool vectors, Session* session) const {
    if (vectors) {
      return session->Run(VectorBatch{
          .rows = rows, .offsets = offsets, .edges = edges, .edge_offsets = edge_offsets});
    }
    return session->Run(TokenBatch{.ids = ids,
                                   .offsets = offsets,
                                   .type_ids = type_ids,
                                   .decoder_ids = decoder_ids,
                                   .decoder_offsets = decoder_offsets,
                                   .edges = edges,
                                   .edge_offsets = edge_offsets});
  }
};

Status CheckWant(const Want& want, const Output& output) {
  const auto missing = [](const char* name) {
    return Status(ErrorCode::kUnsupported, std::string("the model has no ") + name, "--want");
  };
  if (want.encoder_hidden && output.encoder_hidden.empty()) return missing("encoder_hidden");
  if (want.hidden && output.hidden.empty()) return missing("hidden");
  if (want.pooled && output.pooled.empty()) return missing("pooled");
  if (want.logits && output.logits.empty()) return missing("logits");
  return {};
}

// What is printed of one item: rows [begin, end) of an output, each `size / all` wide.
void PrintSlice(const char* key, std::span<const float> values, std::span<const int32_t> offsets,
                size_t item, JsonWriter* writer) {
  const size_t width = values.size() / static_cast<size_t>(offsets.back());
  const auto begin = static_cast<size_t>(offsets[item]);
  const size_t length = static_cast<size_t>(offsets[item + 1]) - begin;
  writer->Key(key);
  PrintRows(values.subspan(begin * width, length * width), length, writer);
}

// What a Session gives of `items`, an object a line.
Status RunItems(Session* session, const Want& want, const ModelInfo& info,
                std::span<const RawItem> items, Console* console) {
  const bool pair = IsEncoderDecoder(info);
  const Batch batch(items, pair);
  Result<Output> output = batch.Run(items.front().vectors, session);
  if (!output.ok()) return output.status();
  ATTEND_RETURN_IF_ERROR(CheckWant(want, *output));
  const std::vector<int32_t>& offsets = pair ? batch.decoder_offsets : batch.offsets;
  const size_t pooled = output->pooled.size() / items.size();
  const bool by_token = info.task == Task::kTokens || info.task == Task::kGenerate;
  const size_t logits = output->logits.size() / items.size();
  JsonWriter writer;
  for (size_t i = 0; i < items.size(); ++i) {
    writer.BeginObject();
    if (want.encoder_hidden) {
      PrintSlice("encoder_hidden", output->encoder_hidden, batch.offsets, i, &writer);
    }
    if (want.hidden) PrintSlice("hidden", output->hidden, offsets, i, &writer);
    if (want.pooled) writer.Key("pooled").Floats(output->pooled.subspan(i * pooled, pooled));
    if (want.logits && by_token) {
      PrintSlice("logits", output->logits, offsets, i, &writer);
    } else if (want.logits) {
      writer.Key("logits").Floats(output->logits.subspan(i * logits, logits));
    }
    writer.EndObject().EndLine();
  }
  console->out().Write(writer.text());
  return {};
}

// The file of --input as one sequence.
Result<RawItem> ReadItem(const std::string& path, const ModelInfo& info) {
  if (info.input_size == 0) {
    return Status(ErrorCode::kInvalidArgument, "the model takes token ids, not vectors", "--input",
                  "give {\"ids\": [...]} lines on standard input");
  }
  Result<NpyMatrix> matrix = ReadNpy(path);
  if (!matrix.ok()) return matrix.status();
  if (matrix->columns != static_cast<size_t>(info.input_size)) {
    return Status(ErrorCode::kInvalidArgument,
                  "the vectors have " + std::to_string(matrix->columns) +
                      " numbers; the model takes " + std::to_string(info.input_size),
                  path);
  }
  RawItem item;
  item.vectors = true;
  item.length = matrix->rows;
  item.rows = std::move(matrix->values);
  item.where = path;
  return item;
}

// Models that generate: lines are answered with what is generated, or with what a Session gives,
// whose memory is taken when the first such line comes.
int RunWriter(const Model& model, const RunOptions& options, const SessionOptions& session_options,
              Console* console) {
  const Want want = WantOf(options.want, model.info().task);
  if (want.generated && options.want.size() > 1) {
    return console->FailUsage("generated stands alone", "--want", "run twice");
  }
  RawGenerator generator(model, {.session = session_options});
  if (want.generated) {
    if (const Status status = generator.Prepare(); !status.ok()) return console->Fail(status);
  }
  std::optional<Session> session;
  RawSource source(model.info(), static_cast<size_t>(session_options.max_tokens),
                   static_cast<size_t>(session_options.max_sequences));
  return Stream<RawItem>(&source, console, [&](std::span<const RawItem> items) -> Status {
    // Lines that are answered by generating stand together, and so do the others.
    if (want.generated || (options.want.empty() && items.front().generates)) {
      JsonWriter writer;
      ATTEND_RETURN_IF_ERROR(generator.Run(items, &writer));
      console->out().Write(writer.text());
      return {};
    }
    if (!session.has_value()) {
      Result<Session> made = Session::Create(model, session_options);
      if (!made.ok()) return made.status();
      session = *std::move(made);
    }
    return RunItems(&*session, want, model.info(), items, console);
  });
}

int RunRun(RunOptions options, const Program::Arguments& arguments, Console* console) {
  if (options.model.model.empty() == arguments.empty()) {
    return console->FailUsage("name one model", "run", "attend run MODEL < LINES");
  }
  if (!arguments.empty()) options.model.model = arguments[0];
  if (const int code = ApplyOptions(options.model, console); code != kExitOk) return code;
  Result<Model> model = LoadModel(options.model, "", "run");
  if (!model.ok()) return console->Fail(model.status());
  const ModelInfo& info = model->info();
  SessionOptions session_options = PipelineOptionsOf(options.model, *model).session;
  session_options.max_edges = options.max_edges;
  if (info.task == Task::kGenerate) {
    const int64_t room = std::max<int64_t>(kMaxLogits / info.vocab_size, 512);
    session_options.max_tokens =
        static_cast<int32_t>(std::min<int64_t>(session_options.max_tokens, room));
    session_options.max_sequences =
        std::min(session_options.max_sequences, session_options.max_tokens);
  }
  std::vector<RawItem> file;
  if (!options.input.empty()) {
    Result<RawItem> item = ReadItem(options.input, info);
    if (!item.ok()) return console->Fail(item.status());
    // One sequence needs no more memory than itself.
    session_options.max_tokens =
        static_cast<int32_t>(std::clamp<size_t>(item->length, 1, static_cast<size_t>(kMaxTokens)));
    session_options.max_sequences = 1;
    file.push_back(*std::move(item));
  }
  const Want want = WantOf(options.want, info.task);
  if (file.empty() && (info.task == Task::kGenerate || want.generated)) {
    return RunWriter(*model, options, session_options, console);
  }
  Result<Session> session = Session::Create(*model, session_options);
  if (!session.ok()) return console->Fail(session.status());
  if (!file.empty()) {
    const Status status = ProcessAll<RawItem>(file, [&](std::span<const RawItem> items) {
      return RunItems(&*session, want, info, items, console);
    });
    return status.ok() ? console->Finish() : console->Fail(status);
  }
  RawSource source(info, static_cast<size_t>(session_options.max_tokens),
                   static_cast<size_t>(session_options.max_sequences));
  return Stream<RawItem>(&source, console, [&](std::span<const RawItem> items) {
    return RunItems(&*session, want, info, items, console);
  });
}

}  // namespace

void AddRun(Program* program) {
  auto options = std::make_shared<RunOptions>();
  Command command =
      program->Add("run", "Raw: JSON Lines of token ids or vectors in, JSON Lines out", "MODEL", 0,
                   1, [options](const Program::Arguments& arguments, Console* console) {
                     return RunRun(*options, arguments, console);
                   });
  AddModelOptions(&command, &options->model);
  command.Choices(
      "--want", &options->want, "NAMES",
      {"encoder_hidden", "hidden", "pooled", "logits", "generated"},
      "What to print, with commas; default: what the model is for: generated of lines with "
      "\"generate\", and where an encoder-decoder is given no \"decoder_ids\"");
  command.Text("--input", &options->input, "FILE.npy",
               "One sequence of vectors, [L, input_size] f32, in place of standard input");
  command.Int("--max-edges", &options->max_edges, 1, INT32_MAX,
              "Edges of one run, of models that take a graph; default: 4194304, or every pair");
}

}  // namespace attend::tools
