// The step times of a Session's plans, summed up as Telemetry.
#ifndef ATTEND_ENGINE_TELEMETRY_H_
#define ATTEND_ENGINE_TELEMETRY_H_

#include <cstddef>
#include <span>

#include "attend/attend.h"
#include "engine/runner.h"
#include "engine/step_times.h"

namespace attend {

// Of one Session, whose runs go through one plan, or two. All memory is taken when it is made.
class SessionTelemetry {
 public:
  static constexpr size_t kMostPlans = 2;

  // From now on `runners` note their times here. They must not move.
  SessionTelemetry(std::span<PlanRunner* const> runners, int num_threads);
  // What one takes.
  static size_t Bytes(std::span<PlanRunner* const> runners, int num_threads);

  void Begin();
  // After Begin and a run of all plans; valid until the next Begin.
  const Telemetry* End(const BatchView& batch, Share share, int num_threads);

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
