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

}  // namespace

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

const Telemetry* SessionTelemetry::End(const BatchView& batch, Share share, int num_threads) {
  telemetry_.run_ns = TraceNow() - begin_ns_;
  telemetry_.tokens = batch.tokens;
  telemetry_.sequences = batch.sequences;
  telemetry_.num_threads = num_threads;
  telemetry_.share = share;
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
