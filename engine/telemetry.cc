#include "engine/telemetry.h"

#include <algorithm>

#include "engine/trace_buffer.h"

namespace attend {
namespace {

int64_t& FieldOf(WorkKind kind, WorkTimes* times) {
  switch (kind) {
    case WorkKind::kEmbedding:
      return times->embedding_ns;
    case WorkKind::kAttention:
      return times->attention_ns;
    case WorkKind::kLinear:
      return times->linear_ns;
    case WorkKind::kPooling:
      return times->pooling_ns;
    case WorkKind::kOther:
      break;
  }
  return times->other_ns;
}

void AddTimes(const WorkTimes& from, WorkTimes* to) {
  to->embedding_ns += from.embedding_ns;
  to->attention_ns += from.attention_ns;
  to->linear_ns += from.linear_ns;
  to->pooling_ns += from.pooling_ns;
  to->other_ns += from.other_ns;
}

}  // namespace

void AddRun(const Telemetry& run, Telemetry* sum) {
  sum->share = sum->runs == 0 || sum->share == run.share ? run.share : Share::kAuto;
  sum->num_threads = std::max(sum->num_threads, run.num_threads);
  sum->runs += run.runs;
  sum->tokens += run.tokens;
  sum->decoder_tokens += run.decoder_tokens;
  sum->sequences += run.sequences;
  sum->run_ns += run.run_ns;
  sum->wait_ns += run.wait_ns;
  AddTimes(run.work, &sum->work);
  sum->segments.resize(run.segments.size());
  for (size_t s = 0; s < run.segments.size(); ++s) AddTimes(run.segments[s], &sum->segments[s]);
}

SessionTelemetry::SessionTelemetry(std::span<PlanRunner* const> runners, int num_threads) {
  size_t segments = 0;
  for (PlanRunner* const runner : runners) {
    const Plan& plan = runner->plan();
    times_[plans_] = StepTimes(num_threads, plan.steps.size());
    runner->set_step_times(&times_[plans_]);
    runners_[plans_++] = runner;
    segments += plan.segments.size();
  }
  telemetry_.segments.resize(segments);
}

size_t SessionTelemetry::Bytes(std::span<PlanRunner* const> runners, int num_threads) {
  size_t bytes = sizeof(SessionTelemetry);
  for (const PlanRunner* const runner : runners) {
    const Plan& plan = runner->plan();
    bytes +=
        StepTimes::Bytes(num_threads, plan.steps.size()) + plan.segments.size() * sizeof(WorkTimes);
  }
  return bytes;
}

void SessionTelemetry::Begin() {
  for (size_t i = 0; i < plans_; ++i) times_[i].Clear();
  begin_ns_ = TraceNow();
}

void SessionTelemetry::Add(const Plan& plan, const StepTimes& times, size_t first_segment) {
  for (const StepTimes::Thread& thread : times.threads) {
    telemetry_.wait_ns += thread.wait_ns;
    for (size_t s = 0; s < plan.segments.size(); ++s) {
      for (const int step : plan.segments[s].steps) {
        const auto index = static_cast<size_t>(step);
        const WorkKind kind = plan.steps[index]->kind();
        FieldOf(kind, &telemetry_.work) += thread.ns[index];
        FieldOf(kind, &telemetry_.segments[first_segment + s]) += thread.ns[index];
      }
    }
  }
}

const Telemetry* SessionTelemetry::End(const TimedRun& run) {
  telemetry_.run_ns = TraceNow() - begin_ns_;
  telemetry_.runs = 1;
  telemetry_.tokens = run.tokens;
  telemetry_.decoder_tokens = run.decoder_tokens;
  telemetry_.sequences = run.sequences;
  telemetry_.num_threads = run.num_threads;
  telemetry_.share = run.share;
  telemetry_.wait_ns = 0;
  telemetry_.work = {};
  std::fill(telemetry_.segments.begin(), telemetry_.segments.end(), WorkTimes{});
  size_t first_segment = 0;
  for (size_t i = 0; i < plans_; ++i) {
    Add(runners_[i]->plan(), times_[i], first_segment);
    first_segment += runners_[i]->plan().segments.size();
  }
  return &telemetry_;
}

}  // namespace attend
