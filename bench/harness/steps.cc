// The steps of a run: time, FLOPs, bytes, and the share of what the machine could do.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "bench/harness/limit.h"
#include "bench/harness/sections.h"
#include "bench/harness/stats.h"
#include "engine/session.h"

namespace attend::bench {
namespace {

// Steps that say the same of themselves, in different layers or in one.
struct StepKind {
  std::string name;
  int count = 0;
  double flops = 0, weight_bytes = 0, row_bytes = 0;
  std::vector<double> seconds = {};  // by run: of all threads together, divided by their number
};

// Where each step belongs, and what one run asks of its kind.
std::vector<StepKind> FindKinds(Subject& subject, const Batch& batch, std::vector<size_t>* kind) {
  const Plan& plan = subject.session().data().runner.plan();
  std::vector<StepKind> kinds;
  std::map<std::string, size_t> by_name;
  kind->assign(plan.steps.size(), 0);
  const double pairs = PairsSeen(subject.model(), batch);
  for (const Segment& segment : plan.segments) {
    const double rows =
        static_cast<double>(segment.domain == Domain::kTokens ? batch.tokens() : batch.sequences());
    for (const int step : segment.steps) {
      const size_t i = static_cast<size_t>(step);
      const std::string name = plan.steps[i]->Describe();
      const auto [found, is_new] = by_name.try_emplace(name, kinds.size());
      if (is_new) kinds.push_back({.name = name});
      StepKind& mine = kinds[found->second];
      const StepCost cost = plan.steps[i]->cost();
      ++mine.count;
      mine.flops += cost.flops_per_row * rows + cost.flops_per_pair * pairs;
      mine.weight_bytes += cost.weight_bytes;
      mine.row_bytes += rows * 4 * static_cast<double>(plan.row_columns[i]);
      (*kind)[i] = found->second;
    }
  }
  return kinds;
}

// A run with the clock on. Returns the seconds that a thread waited, on average.
Result<double> TimeOnce(Subject& subject, const Batch& batch, const std::vector<size_t>& kind,
                        std::vector<StepKind>* kinds) {
  PlanRunner& runner = subject.session().data().runner;
  const double threads = subject.session().num_threads();
  StepTimes times(subject.session().num_threads(), runner.plan().steps.size());
  runner.set_step_times(&times);
  const Result<double> taken = subject.Run(batch);
  runner.set_step_times(nullptr);
  if (!taken.ok()) return taken.status();
  for (StepKind& mine : *kinds) mine.seconds.push_back(0);
  double waited = 0;
  for (const StepTimes::Thread& thread : times.threads) {
    waited += static_cast<double>(thread.wait_ns) * 1e-9 / threads;
    for (size_t i = 0; i < thread.ns.size(); ++i) {
      (*kinds)[kind[i]].seconds.back() += static_cast<double>(thread.ns[i]) * 1e-9 / threads;
    }
  }
  return waited;
}

// Values of a tile lie in L2; weights where all of them live.
Json StepJson(const StepKind& kind, const Limit& limit, const Rates& rates) {
  const double seconds = Median(kind.seconds);
  const double in_l2 = rates.read[std::min<size_t>(1, rates.read.size() - 1)].all;
  const double arithmetic = kind.flops / limit.gemm_rate;
  const double reading = kind.weight_bytes / limit.read_rate + kind.row_bytes / in_l2;
  const double least = std::max(arithmetic, reading);
  return {{"step", kind.name},
          {"count", kind.count},
          {"time_s", seconds},
          {"flops", kind.flops},
          {"weight_bytes", kind.weight_bytes},
          {"row_bytes", kind.row_bytes},
          {"flops_per_s", kind.flops / seconds},
          {"bytes_per_s", (kind.weight_bytes + kind.row_bytes) / seconds},
          {"bound", arithmetic >= reading ? "arithmetic" : "bytes"},
          {"limit_s", least},
          {"share_of_limit", least / seconds}};
}

Result<Json> MeasureRun(Subject& subject, int64_t sequences, int64_t length, const Rates& rates,
                        const Context& context) {
  if (context.stop()) return Stopped();
  context.progress("steps of " + std::to_string(sequences) + " x " + std::to_string(length));
  const Batch batch = subject.MakeBatch(sequences, length);
  const std::optional<Limit> limit = LimitOf(subject, batch, rates);
  if (!limit) {
    return Json{{"batch", sequences}, {"length", length}, {"left_out", "no limit is known"}};
  }
  const Result<std::vector<double>> plain = subject.Times(batch, context.effort.cell_s / 2, 3);
  if (!plain.ok()) return plain.status();
  std::vector<size_t> kind;
  std::vector<StepKind> kinds = FindKinds(subject, batch, &kind);
  std::vector<double> waits;
  while (waits.size() < plain->size()) {
    const Result<double> waited = TimeOnce(subject, batch, kind, &kinds);
    if (!waited.ok()) return waited.status();
    waits.push_back(*waited);
  }
  const Result<Output> output = subject.RunFor(batch);
  if (!output.ok()) return output.status();
  double sum = 0;
  Json steps = Json::array();
  for (const StepKind& mine : kinds) {
    steps.push_back(StepJson(mine, *limit, rates));
    sum += Median(mine.seconds);
  }
  return Json{{"batch", sequences},
              {"length", length},
              {"share", ShareName(output->share)},
              {"runs", waits.size()},
              {"run_s", Median(*plain)},  // without the clock between the steps
              {"steps_s", sum},
              {"waiting_s", Median(waits)},
              {"share_of_limit", limit->seconds() / Median(*plain)},
              {"limit", limit->ToJson()},
              {"steps", steps}};
}

}  // namespace

Result<Json> MeasureSteps(Subject& subject, const Rates& rates, const Context& context) {
  Json runs = Json::array();
  for (const int64_t length : context.effort.step_lengths) {
    if (length > subject.max_length()) continue;
    Result<Json> run = MeasureRun(subject, 1, length, rates, context);
    if (!run.ok()) return run.status();
    runs.push_back(*std::move(run));
  }
  const int64_t sequences = context.effort.batches.front();
  const int64_t length = std::min(context.effort.step_lengths.back(), subject.max_length());
  if (sequences * length <= subject.options().max_tokens) {
    Result<Json> run = MeasureRun(subject, sequences, length, rates, context);
    if (!run.ok()) return run.status();
    runs.push_back(*std::move(run));
  }
  return runs;
}

}  // namespace attend::bench
