// The C interface: what is seen inside. Traces, telemetry.
#include "engine/c_api.h"

using attend::c::Guarded;

namespace attend::c {

const attend_telemetry* KeepTelemetry(const Telemetry* from, attend_telemetry* kept) {
  if (from == nullptr) return nullptr;
  static_assert(sizeof(attend_work_times) == sizeof(WorkTimes));
  static_assert(offsetof(attend_work_times, other_ns) == offsetof(WorkTimes, other_ns));
  const WorkTimes& work = from->work;
  *kept = {};
  kept->struct_size = sizeof(attend_telemetry);
  kept->num_tokens = from->tokens;
  kept->num_sequences = from->sequences;
  kept->num_threads = from->num_threads;
  kept->queue_ns = from->queue_ns;
  kept->run_ns = from->run_ns;
  kept->wait_ns = from->wait_ns;
  kept->work = {work.embedding_ns, work.attention_ns, work.linear_ns, work.pooling_ns,
                work.other_ns};
  kept->segments = reinterpret_cast<const attend_work_times*>(from->segments.data());
  kept->num_segments = static_cast<int64_t>(from->segments.size());
  kept->share = static_cast<int32_t>(from->share);
  kept->num_runs = from->runs;
  kept->num_decoder_tokens = from->decoder_tokens;
  kept->encode_ns = from->encode_ns;
  return kept;
}

}  // namespace attend::c

attend_status attend_trace_create(int64_t max_events, attend_trace** out, attend_error* error) {
  return Guarded("trace", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::Result<attend::Trace> trace =
        max_events == 0 ? attend::Trace::Create() : attend::Trace::Create(max_events);
    if (!trace.ok()) return trace.status();
    *out = new attend_trace{*std::move(trace)};
    return {};
  });
}

void attend_trace_free(attend_trace* trace) { delete trace; }

attend_status attend_trace_get_info(const attend_trace* trace, attend_trace_info* out,
                                    attend_error* error) {
  return Guarded("trace", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(trace, "trace"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_trace_info"));
    attend_trace_info info = ATTEND_TRACE_INFO_INIT;
    info.num_events = trace->trace.num_events();
    info.num_dropped = trace->trace.num_dropped();
    attend::c::WriteStruct(info, out);
    return {};
  });
}

attend_status attend_trace_write_json(const attend_trace* trace, attend_buffer* buffer,
                                      attend_text* out, attend_error* error) {
  return Guarded("trace", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(trace, "trace"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(buffer, "buffer"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    buffer->text = trace->trace.ToJson();
    *out = {buffer->text.data(), buffer->text.size()};
    return {};
  });
}

void attend_trace_clear(attend_trace* trace) {
  if (trace != nullptr) trace->trace.Clear();
}
