// The C interface: this machine, models, sessions, attention weights.
#include <atomic>

#include "attend/attention.h"
#include "engine/c_api.h"

using attend::c::Guarded;

struct attend_session {
  attend::c::Callbacks callbacks;
  attend::Session session;
  int64_t input_size = 0;
  std::string description = {};
  attend_telemetry telemetry = {};
  std::atomic<bool> cancelled = false;
};

struct attend_attention_map {
  attend::c::Callbacks callbacks;
  attend::AttentionMap map;
  int64_t input_size = 0;
};

namespace attend {
namespace c {

Status ReadSessionOptions(const attend_session_options* given, SessionSetup* out) {
  constexpr const char* kName = "attend_session_options";
  attend_session_options read = ATTEND_SESSION_OPTIONS_INIT;
  ATTEND_RETURN_IF_ERROR(ReadStruct(given, kName, &read));
  SessionOptions& options = out->options;
  if (read.max_tokens == 0) read.max_tokens = options.max_tokens;
  if (read.max_sequences == 0) read.max_sequences = options.max_sequences;
  ATTEND_RETURN_IF_ERROR(Narrow(read.num_threads, kName, "num_threads", &options.num_threads));
  ATTEND_RETURN_IF_ERROR(Narrow(read.max_tokens, kName, "max_tokens", &options.max_tokens));
  ATTEND_RETURN_IF_ERROR(
      Narrow(read.max_sequences, kName, "max_sequences", &options.max_sequences));
  ATTEND_RETURN_IF_ERROR(Narrow(read.max_edges, kName, "max_edges", &options.max_edges));
  options.precision = static_cast<Precision>(read.precision);
  options.backend = static_cast<ThreadBackend>(read.backend);
  options.share = static_cast<Share>(read.share);
  ATTEND_RETURN_IF_ERROR(CheckEnum(read.telemetry, 1, kName, "telemetry"));
  options.telemetry = read.telemetry != 0;
  ATTEND_RETURN_IF_ERROR(CheckEnum(read.reserved, 0, kName, "reserved"));
  if (read.trace != nullptr) options.trace = &read.trace->trace;
  ATTEND_RETURN_IF_ERROR(ReadLogger(read.logger, &out->callbacks.logger));
  options.logger = out->callbacks.logger.get();
  if (read.executor == nullptr) return Status();
  attend_executor executor = ATTEND_EXECUTOR_INIT;
  ATTEND_RETURN_IF_ERROR(ReadStruct(read.executor, "attend_executor", &executor));
  if (executor.run == nullptr || executor.concurrency == nullptr) {
    return Invalid("run or concurrency is NULL", "attend_executor");
  }
  out->callbacks.executor = std::make_unique<CallbackExecutor>(executor);
  options.executor = out->callbacks.executor.get();
  return Status();
}

Status ReadBatch(const attend_batch* given, int64_t input_size, BatchViews* out) {
  ATTEND_RETURN_IF_ERROR(RequirePointer(given, "attend_batch"));
  attend_batch batch = ATTEND_BATCH_INIT;
  ATTEND_RETURN_IF_ERROR(ReadStruct(given, "attend_batch", &batch));
  if (batch.ids != nullptr && batch.rows != nullptr) {
    return Invalid("ids and rows are both given, expected one of them", "attend_batch");
  }
  const bool vectors = batch.rows != nullptr;
  const void* const array = vectors ? static_cast<const void*>(batch.rows) : batch.ids;
  ATTEND_RETURN_IF_ERROR(CheckArray(array, batch.num_tokens, vectors ? "rows" : "ids"));
  ATTEND_RETURN_IF_ERROR(CheckArray(batch.offsets, batch.num_sequences, "offsets"));
  ATTEND_RETURN_IF_ERROR(CheckArray(batch.decoder_ids, batch.num_decoder_ids, "decoder_ids"));
  ATTEND_RETURN_IF_ERROR(CheckArray(batch.edges, batch.num_edges, "edges"));
  const auto tokens = static_cast<size_t>(batch.num_tokens);
  const auto borders = static_cast<size_t>(batch.num_sequences) + 1;
  const auto optional = [](const int32_t* values, size_t count) {
    return values == nullptr ? std::span<const int32_t>() : std::span(values, count);
  };
  static_assert(sizeof(attend_edge) == sizeof(Edge));
  const std::span<const Edge> edges(reinterpret_cast<const Edge*>(batch.edges),
                                    static_cast<size_t>(batch.num_edges));
  out->tokens = !vectors;
  if (vectors) {
    if (batch.type_ids != nullptr || batch.decoder_ids != nullptr) {
      return Invalid("type_ids or decoder_ids are given, which vectors do not have",
                     "attend_batch");
    }
    // A model that takes no vectors says so whatever their width.
    const auto width = static_cast<size_t>(std::max<int64_t>(input_size, 1));
    out->vector_batch = {.rows = {batch.rows, tokens * width},
                         .offsets = optional(batch.offsets, borders),
                         .edges = edges,
                         .edge_offsets = optional(batch.edge_offsets, borders)};
    return Status();
  }
  out->token_batch = {
      .ids = {batch.ids, tokens},
      .offsets = optional(batch.offsets, borders),
      .type_ids = optional(batch.type_ids, tokens),
      .decoder_ids = {batch.decoder_ids, static_cast<size_t>(batch.num_decoder_ids)},
      .decoder_offsets = optional(batch.decoder_offsets, borders),
      .edges = edges,
      .edge_offsets = optional(batch.edge_offsets, borders)};
  return Status();
}

}  // namespace c

namespace {

Status Keep(Result<Model> model, attend_model** out) {
  if (!model.ok()) return model.status();
  *out = new attend_model{*model, c::Pointers(model->info().labels)};
  return Status();
}

attend_model_info InfoOf(const attend_model& model) {
  const ModelInfo& from = model.model.info();
  attend_model_info info = ATTEND_MODEL_INFO_INIT;
  info.architecture = from.architecture.c_str();
  info.source = from.source.c_str();
  info.description = from.description.c_str();
  info.pooling = from.pooling.c_str();
  info.tokenizer = from.tokenizer.c_str();
  info.labels = model.labels.data();
  info.num_labels = static_cast<int64_t>(model.labels.size());
  info.task = static_cast<int32_t>(from.task);
  info.precision = static_cast<int32_t>(from.precision);
  info.normalized = from.normalized ? 1 : 0;
  info.hidden_size = from.hidden_size;
  info.num_layers = from.num_layers;
  info.num_heads = from.num_heads;
  info.num_kv_heads = from.num_kv_heads;
  info.head_dim = from.head_dim;
  info.intermediate_size = from.intermediate_size;
  info.vocab_size = from.vocab_size;
  info.input_size = from.input_size;
  info.type_vocab_size = from.type_vocab_size;
  info.max_length = from.max_length;
  info.num_parameters = from.num_parameters;
  info.file_bytes = static_cast<size_t>(from.file_bytes);
  return info;
}

// `telemetry` is where the run's goes, if it has one.
attend_output OutputOf(const Output& from, attend_telemetry* telemetry) {
  attend_output output = ATTEND_OUTPUT_INIT;
  const auto set = [](std::span<const float> values, const float** data, int64_t* count) {
    *data = values.empty() ? nullptr : values.data();
    *count = static_cast<int64_t>(values.size());
  };
  set(from.hidden, &output.hidden, &output.num_hidden);
  set(from.pooled, &output.pooled, &output.num_pooled);
  set(from.logits, &output.logits, &output.num_logits);
  set(from.encoder_hidden, &output.encoder_hidden, &output.num_encoder_hidden);
  output.share = static_cast<int32_t>(from.share);
  output.telemetry = c::KeepTelemetry(from.telemetry, telemetry);
  return output;
}

attend_weights WeightsOf(const AttentionWeights& from) {
  return {from.layers, from.heads, from.queries, from.keys,
          from.values.empty() ? nullptr : from.values.data()};
}

}  // namespace
}  // namespace attend

attend_status attend_machine_get(attend_buffer* buffer, attend_machine* out, attend_error* error) {
  return Guarded("machine", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(buffer, "buffer"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_machine"));
    std::vector<std::string> strings = attend::AvailableIsas();
    const size_t num_isas = strings.size();
    const attend::ThreadAdvice advice = attend::AdviseThreads();
    strings.push_back(attend::CurrentIsa());
    strings.push_back(advice.reason);
    strings.push_back(attend::LibraryVersions());
    std::vector<const char*> pointers = attend::c::Pointers(strings);
    buffer->strings = std::move(strings);  // which leaves each string where it is
    buffer->pointers = std::move(pointers);
    const char* const* all = buffer->pointers.data();
    attend_machine machine = ATTEND_MACHINE_INIT;
    machine.isas = all;
    machine.num_isas = static_cast<int64_t>(num_isas);
    machine.isa = all[num_isas];
    machine.num_threads = advice.num_threads;
    machine.threads_rule = all[num_isas + 1];
    machine.libraries = all[num_isas + 2];
    attend::c::WriteStruct(machine, out);
    return {};
  });
}

attend_status attend_limit_isa(const char* name, attend_error* error) {
  return Guarded("LimitIsa", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(name, "name"));
    return attend::LimitIsa(name);
  });
}

attend_status attend_model_load(const char* path, attend_model** out, attend_error* error) {
  return attend_model_load_with(path, nullptr, out, error);
}

attend_status attend_model_load_with(const char* path, const attend_load_options* options,
                                     attend_model** out, attend_error* error) {
  return Guarded("model", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(path, "path"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::c::LoadSetup setup;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadLoadOptions(options, &setup));
    return attend::Keep(attend::Model::Load(path, setup.options), out);
  });
}

attend_status attend_model_from_bytes(const void* bytes, size_t size, attend_model** out,
                                      attend_error* error) {
  return attend_model_from_bytes_with(bytes, size, nullptr, out, error);
}

attend_status attend_model_from_bytes_with(const void* bytes, size_t size,
                                           const attend_load_options* options, attend_model** out,
                                           attend_error* error) {
  return Guarded("model", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(bytes, "bytes"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::c::LoadSetup setup;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadLoadOptions(options, &setup));
    return attend::Keep(
        attend::Model::FromBytes({static_cast<const std::byte*>(bytes), size}, setup.options), out);
  });
}

void attend_model_free(attend_model* model) { delete model; }

attend_status attend_model_get_info(const attend_model* model, attend_model_info* out,
                                    attend_error* error) {
  return Guarded("model", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(model, "model"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_model_info"));
    attend::c::WriteStruct(attend::InfoOf(*model), out);
    return {};
  });
}

attend_status attend_tokenizer_of_model(const attend_model* model, int32_t target,
                                        attend_tokenizer** out, attend_error* error) {
  return Guarded("tokenizer", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(model, "model"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::Result<attend::Tokenizer> tokenizer =
        target != 0 ? attend::Tokenizer::TargetOfModel(model->model)
                    : attend::Tokenizer::FromModel(model->model);
    if (!tokenizer.ok()) return tokenizer.status();
    *out = new attend_tokenizer{*tokenizer, std::string(tokenizer->kind())};
    return {};
  });
}

attend_status attend_session_create(const attend_model* model,
                                    const attend_session_options* options, attend_session** out,
                                    attend_error* error) {
  return Guarded("session", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(model, "model"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::c::SessionSetup setup;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadSessionOptions(options, &setup));
    attend::Result<attend::Session> session = attend::Session::Create(model->model, setup.options);
    if (!session.ok()) return session.status();
    *out = new attend_session{std::move(setup.callbacks), *std::move(session),
                              model->model.info().input_size};
    return {};
  });
}

void attend_session_free(attend_session* session) { delete session; }

attend_status attend_session_predict_memory(const attend_model* model,
                                            const attend_session_options* options,
                                            size_t* out_bytes, attend_error* error) {
  return Guarded("session", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(model, "model"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out_bytes, "out_bytes"));
    attend::c::SessionSetup setup;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadSessionOptions(options, &setup));
    attend::Result<size_t> bytes = attend::Session::PredictMemoryBytes(model->model, setup.options);
    if (!bytes.ok()) return bytes.status();
    *out_bytes = *bytes;
    return {};
  });
}

attend_status attend_session_run(attend_session* session, const attend_batch* batch,
                                 attend_output* out, attend_error* error) {
  return Guarded("session", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(session, "session"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_output"));
    attend::c::BatchViews views;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadBatch(batch, session->input_size, &views));
    std::atomic<bool>* const cancel = &session->cancelled;
    *cancel = false;  // what was meant for an earlier run
    attend::Result<attend::Output> output = views.tokens
                                                ? session->session.Run(views.token_batch, cancel)
                                                : session->session.Run(views.vector_batch, cancel);
    if (!output.ok()) return output.status();
    attend::c::WriteStruct(attend::OutputOf(*output, &session->telemetry), out);
    return {};
  });
}

void attend_session_cancel(attend_session* session) {
  if (session != nullptr) session->cancelled = true;
}

attend_status attend_session_get_info(attend_session* session, attend_session_info* out,
                                      attend_error* error) {
  return Guarded("session", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(session, "session"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_session_info"));
    session->description = session->session.Describe();
    attend_session_info info = ATTEND_SESSION_INFO_INIT;
    info.memory_bytes = session->session.memory_bytes();
    info.weight_bytes = session->session.weight_bytes();
    info.num_threads = session->session.num_threads();
    info.description = session->description.c_str();
    attend::c::WriteStruct(info, out);
    return {};
  });
}

attend_status attend_attention_map_create(const attend_model* model,
                                          const attend_attention_options* options,
                                          attend_attention_map** out, attend_error* error) {
  return Guarded("attention", error, [&]() -> attend::Status {
    constexpr const char* kName = "attend_attention_options";
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(model, "model"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend_attention_options read = ATTEND_ATTENTION_OPTIONS_INIT;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadStruct(options, kName, &read));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckEnum(read.reserved, 0, kName, "reserved"));
    attend::AttentionMapOptions use;
    if (read.max_tokens == 0) read.max_tokens = use.max_tokens;
    ATTEND_RETURN_IF_ERROR(
        attend::c::Narrow(read.max_tokens, kName, "max_tokens", &use.max_tokens));
    ATTEND_RETURN_IF_ERROR(attend::c::Narrow(read.max_edges, kName, "max_edges", &use.max_edges));
    use.precision = static_cast<attend::Precision>(read.precision);
    if (read.trace != nullptr) use.trace = &read.trace->trace;
    attend::c::Callbacks callbacks;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadLogger(read.logger, &callbacks.logger));
    use.logger = callbacks.logger.get();
    attend::Result<attend::AttentionMap> map = attend::AttentionMap::Create(model->model, use);
    if (!map.ok()) return map.status();
    *out = new attend_attention_map{std::move(callbacks), *std::move(map),
                                    model->model.info().input_size};
    return {};
  });
}

void attend_attention_map_free(attend_attention_map* map) { delete map; }

attend_status attend_attention_map_run(attend_attention_map* map, const attend_batch* batch,
                                       attend_attention* out, attend_error* error) {
  return Guarded("attention", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(map, "map"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_attention"));
    attend::c::BatchViews views;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadBatch(batch, map->input_size, &views));
    attend::Result<attend::AttentionRun> run =
        views.tokens ? map->map.Run(views.token_batch) : map->map.Run(views.vector_batch);
    if (!run.ok()) return run.status();
    attend_attention attention = ATTEND_ATTENTION_INIT;
    attention.self = attend::WeightsOf(run->self);
    attention.decoder = attend::WeightsOf(run->decoder);
    attention.cross = attend::WeightsOf(run->cross);
    attend::c::WriteStruct(attention, out);
    return {};
  });
}
