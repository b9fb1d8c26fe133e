// What threads cost: awake, asleep, too many, and when nothing runs.
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "bench/harness/sections.h"
#include "bench/harness/stats.h"
#include "bench/harness/timing.h"
#include "bench/harness/tiny_model.h"

namespace attend::bench {
namespace {

// Next to no work: what is left are the check of the batch, the threads and their barriers.
Result<Json> MeasureOverhead(const Model& model, int threads, Share share, const Context& context) {
  Result<Subject> subject =
      Subject::Open(model, {.num_threads = threads, .max_tokens = 64, .share = share});
  if (!subject.ok()) return subject.status();
  const Batch batch = subject->MakeBatch(1, 2);
  const Result<std::vector<double>> hot = subject->Times(batch, context.effort.cell_s, 200);
  if (!hot.ok()) return hot.status();
  std::vector<double> cold;
  for (int i = 0; i < context.effort.pauses; ++i) {
    if (context.stop()) return Stopped();
    SleepFor(context.effort.pause_s);
    const Result<double> taken = subject->Run(batch);
    if (!taken.ok()) return taken.status();
    cold.push_back(*taken);
  }
  const Result<Output> output = subject->RunFor(batch);
  if (!output.ok()) return output.status();
  return Json{{"threads", threads},
              {"asked_share", ShareName(share)},
              {"share", ShareName(output->share)},
              {"hot_s", Median(*hot)},
              {"hot_p99_s", Percentile(*hot, 0.99)},
              {"cold_s", Median(cold)},
              {"cold_worst_s", Percentile(cold, 1)}};
}

// A model that gives threads something to do, on as many as there are CPUs and on too many.
Result<Json> MeasureCrowd(int right, int many, const Context& context) {
  const Result<Model> model = MakeEncoder({.width = 256, .layers = 4, .heads = 4, .ffn = 1024});
  if (!model.ok()) return model.status();
  std::vector<double> medians;
  Result<Subject> few = Subject::Open(*model, {.num_threads = right, .max_tokens = 512});
  Result<Subject> crowd = Subject::Open(*model, {.num_threads = many, .max_tokens = 512});
  if (!few.ok()) return few.status();
  if (!crowd.ok()) return crowd.status();
  const Batch batch = few->MakeBatch(1, 128);
  const Result<std::vector<double>> right_times = few->Times(batch, context.effort.cell_s, 5);
  const Result<std::vector<double>> many_times = crowd->Times(batch, context.effort.cell_s, 5);
  if (!right_times.ok()) return right_times.status();
  if (!many_times.ok()) return many_times.status();
  const double one = Median(*right_times), other = Median(*many_times);
  return Json{{"right_threads", right},
              {"right_s", one},
              {"many_threads", many},
              {"many_s", other},
              {"ratio", other / one}};
}

double ProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Processor time of 300 ms, from 100 ms after the last run on.
Result<Json> MeasureIdle(const Model& model) {
  Result<Subject> subject = Subject::Open(model, {.num_threads = 2, .max_tokens = 64});
  if (!subject.ok()) return subject.status();
  const Batch batch = subject->MakeBatch(2, 8);
  const Result<std::vector<double>> times = subject->Times(batch, 0.01, 10);
  if (!times.ok()) return times.status();
  SleepFor(0.1);
  const double before = ProcessorSeconds();
  SleepFor(0.3);
  return Json{{"after_s", 0.1}, {"during_s", 0.3}, {"processor_s", ProcessorSeconds() - before}};
}

}  // namespace

Result<Json> MeasureThreads(const Context& context) {
  context.progress("threads");
  const Result<Model> model = MakeEncoder({.width = 16, .layers = 1, .heads = 1, .ffn = 32});
  if (!model.ok()) return model.status();
  Json overhead = Json::array();
  for (const auto& [threads, share] : {std::pair(1, Share::kAuto), std::pair(2, Share::kAuto),
                                       std::pair(2, Share::kRows), std::pair(2, Share::kColumns)}) {
    Result<Json> one = MeasureOverhead(*model, threads, share, context);
    if (!one.ok()) return one.status();
    overhead.push_back(*std::move(one));
  }
  const int right = AdviseThreads().num_threads;
  Result<Json> crowd = MeasureCrowd(right, std::min(4 * right, 64), context);
  if (!crowd.ok()) return crowd.status();
  Result<Json> idle = MeasureIdle(*model);
  if (!idle.ok()) return idle.status();
  return Json{{"overhead", overhead}, {"too_many", *crowd}, {"idle", *idle}};
}

}  // namespace attend::bench
