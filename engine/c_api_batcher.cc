// The C interface: many callers of one model.
#include "attend/batcher.h"
#include "engine/c_api.h"

using attend::c::Guarded;

struct attend_batcher {
  attend::c::Callbacks callbacks;  // outlive what uses them
  attend::Batcher batcher;
};

struct attend_pending {
  attend::PendingAnswer pending;
  attend::BatchAnswer answer;
  attend_telemetry telemetry = {};
};

namespace attend {
namespace {

Status ReadOptions(const attend_batcher_options* given, c::SessionSetup* setup,
                   BatcherOptions* out) {
  constexpr const char* kName = "attend_batcher_options";
  attend_batcher_options read = ATTEND_BATCHER_OPTIONS_INIT;
  ATTEND_RETURN_IF_ERROR(c::ReadStruct(given, kName, &read));
  setup->options = out->session;  // the defaults
  ATTEND_RETURN_IF_ERROR(c::ReadSessionOptions(read.session, setup));
  out->session = setup->options;
  ATTEND_RETURN_IF_ERROR(c::Narrow(read.num_workers, kName, "num_workers", &out->num_workers));
  if (read.max_queued_requests != 0) {
    ATTEND_RETURN_IF_ERROR(c::Narrow(read.max_queued_requests, kName, "max_queued_requests",
                                     &out->max_queued_requests));
  }
  if (read.max_queued_tokens != 0) out->max_queued_tokens = read.max_queued_tokens;
  if (read.max_bytes != 0) out->max_bytes = read.max_bytes;
  out->linger_us = read.linger_us;
  out->truncate = read.truncate != 0;
  out->start_threads = read.no_threads == 0;
  return c::Narrow(read.max_length, kName, "max_length", &out->max_length);
}

// `telemetry` is where that of the answer goes, if it has one.
attend_answer AnswerOf(const BatchAnswer& from, attend_telemetry* telemetry) {
  attend_answer answer = ATTEND_ANSWER_INIT;
  const auto set = [](const std::vector<float>& values, const float** data, int64_t* count) {
    *data = values.empty() ? nullptr : values.data();
    *count = static_cast<int64_t>(values.size());
  };
  set(from.hidden, &answer.hidden, &answer.num_hidden);
  set(from.pooled, &answer.pooled, &answer.num_pooled);
  set(from.logits, &answer.logits, &answer.num_logits);
  set(from.encoder_hidden, &answer.encoder_hidden, &answer.num_encoder_hidden);
  answer.num_tokens = static_cast<int64_t>(from.encoding.ids.size());
  if (answer.num_tokens > 0) {
    answer.ids = from.encoding.ids.data();
    answer.offsets = reinterpret_cast<const attend_range*>(from.encoding.offsets.data());
  }
  answer.queued_us = from.queued_us;
  answer.run_us = from.run_us;
  answer.batch_tokens = from.batch_tokens;
  answer.batch_sequences = from.batch_sequences;
  answer.truncated = from.encoding.truncated ? 1 : 0;
  answer.telemetry =
      c::KeepTelemetry(from.telemetry.has_value() ? &*from.telemetry : nullptr, telemetry);
  return answer;
}

Status ReadContents(const attend_request& read, const Model& model, BatchRequest* out) {
  std::string_view text;
  if (read.text != nullptr) {
    ATTEND_RETURN_IF_ERROR(c::ReadText(*read.text, "text", &text));
    out->text = text;
  }
  if (read.pair != nullptr) {
    ATTEND_RETURN_IF_ERROR(c::ReadText(*read.pair, "pair", &text));
    out->pair = text;
  }
  ATTEND_RETURN_IF_ERROR(c::CheckArray(&read, read.num_tokens, "num_tokens"));
  const auto tokens = static_cast<size_t>(read.num_tokens);
  if (read.ids != nullptr) out->ids = {read.ids, tokens};
  if (read.type_ids != nullptr) out->type_ids = {read.type_ids, tokens};
  if (read.rows != nullptr) {
    const auto width = static_cast<size_t>(std::max<int32_t>(model.info().input_size, 1));
    out->rows = {read.rows, tokens * width};
  }
  ATTEND_RETURN_IF_ERROR(c::CheckArray(read.decoder_ids, read.num_decoder_ids, "decoder_ids"));
  out->decoder_ids = {read.decoder_ids, static_cast<size_t>(read.num_decoder_ids)};
  if (read.num_edges == -1) return Status();
  ATTEND_RETURN_IF_ERROR(c::CheckArray(read.edges, read.num_edges, "edges"));
  out->edges =
      std::span(reinterpret_cast<const Edge*>(read.edges), static_cast<size_t>(read.num_edges));
  return Status();
}

Status ReadRequest(const attend_request* given, const Model& model, BatchRequest* out) {
  constexpr const char* kName = "attend_request";
  ATTEND_RETURN_IF_ERROR(c::RequirePointer(given, kName));
  attend_request read = ATTEND_REQUEST_INIT;
  ATTEND_RETURN_IF_ERROR(c::ReadStruct(given, kName, &read));
  ATTEND_RETURN_IF_ERROR(ReadContents(read, model, out));
  out->deadline_us = read.deadline_us;
  out->block_us = read.block_us;
  ATTEND_RETURN_IF_ERROR(c::Narrow(read.priority, kName, "priority", &out->priority));
  ATTEND_RETURN_IF_ERROR(c::CheckEnum(read.want, 15, kName, "want"));
  if (read.want != 0) {
    out->want_hidden = (read.want & ATTEND_WANT_HIDDEN) != 0;
    out->want_pooled = (read.want & ATTEND_WANT_POOLED) != 0;
    out->want_logits = (read.want & ATTEND_WANT_LOGITS) != 0;
    out->want_encoder_hidden = (read.want & ATTEND_WANT_ENCODER_HIDDEN) != 0;
  }
  if (read.done == nullptr) return Status();
  out->done = [done = read.done, user = read.user](Result<BatchAnswer> result) {
    attend_error error = ATTEND_ERROR_INIT;
    const attend_status status = c::Report(result.status(), &error);
    attend_telemetry telemetry = {};
    const attend_answer answer =
        result.ok() ? AnswerOf(*result, &telemetry) : attend_answer(ATTEND_ANSWER_INIT);
    done(user, status, result.ok() ? &answer : nullptr, &error);
  };
  return Status();
}

}  // namespace
}  // namespace attend

attend_status attend_batcher_create(const attend_model* model,
                                    const attend_batcher_options* options, attend_batcher** out,
                                    attend_error* error) {
  return Guarded("batcher", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(model, "model"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::c::SessionSetup setup;
    attend::BatcherOptions use;
    ATTEND_RETURN_IF_ERROR(attend::ReadOptions(options, &setup, &use));
    attend::Result<attend::Batcher> batcher = attend::Batcher::Create(model->model, use);
    if (!batcher.ok()) return batcher.status();
    *out = new attend_batcher{std::move(setup.callbacks), *std::move(batcher)};
    return {};
  });
}

void attend_batcher_free(attend_batcher* batcher) { delete batcher; }

attend_status attend_batcher_submit(attend_batcher* batcher, const attend_request* request,
                                    attend_pending** out, attend_error* error) {
  return Guarded("batcher", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(batcher, "batcher"));
    attend::BatchRequest read;
    ATTEND_RETURN_IF_ERROR(attend::ReadRequest(request, batcher->batcher.model(), &read));
    if (!read.done) ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    // The handle first: once the request is on its way nothing may fail any more.
    void* const memory = out == nullptr ? nullptr : operator new(sizeof(attend_pending));
    attend::Result<attend::PendingAnswer> pending = batcher->batcher.Submit(std::move(read));
    if (!pending.ok()) {
      operator delete(memory);
      return pending.status();
    }
    if (out != nullptr) *out = new (memory) attend_pending{*std::move(pending), {}};
    return {};
  });
}

attend_status attend_pending_wait(attend_pending* pending, attend_answer* out,
                                  attend_error* error) {
  return Guarded("pending", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(pending, "pending"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_answer"));
    attend::Result<attend::BatchAnswer> answer = pending->pending.Wait();
    if (!answer.ok()) return answer.status();
    pending->answer = *std::move(answer);
    attend::c::WriteStruct(attend::AnswerOf(pending->answer, &pending->telemetry), out);
    return {};
  });
}

int32_t attend_pending_wait_for(const attend_pending* pending, int64_t timeout_us) {
  if (pending == nullptr) return 0;
  int32_t there = 0;
  (void)Guarded("pending", nullptr, [&]() -> attend::Status {
    there = pending->pending.WaitFor(timeout_us) ? 1 : 0;
    return {};
  });
  return there;
}

void attend_pending_cancel(attend_pending* pending) {
  (void)Guarded("pending", nullptr, [&]() -> attend::Status {
    if (pending != nullptr) pending->pending.Cancel();
    return {};
  });
}

void attend_pending_free(attend_pending* pending) { delete pending; }

attend_status attend_batcher_close(attend_batcher* batcher, attend_error* error) {
  return Guarded("batcher", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(batcher, "batcher"));
    batcher->batcher.Close();
    return {};
  });
}

attend_status attend_batcher_drain(attend_batcher* batcher, int64_t limit_us, attend_error* error) {
  return Guarded("batcher", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(batcher, "batcher"));
    if (batcher->batcher.Drain(limit_us)) return {};
    return {attend::ErrorCode::kDeadline,
            "not all requests are answered after " + std::to_string(limit_us) + " us", "batcher",
            "wait again, or cancel them"};
  });
}

attend_status attend_batcher_cancel_all(attend_batcher* batcher, attend_error* error) {
  return Guarded("batcher", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(batcher, "batcher"));
    batcher->batcher.CancelAll();
    return {};
  });
}

attend_status attend_batcher_serve(attend_batcher* batcher, attend_error* error) {
  return Guarded("batcher", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(batcher, "batcher"));
    return batcher->batcher.Serve();
  });
}

attend_status attend_batcher_serve_waiting(attend_batcher* batcher, int64_t* answered,
                                           attend_error* error) {
  return Guarded("batcher", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(batcher, "batcher"));
    const attend::Result<int64_t> served = batcher->batcher.ServeWaiting();
    if (!served.ok()) return served.status();
    if (answered != nullptr) *answered = *served;
    return {};
  });
}

attend_status attend_batcher_get_statistics(const attend_batcher* batcher,
                                            attend_batcher_statistics* out, attend_error* error) {
  return Guarded("batcher", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(batcher, "batcher"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_batcher_statistics"));
    const attend::BatcherStatistics from = batcher->batcher.statistics();
    attend_batcher_statistics statistics = ATTEND_BATCHER_STATISTICS_INIT;
    statistics.queued_requests = from.queued_requests;
    statistics.queued_tokens = from.queued_tokens;
    statistics.bytes = from.bytes;
    statistics.running_requests = from.running_requests;
    statistics.idle_workers = from.idle_workers;
    statistics.answered = from.answered;
    statistics.refused = from.refused;
    statistics.expired = from.expired;
    statistics.cancelled = from.cancelled;
    statistics.failed = from.failed;
    statistics.batches = from.batches;
    statistics.batch_tokens = from.batch_tokens;
    statistics.batch_sequences = from.batch_sequences;
    statistics.batch_fill = from.batch_fill;
    statistics.queued_p50_us = from.queued_p50_us;
    statistics.queued_p99_us = from.queued_p99_us;
    attend::c::WriteStruct(statistics, out);
    return {};
  });
}
