// Create compiles and takes memory; Run checks the batch and lets the threads walk the plan over
// it.
#include "engine/session.h"

#include <algorithm>
#include <string>

#include "attend/trace.h"
#include "engine/check.h"
#include "engine/models/models.h"
#include "engine/session_log.h"
#include "engine/text/guard.h"
#include "kernels/isa.h"

namespace attend {
namespace {

Status CheckOptions(const SessionOptions& options) {
  const auto in_range = [](int64_t value, int64_t low, int64_t high, const char* name) {
    return CheckOption("SessionOptions", name, value, low, high);
  };
  ATTEND_RETURN_IF_ERROR(in_range(options.num_threads, 0, 1024, "num_threads"));
  ATTEND_RETURN_IF_ERROR(in_range(options.max_tokens, 1, 1 << 22, "max_tokens"));
  ATTEND_RETURN_IF_ERROR(in_range(options.max_sequences, 1, 1 << 20, "max_sequences"));
  ATTEND_RETURN_IF_ERROR(in_range(options.max_edges, 0, INT32_MAX, "max_edges"));
  // An enum may come from a caller's integer.
  ATTEND_RETURN_IF_ERROR(in_range(static_cast<int64_t>(options.precision), 0, 3, "precision"));
  ATTEND_RETURN_IF_ERROR(in_range(static_cast<int64_t>(options.backend), 0, 3, "backend"));
  return in_range(static_cast<int64_t>(options.share), 0, 3, "share");
}

// How many edges a run may bring, if the model takes any.
int32_t MaxEdges(const SessionOptions& options, const ModelConfig& config) {
  if (!config.edges) return 0;
  if (options.max_edges > 0) return options.max_edges;
  const int64_t tokens = options.max_tokens;
  const int64_t usual = std::max(int64_t{1} << 22, 64 * tokens);
  return static_cast<int32_t>(std::min(tokens * tokens, usual));
}

Output MakeOutput(const SessionData& data, Share share) {
  const PlanRunner& runner = data.runner;
  Output output;
  output.hidden = runner.View(runner.plan().hidden, data.batch);
  output.pooled = runner.View(runner.plan().pooled, data.batch);
  output.logits = runner.View(runner.plan().logits, data.batch);
  output.share = share;
  if (data.decoder == nullptr) return output;
  const SessionDecoder& decoder = *data.decoder;
  output.encoder_hidden = output.hidden;
  output.hidden = decoder.runner.View(decoder.runner.plan().hidden, decoder.batch);
  output.logits = decoder.runner.View(decoder.runner.plan().logits, decoder.batch);
  return output;
}

Result<Output> RunBatch(SessionData& data, StopSignal* stop) {
  if (data.telemetry != nullptr) data.telemetry->Begin();
  const TraceScope run(data.trace.buffer, data.trace.run, data.batch.tokens, data.batch.sequences);
  const auto stopped = [stop] { return stop != nullptr && stop->stopped; };
  Share share = data.runner.Run(data.batch, &data.workers, stop);
  if (data.decoder != nullptr && !stopped()) {
    share = data.decoder->runner.Run(data.decoder->batch, &data.workers, stop);
  }
  if (!stopped()) {
    Output output = MakeOutput(data, share);
    if (data.telemetry != nullptr) {
      output.telemetry = data.telemetry->End(
          {.tokens = data.batch.tokens,
           .decoder_tokens = data.decoder != nullptr ? data.decoder->batch.tokens : 0,
           .sequences = data.batch.sequences,
           .num_threads = data.workers.told,
           .share = share});
    }
    return output;
  }
  return WithoutExceptions("Session", []() -> Result<Output> {
    return Status(ErrorCode::kCancelled, "the run was cancelled", "Session");
  });
}

template <typename Batch>
Result<Output> RunChecked(const Batch& batch, StopSignal* stop, SessionData* data) {
  if (data == nullptr) return MovedFrom("Session");
  // Running allocates nothing, but saying what is wrong with a batch does. (Moved, not copied.)
  Status status = WithoutExceptions("Session", [&] { return CheckBatch(batch, data); });
  if (!status.ok()) return status;
  return RunBatch(*data, stop);
}

// Compiles a graph that `build` writes, and takes the plan's memory.
template <typename Build>
Status MakeRunner(const ModelConfig& config, const PlanLimits& limits, const Build& build,
                  SessionData* data, PlanRunner* runner, MemoryTally* tally) {
  Graph graph(config, data->model->weights.get(), limits.tokens, data->options.precision);
  if (AttentionRecorder* const recorder = data->recorder.get(); recorder != nullptr) {
    graph.set_recorded(runner == &data->runner
                           ? RecordedMaps{.self = &recorder->self}
                           : RecordedMaps{.self = &recorder->decoder, .cross = &recorder->cross});
  }
  ATTEND_RETURN_IF_ERROR(build(graph));
  return runner->Create(std::move(graph), limits, data->options.num_threads, tally);
}

Status MakeEncoderDecoder(const PlanLimits& limits, SessionData* data, MemoryTally* tally) {
  const ModelConfig encoder = EncoderSide(data->model->config);
  const ModelConfig decoder = DecoderSide(data->model->config);
  data->decoder = std::make_unique<SessionDecoder>();
  SessionDecoder& part = *data->decoder;
  ATTEND_RETURN_IF_ERROR(MakeRunner(
      encoder, limits, [&](Graph& graph) { return BuildSource(graph, decoder); }, data,
      &data->runner, tally));
  ATTEND_RETURN_IF_ERROR(MakeRunner(
      decoder, limits, [](Graph& graph) { return BuildDecoder(graph, {.has_source = true}); }, data,
      &part.runner, tally));
  TakeStates(data->runner.StatesIn(Memory::kSource), data->runner.key_rows(), &part.source, tally);
  data->runner.Attach(Memory::kSource, part.source);
  part.runner.Attach(Memory::kSource, part.source);
  part.arrays.Size(limits.tokens, limits.sequences, tally);
  return Status();
}

// What the session runs is noted in `buffer`.
void StartTrace(TraceBuffer* buffer, SessionData* data) {
  data->trace = {.buffer = buffer, .run = buffer->Name("run")};
  data->runner.set_trace(buffer);
  if (data->decoder != nullptr) data->decoder->runner.set_trace(buffer);
}

// Compiles the plan and takes, or only counts, all memory that it and the options call for.
Result<std::unique_ptr<SessionData>> MakeSession(const Model& model, SessionOptions options,
                                                 std::unique_ptr<AttentionRecorder> recorder,
                                                 bool counts_only) {
  ATTEND_RETURN_IF_ERROR(CheckOptions(options));
  if (options.num_threads == 0) options.num_threads = AdviseThreads().num_threads;
  auto data = std::make_unique<SessionData>();
  data->model = model.shared();
  data->options = options;
  data->recorder = std::move(recorder);
  data->options.max_edges = MaxEdges(options, data->model->config);
  const PlanLimits limits = {.tokens = options.max_tokens,
                             .sequences = options.max_sequences,
                             .keys = LongestSequence(data->model->config, options.max_tokens)};
  MemoryTally tally{.bytes = sizeof(SessionData), .counts_only = counts_only};
  const ModelConfig& config = data->model->config;
  ATTEND_RETURN_IF_ERROR(IsEncoderDecoder(config) ? MakeEncoderDecoder(limits, data.get(), &tally)
                                                  : MakeRunner(config, limits, &BuildGraph,
                                                               data.get(), &data->runner, &tally));
  const PlanRunner* const runners[] = {&data->runner,
                                       data->decoder ? &data->decoder->runner : nullptr};
  data->workers.Allocate(options.num_threads, options.share,
                         std::span(runners).first(data->decoder ? 2 : 1), &tally);
  if (!tally.ok) {
    return Status(ErrorCode::kCapacity,
                  "no memory for a session of " + std::to_string(tally.bytes) + " bytes",
                  "SessionOptions", "lower max_tokens or max_sequences");
  }
  data->arrays.Size(options.max_tokens, options.max_sequences, &tally);
  if (data->model->config.edges) {
    tally.Size(options.max_tokens + 1, &data->edge_offsets);
    tally.Size(data->options.max_edges, &data->edge_keys);
  }
  if (data->recorder != nullptr) {
    data->recorder->Allocate(kTileRows);
    tally.bytes += data->recorder->bytes();
  }
  if (options.telemetry) {
    PlanRunner* const plans[] = {&data->runner, data->decoder ? &data->decoder->runner : nullptr};
    const auto all = std::span(plans).first(data->decoder ? 2 : 1);
    tally.bytes += SessionTelemetry::Bytes(all, options.num_threads);
    if (!counts_only) {
      data->telemetry = std::make_unique<SessionTelemetry>(all, options.num_threads);
    }
  }
  data->memory_bytes = tally.bytes;
  if (options.trace != nullptr && !counts_only) StartTrace(options.trace->buffer(), data.get());
  return data;
}

}  // namespace

Result<Output> RunUntil(const TokenBatch& batch, StopSignal* stop, SessionData* data) {
  return RunChecked(batch, stop, data);
}

Result<Output> RunUntil(const VectorBatch& batch, StopSignal* stop, SessionData* data) {
  return RunChecked(batch, stop, data);
}

Result<Session> Session::Create(const Model& model, const SessionOptions& options) {
  return Create(model, options, nullptr);
}

Result<Session> Session::Create(const Model& model, const SessionOptions& options,
                                std::unique_ptr<AttentionRecorder> recorder) {
  try {
    const OneOpenMpThread guard;  // primitives are made as they will run
    Result<std::unique_ptr<SessionData>> data =
        MakeSession(model, options, std::move(recorder), false);
    if (!data.ok()) return data.status();
    ATTEND_RETURN_IF_ERROR((*data)->workers.Start(options.backend, options.executor));
    const std::string limits = std::to_string(options.max_tokens) + " tokens in at most " +
                               std::to_string(options.max_sequences) + " sequences";
    TellSession(
        options.logger,
        {model.data(), options.precision, options.num_threads, (*data)->memory_bytes, limits},
        &(*data)->workers);
    return Session(std::move(*data));
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "no memory for the session", "Session::Create");
  }
}

Result<size_t> Session::PredictMemoryBytes(const Model& model, const SessionOptions& options) {
  return WithoutExceptions("Session", [&]() -> Result<size_t> {
    const OneOpenMpThread guard;
    const size_t packed = model.data().weights->packed_bytes();
    Result<std::unique_ptr<SessionData>> data = MakeSession(model, options, nullptr, true);
    if (!data.ok()) return data.status();
    return (*data)->memory_bytes + model.data().weights->packed_bytes() - packed;
  });
}

Session::Session(std::unique_ptr<SessionData> data) : data_(std::move(data)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Output> Session::Run(const TokenBatch& batch, const std::atomic<bool>* cancel) {
  StopSignal stop{.cancel = cancel};
  return RunChecked(batch, cancel == nullptr ? nullptr : &stop, data_.get());
}

Result<Output> Session::Run(const VectorBatch& batch, const std::atomic<bool>* cancel) {
  StopSignal stop{.cancel = cancel};
  return RunChecked(batch, cancel == nullptr ? nullptr : &stop, data_.get());
}

size_t Session::memory_bytes() const { return data_->memory_bytes; }
size_t Session::weight_bytes() const { return data_->model->weights->packed_bytes(); }
int Session::num_threads() const { return data_->workers.count(); }

std::string Session::Describe() const {
  return std::string("ISA ") + IsaName(BoundIsa()) + ", precision " +
         Name(EffectivePrecision(data_->options.precision, data_->model->config)) + ", " +
         std::to_string(num_threads()) + " threads by " + data_->workers.threads->name() + ", " +
         std::to_string(memory_bytes()) + " bytes, weights " + std::to_string(weight_bytes()) +
         " bytes\n" + data_->runner.plan().Describe() +
         (data_->decoder == nullptr ? "" : "decoder\n" + data_->decoder->runner.plan().Describe());
}

}  // namespace attend
