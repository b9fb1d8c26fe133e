// The step times of a session's plans, summed up as Telemetry.
#ifndef ATTEND_ENGINE_TELEMETRY_H_
#define ATTEND_ENGINE_TELEMETRY_H_

#include <cstddef>
#include <span>

#include "attend/attend.h"
#include "engine/runner.h"
#include "engine/step_times.h"

namespace attend {

// What a run was, as its session knows it; the fields are those of Telemetry.
struct TimedRun {
  int64_t tokens = 0;
  int64_t decoder_tokens = 0;
  int64_t sequences = 0;
  int num_threads = 1;
  Share share = Share::kAuto;
};

// Adds a run to the others of its call, which *sum has.
void AddRun(const Telemetry& run, Telemetry* sum);

// Of one Session or DecodeSession, whose runs go through one plan, or two. All memory is taken when
// it is made.
class SessionTelemetry {
 public:
  static constexpr size_t kMostPlans = 2;

  // From now on `runners` note their times here. They must not move.
  SessionTelemetry(std::span<PlanRunner* const> runners, int num_threads);
  // What one takes.
  static size_t Bytes(std::span<PlanRunner* const> runners, int num_threads);

  void Begin();
  // After Begin and a run of the plans; valid until the next Begin.
  const Telemetry* End(const TimedRun& run);

 private:
  void Add(const Plan& plan, const StepTimes& times, size_t first_segment);

  PlanRunner* runners_[kMostPlans] = {};
  StepTimes times_[kMostPlans];
  size_t plans_ = 0;
  int64_t begin_ns_ = 0;
  Telemetry telemetry_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_TELEMETRY_H_
