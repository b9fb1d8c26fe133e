// Two plans over one set of threads: the encoder's, which leaves keys and values of its output for
// every layer of the decoder, and the decoder's, whose attention states are a cache of blocks.
#include "engine/decoder.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "attend/trace.h"
#include "engine/cache.h"
#include "engine/check.h"
#include "engine/models/models.h"
#include "engine/session.h"
#include "engine/session_log.h"
#include "engine/telemetry.h"
#include "kernels/isa.h"

namespace attend {
namespace {

constexpr int32_t kUsualLength = 512;  // of rows and sources, where the caller does not say
constexpr int64_t kPassTokens = 512;   // of prompts and sources, where no single one is longer
constexpr int32_t kMaxDecodeRows = 1 << 16;
constexpr int32_t kMaxDecodeLength = 1 << 20;
constexpr int64_t kMaxBlocks =
    1 << 24;  // of the cache; their books are kept in memory of their own

constexpr int Index(Memory memory) { return static_cast<int>(memory); }

// The options with what they leave open filled in.
Result<DecodeOptions> Complete(DecodeOptions options, const ModelConfig& config) {
  const auto check = [](int64_t value, int64_t low, int64_t high, const char* name,
                        const char* why = "") {
    return CheckOption("DecodeOptions", name, value, low, high, why);
  };
  ATTEND_RETURN_IF_ERROR(check(options.num_threads, 0, 1024, "num_threads"));
  ATTEND_RETURN_IF_ERROR(check(options.max_rows, 1, kMaxDecodeRows, "max_rows"));
  ATTEND_RETURN_IF_ERROR(check(static_cast<int64_t>(options.precision), 0, 3, "precision"));
  if (options.num_threads == 0) options.num_threads = AdviseThreads().num_threads;
  const bool bounded = config.max_length > 0;
  const int64_t longest = bounded ? config.max_length : kMaxDecodeLength;
  const char* why = bounded ? ", what the model's positions reach" : "";
  for (const auto& [field, name] : {std::pair{&options.max_length, "max_length"},
                                    std::pair{&options.max_source_tokens, "max_source_tokens"}}) {
    ATTEND_RETURN_IF_ERROR(check(*field, 0, longest, name, why));
    if (*field == 0) *field = static_cast<int32_t>(std::min<int64_t>(kUsualLength, longest));
  }
  const int64_t row_blocks = RoundUp<int64_t>(options.max_length, kKeyBlock) / kKeyBlock;
  if (options.max_rows > kMaxBlocks / row_blocks) {
    return Status(ErrorCode::kCapacity,
                  "max_rows " + std::to_string(options.max_rows) + " and max_length " +
                      std::to_string(options.max_length) + " need " +
                      std::to_string(options.max_rows * row_blocks) +
                      " blocks of keys, allowed are " + std::to_string(kMaxBlocks),
                  "DecodeOptions");
  }
  if (!IsEncoderDecoder(config)) {
    options.max_sources = 0;
    options.max_source_tokens = 0;
    return options;
  }
  if (options.max_sources == 0) options.max_sources = options.max_rows;
  ATTEND_RETURN_IF_ERROR(
      check(options.max_sources, 1, options.max_rows, "max_sources", ", the rows"));
  return options;
}

// [0, ..., end] with `count` + 1 entries, of sequences of 1 to `longest` tokens.
Status CheckSequences(std::span<const int32_t> ids, std::span<const int32_t> offsets, size_t count,
                      int64_t longest, const std::string& name) {
  const std::string array = name.empty() ? "offsets" : name + "_offsets";
  if (offsets.size() != count + 1) {
    return Invalid("there are " + std::to_string(offsets.size()) + " entries, expected " +
                       std::to_string(count + 1) + ", one more than rows",
                   array);
  }
  if (offsets.front() != 0 || static_cast<size_t>(offsets.back()) != ids.size()) {
    return Invalid("they go from " + std::to_string(offsets.front()) + " to " +
                       std::to_string(offsets.back()) + ", expected 0 to " +
                       std::to_string(ids.size()) + ", the number of ids",
                   array);
  }
  for (size_t b = 0; b < count; ++b) {
    const int64_t length = static_cast<int64_t>(offsets[b + 1]) - offsets[b];
    if (length < 1) {
      return Invalid(
          "the sequence has " + std::to_string(length) + " tokens, expected at least one",
          At(array, b + 1));
    }
    if (length <= longest) continue;
    return Status(ErrorCode::kCapacity,
                  "the sequence has " + std::to_string(length) + " tokens, the session takes " +
                      std::to_string(longest),
                  At(array, b + 1),
                  name.empty() ? "raise DecodeOptions::max_length"
                               : "raise DecodeOptions::max_source_tokens");
  }
  return Status();
}

Status CheckIds(std::span<const int32_t> ids, int64_t vocab_size, const char* array) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    return Invalid("the id is " + std::to_string(ids[i]) + ", allowed are 0 to " +
                       std::to_string(vocab_size - 1),
                   At(array, i));
  }
  return Status();
}

// What a BatchView points to, with room for the largest pass.
class BatchRoom {
 public:
  void Create(int64_t tokens, int64_t sequences, MemoryTally* tally) {
    tally->Size(tokens, &ids_);
    tally->Size(tokens, &positions_);
    tally->Size(tokens, &sequence_of_);
    tally->Size(sequences + 1, &offsets_);
    for (std::vector<SequenceKeys>& keys : keys_) tally->Size(sequences, &keys);
    view_.ids = ids_.data();
    view_.positions = positions_.data();
    view_.sequence_of = sequence_of_.data();
    view_.offsets = offsets_.data();
    for (int m = 0; m < kMemories; ++m) view_.keys[m] = keys_[m].data();
  }

  void Clear() { view_.tokens = view_.sequences = 0; }
  int64_t tokens() const { return view_.tokens; }
  int64_t sequences() const { return view_.sequences; }
  const BatchView& view() const { return view_; }

  // Adds tokens of one sequence, the first of them at `position`.
  void Add(std::span<const int32_t> ids, int64_t position) {
    for (const int32_t id : ids) {
      const int64_t at = view_.tokens++;
      ids_[at] = id;
      positions_[at] = static_cast<int32_t>(position++);
      sequence_of_[at] = static_cast<int32_t>(view_.sequences);
    }
    offsets_[++view_.sequences] = static_cast<int32_t>(view_.tokens);
  }
  // The keys in `memory` of the sequence that was added last.
  void SetKeys(Memory memory, const SequenceKeys& keys) {
    keys_[Index(memory)][view_.sequences - 1] = keys;
  }

 private:
  std::vector<int32_t> ids_, positions_, sequence_of_, offsets_;
  std::vector<SequenceKeys> keys_[kMemories];
  BatchView view_;
};

}  // namespace

struct DecodeSessionData {
  DecodeSessionData(const Model& of, const DecodeOptions& with) : model(of), options(with) {}

  Status Compile();
  Status CompileEncoder(MemoryTally* tally);
  Status CheckStart(const DecodeStart& start);
  Status CheckRows(std::span<const int32_t> named, std::optional<bool> alive);
  Status CheckStep(std::span<const int32_t> rows, std::span<const int32_t> parents,
                   std::span<const int32_t> ids);
  void Encode(const DecodeStart& start);
  void Prefill(const DecodeStart& start);
  // Adds tokens of `row`, of which `cached` are there already, to the decoder's batch.
  void AddRow(int64_t row, std::span<const int32_t> ids, int64_t cached);
  // Runs the decoder's batch; the logits behind the last token of each of its sequences.
  std::span<const float> Decode();
  void CopyBlocks(std::span<const BlockCopy> copies);
  void MakeTelemetry(MemoryTally* tally);
  // Calls `function`, which runs the plans: one run for trace and telemetry.
  template <typename Function>
  void AsOneRun(TimedRun run, const Function& function);

  Model model;
  DecodeOptions options;
  bool has_encoder = false;
  int64_t vocab_size = 0;
  int64_t source_rows = 0;  // of keys, that a source has room for
  Workers workers;
  PlanRunner encoder, decoder;
  std::vector<KeyMemory> cache_states, source_states;  // by layer
  std::vector<int64_t> cache_columns;                  // by layer; keys are as wide as values
  RowCache rows;
  std::vector<int32_t> source_lengths, start_sources;
  std::vector<char> marks;  // by row, for checks
  BatchRoom batch, sources;
  std::vector<int64_t> finished;  // by sequence of a pass: the place of its logits, or -1
  AlignedFloats start_logits;     // [max_rows, V]
  DecodeWork work;
  size_t memory_bytes = 0;
  Share last_share = Share::kAuto;          // of the decoder's last pass
  int32_t run_name = 0;                     // in options.trace
  std::unique_ptr<SessionTelemetry> timer;  // if options.telemetry
  const Telemetry* telemetry = nullptr;     // what it said last
};

void DecodeSessionData::MakeTelemetry(MemoryTally* tally) {
  PlanRunner* const runners[] = {&encoder, &decoder};
  const auto all = std::span(runners).subspan(has_encoder ? 0 : 1);
  tally->bytes += SessionTelemetry::Bytes(all, options.num_threads);
  timer = std::make_unique<SessionTelemetry>(all, options.num_threads);
}

template <typename Function>
void DecodeSessionData::AsOneRun(TimedRun run, const Function& function) {
  if (timer != nullptr) timer->Begin();
  {
    // A step has a token of each row.
    const bool starts = run.sequences > 0;
    const TraceScope span(options.trace == nullptr ? nullptr : options.trace->buffer(), run_name,
                          starts ? run.tokens : run.decoder_tokens,
                          starts ? run.sequences : run.decoder_tokens);
    function();
  }
  if (timer == nullptr) return;
  run.share = last_share;
  run.num_threads = workers.told;
  telemetry = timer->End(run);
}

Status DecodeSessionData::CompileEncoder(MemoryTally* tally) {
  const ModelConfig& config = model.data().config;
  const int64_t longest = options.max_source_tokens;
  const PlanLimits limits = {
      .tokens = std::max(longest, std::min(longest * options.max_sources, kPassTokens)),
      .sequences = options.max_sources,
      .keys = longest};
  const ModelConfig side = EncoderSide(config);
  Graph graph(side, model.data().weights.get(), longest, options.precision);
  ATTEND_RETURN_IF_ERROR(BuildSource(graph, DecoderSide(config)));
  ATTEND_RETURN_IF_ERROR(encoder.Create(std::move(graph), limits, options.num_threads, tally));
  source_rows = RoundUp<int64_t>(longest, kKeyBlock);
  TakeStates(encoder.StatesIn(Memory::kSource), source_rows * options.max_sources, &source_states,
             tally);
  encoder.Attach(Memory::kSource, source_states);
  sources.Create(limits.tokens, limits.sequences, tally);
  return Status();
}

Status DecodeSessionData::Compile() {
  const ModelConfig& config = model.data().config;
  vocab_size = config.vocab_size;
  has_encoder = IsEncoderDecoder(config);
  MemoryTally tally{.bytes = sizeof(DecodeSessionData)};
  if (has_encoder) ATTEND_RETURN_IF_ERROR(CompileEncoder(&tally));
  const PlanLimits limits = {
      .tokens =
          std::max<int64_t>(options.max_rows, std::min<int64_t>(options.max_length, kPassTokens)),
      .sequences = options.max_rows,
      .keys = std::max(options.max_length, options.max_source_tokens)};
  const ModelConfig side = DecoderSide(config);
  Graph graph(side, model.data().weights.get(), options.max_length, options.precision);
  ATTEND_RETURN_IF_ERROR(BuildDecoder(
      graph, {.memory = Memory::kCache, .has_source = has_encoder, .last_logits = true}));
  ATTEND_RETURN_IF_ERROR(decoder.Create(std::move(graph), limits, options.num_threads, &tally));
  rows.Create(options.max_rows, options.max_length, options.max_sources);
  const std::vector<StateInfo> states = decoder.StatesIn(Memory::kCache);
  TakeStates(states, rows.num_blocks() * kKeyBlock, &cache_states, &tally);
  for (const StateInfo& info : states) cache_columns.push_back(info.key_columns);
  decoder.Attach(Memory::kCache, cache_states);
  decoder.Attach(Memory::kSource, source_states);
  tally.Take(options.max_rows * vocab_size, &start_logits);
  const PlanRunner* const runners[] = {&decoder, &encoder};
  workers.Allocate(options.num_threads, options.share,
                   std::span(runners).first(has_encoder ? 2 : 1), &tally);
  if (!tally.ok) {
    return Status(ErrorCode::kCapacity,
                  "no memory for a session of " + std::to_string(tally.bytes) + " bytes",
                  "DecodeOptions", "lower max_rows, max_length or max_source_tokens");
  }
  batch.Create(limits.tokens, limits.sequences, &tally);
  tally.Size(options.max_sources, &source_lengths);
  tally.Size(options.max_rows, &start_sources);
  tally.Size(options.max_rows, &marks);
  tally.Size(options.max_rows, &finished);
  if (options.telemetry) MakeTelemetry(&tally);
  memory_bytes = tally.bytes + rows.bytes();
  if (options.trace != nullptr) {
    run_name = options.trace->buffer()->Name("run");
    decoder.set_trace(options.trace->buffer());
    if (has_encoder) encoder.set_trace(options.trace->buffer());
  }
  return workers.Start(options.backend, options.executor);
}

// Rows in range and named once, all alive or all not, if that matters.
Status DecodeSessionData::CheckRows(std::span<const int32_t> named, std::optional<bool> alive) {
  std::fill(marks.begin(), marks.end(), 0);
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i] < 0 || named[i] >= options.max_rows) {
      return Invalid("the row is " + std::to_string(named[i]) + ", allowed are 0 to " +
                         std::to_string(options.max_rows - 1),
                     At("rows", i));
    }
    if (std::exchange(marks[named[i]], 1) != 0) {
      return Invalid("row " + std::to_string(named[i]) + " is named twice", At("rows", i));
    }
    if (!alive || rows.alive(named[i]) == *alive) continue;
    return Invalid("row " + std::to_string(named[i]) + (*alive ? " is not alive" : " is in use"),
                   At("rows", i));
  }
  return Status();
}

Status DecodeSessionData::CheckStart(const DecodeStart& start) {
  const size_t count = start.rows.size();
  ATTEND_RETURN_IF_ERROR(CheckRows(start.rows, /*alive=*/false));
  ATTEND_RETURN_IF_ERROR(CheckSequences(start.ids, start.offsets, count, options.max_length, ""));
  ATTEND_RETURN_IF_ERROR(CheckIds(start.ids, vocab_size, "ids"));
  if (!has_encoder) {
    if (start.source_ids.empty() && start.source_offsets.empty()) return Status();
    return Invalid("a source was given, and the model has no encoder", "source_ids");
  }
  if (static_cast<int64_t>(count) > rows.free_sources()) {
    return Status(ErrorCode::kCapacity,
                  std::to_string(count) + " sequences start, and there is room for " +
                      std::to_string(rows.free_sources()) + " more sources",
                  "rows", "raise DecodeOptions::max_sources");
  }
  ATTEND_RETURN_IF_ERROR(CheckSequences(start.source_ids, start.source_offsets, count,
                                        options.max_source_tokens, "source"));
  return CheckIds(start.source_ids, vocab_size, "source_ids");
}

Status DecodeSessionData::CheckStep(std::span<const int32_t> named,
                                    std::span<const int32_t> parents,
                                    std::span<const int32_t> ids) {
  if (parents.size() != named.size() || ids.size() != named.size()) {
    return Invalid("there are " + std::to_string(named.size()) + " rows, " +
                       std::to_string(parents.size()) + " parents and " +
                       std::to_string(ids.size()) + " ids; expected as many of each",
                   "Step");
  }
  ATTEND_RETURN_IF_ERROR(CheckRows(named, std::nullopt));
  for (size_t i = 0; i < named.size(); ++i) {
    const int32_t parent = parents[i];
    if (parent < 0 || parent >= options.max_rows || !rows.alive(parent)) {
      return Invalid("row " + std::to_string(parent) + " is not alive", At("parents", i));
    }
    if (rows.length(parent) < options.max_length) continue;
    return Status(ErrorCode::kCapacity,
                  "row " + std::to_string(parent) + " has " + std::to_string(rows.length(parent)) +
                      " tokens, and the session takes no more",
                  At("parents", i), "raise DecodeOptions::max_length");
  }
  return CheckIds(ids, vocab_size, "ids");
}

// Runs the encoder over the sources, as many at a time as there is room for.
void DecodeSessionData::Encode(const DecodeStart& start) {
  const auto run = [&] {
    if (sources.sequences() > 0) encoder.Run(sources.view(), &workers);
    sources.Clear();
  };
  int64_t key_row = 0;
  sources.Clear();
  for (size_t b = 0; b < start.rows.size(); ++b) {
    const int64_t begin = start.source_offsets[b];
    const int64_t length = start.source_offsets[b + 1] - begin;
    if (sources.tokens() + length > encoder.limits().tokens) run();
    if (sources.sequences() == 0) key_row = 0;
    const int32_t source = rows.TakeSource();
    start_sources[b] = source;
    source_lengths[source] = static_cast<int32_t>(length);
    sources.Add(start.source_ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(length)),
                0);
    sources.SetKeys(Memory::kBatch, {.first_row = key_row, .count = length});
    sources.SetKeys(Memory::kSource, {.first_row = source * source_rows, .count = length});
    key_row += RoundUp(length, kKeyBlock);
  }
  run();
}

void DecodeSessionData::AddRow(int64_t row, std::span<const int32_t> ids, int64_t cached) {
  const int64_t keys = cached + static_cast<int64_t>(ids.size());
  const auto tokens = static_cast<int64_t>(ids.size());
  batch.Add(ids, cached);
  batch.SetKeys(Memory::kCache, {.blocks = rows.blocks(row), .count = keys});
  work.rows += tokens;
  work.cached_pairs += tokens * keys - tokens * (tokens - 1) / 2;
  if (!has_encoder) return;
  const int32_t source = rows.source(row);
  batch.SetKeys(Memory::kSource,
                {.first_row = source * source_rows, .count = source_lengths[source]});
  work.source_pairs += tokens * source_lengths[source];
}

std::span<const float> DecodeSessionData::Decode() {
  last_share = decoder.Run(batch.view(), &workers);
  return decoder.View(decoder.plan().logits, batch.view());
}

// Runs the decoder over the first tokens, in passes; a long prompt is cut.
void DecodeSessionData::Prefill(const DecodeStart& start) {
  const auto width = static_cast<size_t>(vocab_size);
  const auto run = [&] {
    const std::span<const float> logits = Decode();
    for (int64_t b = 0; b < batch.sequences(); ++b) {
      if (finished[b] < 0) continue;
      std::memcpy(start_logits.data() + static_cast<size_t>(finished[b]) * width,
                  logits.data() + static_cast<size_t>(b) * width, width * sizeof(float));
    }
    batch.Clear();
  };
  batch.Clear();
  for (size_t b = 0; b < start.rows.size(); ++b) {
    const int64_t begin = start.offsets[b], length = start.offsets[b + 1] - begin;
    for (int64_t done = 0; done < length;) {
      if (batch.tokens() == decoder.limits().tokens) run();
      const int64_t count = std::min(length - done, decoder.limits().tokens - batch.tokens());
      AddRow(start.rows[b],
             start.ids.subspan(static_cast<size_t>(begin + done), static_cast<size_t>(count)),
             done);
      done += count;
      finished[batch.sequences() - 1] = done == length ? static_cast<int64_t>(b) : -1;
    }
  }
  run();
}

void DecodeSessionData::CopyBlocks(std::span<const BlockCopy> copies) {
  work.copied_blocks += static_cast<int64_t>(copies.size());
  for (size_t layer = 0; layer < cache_states.size(); ++layer) {
    const int64_t floats = kKeyBlock * cache_columns[layer];
    const size_t bytes = static_cast<size_t>(floats) * sizeof(float);
    float* k = cache_states[layer].k.data();
    float* v = cache_states[layer].v.data();
    for (const BlockCopy& copy : copies) {
      std::memcpy(k + copy.to * floats, k + copy.from * floats, bytes);
      std::memcpy(v + copy.to * floats, v + copy.from * floats, bytes);
    }
  }
}

Result<DecodeSession> DecodeSession::Create(const Model& model, const DecodeOptions& options) {
  try {
    const OneOpenMpThread guard;  // primitives are made as they will run
    const ModelConfig& config = model.data().config;
    if (config.task != Task::kGenerate) {
      return Status(ErrorCode::kUnsupported,
                    std::string("the model does not generate; its task is ") + Name(config.task),
                    "DecodeSession", "give a model that was converted from one that generates");
    }
    Result<DecodeOptions> complete = Complete(options, config);
    if (!complete.ok()) return complete.status();
    auto data = std::make_unique<DecodeSessionData>(model, *complete);
    ATTEND_RETURN_IF_ERROR(data->Compile());
    const std::string limits = std::to_string(complete->max_rows) + " rows of " +
                               std::to_string(complete->max_length) + " tokens";
    TellSession(options.logger,
                {model.data(), options.precision, options.num_threads, data->memory_bytes, limits},
                &data->workers);
    return DecodeSession(std::move(data));
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "no memory for the session", "DecodeSession::Create");
  }
}

DecodeSession::DecodeSession(std::unique_ptr<DecodeSessionData> data) : data_(std::move(data)) {}
DecodeSession::DecodeSession(DecodeSession&&) noexcept = default;
DecodeSession& DecodeSession::operator=(DecodeSession&&) noexcept = default;
DecodeSession::~DecodeSession() = default;

Result<std::span<const float>> DecodeSession::Start(const DecodeStart& start) {
  DecodeSessionData& data = *data_;
  ATTEND_RETURN_IF_ERROR(data.CheckStart(start));
  if (start.rows.empty()) return std::span<const float>();
  const std::span<const int32_t> texts = data.has_encoder ? start.source_ids : start.ids;
  const TimedRun run = {.tokens = static_cast<int64_t>(texts.size()),
                        .decoder_tokens = static_cast<int64_t>(start.ids.size()),
                        .sequences = static_cast<int64_t>(start.rows.size())};
  data.AsOneRun(run, [&] {
    if (data.has_encoder) data.Encode(start);
    for (size_t b = 0; b < start.rows.size(); ++b) {
      data.rows.Start(start.rows[b], start.offsets[b + 1] - start.offsets[b],
                      data.has_encoder ? data.start_sources[b] : -1);
    }
    data.Prefill(start);
  });
  return std::span<const float>(data.start_logits.data(),
                                start.rows.size() * static_cast<size_t>(data.vocab_size));
}

Result<std::span<const float>> DecodeSession::Step(std::span<const int32_t> rows,
                                                   std::span<const int32_t> parents,
                                                   std::span<const int32_t> ids) {
  DecodeSessionData& data = *data_;
  ATTEND_RETURN_IF_ERROR(data.CheckStep(rows, parents, ids));
  data.CopyBlocks(data.rows.Continue(rows, parents));
  if (rows.empty()) return std::span<const float>();
  std::span<const float> logits;
  data.AsOneRun({.decoder_tokens = static_cast<int64_t>(rows.size())}, [&] {
    data.batch.Clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      data.AddRow(rows[i], ids.subspan(i, 1), data.rows.length(rows[i]) - 1);
    }
    logits = data.Decode();
  });
  return logits;
}

Status DecodeSession::Release(std::span<const int32_t> rows) {
  ATTEND_RETURN_IF_ERROR(data_->CheckRows(rows, /*alive=*/true));
  for (const int32_t row : rows) data_->rows.Release(row);
  return Status();
}

bool DecodeSession::alive(int32_t row) const {
  return row >= 0 && row < data_->options.max_rows && data_->rows.alive(row);
}
int64_t DecodeSession::length(int32_t row) const {
  return alive(row) ? data_->rows.length(row) : 0;
}
const Model& DecodeSession::model() const { return data_->model; }
bool DecodeSession::has_encoder() const { return data_->has_encoder; }
int64_t DecodeSession::vocab_size() const { return data_->vocab_size; }
const DecodeOptions& DecodeSession::options() const { return data_->options; }
const DecodeWork& DecodeSession::work() const { return data_->work; }
const Telemetry* DecodeSession::telemetry() const { return data_->telemetry; }
size_t DecodeSession::memory_bytes() const { return data_->memory_bytes; }
int DecodeSession::num_threads() const { return data_->workers.count(); }

std::string DecodeSession::Describe() const {
  std::string text = std::string("ISA ") + IsaName(BoundIsa()) + ", precision " +
                     Name(EffectivePrecision(options().precision, model().data().config)) + ", " +
                     std::to_string(num_threads()) + " threads by " +
                     data_->workers.threads->name() + ", " + std::to_string(memory_bytes()) +
                     " bytes\n";
  if (data_->has_encoder) text += "encoder\n" + data_->encoder.plan().Describe();
  return text + "decoder\n" + data_->decoder.plan().Describe();
}

}  // namespace attend
