// The sections of a bench run. Each measures, and gives its part of the document.
#ifndef ATTEND_BENCH_HARNESS_SECTIONS_H_
#define ATTEND_BENCH_HARNESS_SECTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"
#include "bench/harness/json.h"
#include "bench/harness/rates.h"
#include "bench/harness/subject.h"

namespace attend::bench {

// How much of everything.
struct Effort {
  double cell_s = 0.5;   // of one cell of a grid
  double rate_s = 0.05;  // of one rate
  int least_runs = 20;   // of a cell, if one takes long
  std::vector<int64_t> lengths = {8, 16, 32, 64, 128, 256, 512};
  std::vector<int64_t> batches = {8, 32};
  std::vector<int64_t> batch_lengths = {16, 64, 128, 512};
  std::vector<int64_t> step_lengths = {8, 128};  // of the per-step times, batch 1
  int64_t text_batch = 32;
  int loads = 5;
  int64_t requests = 2000;  // of one rate of arrivals, at most
  double rate_most_s = 30;  // of one rate: fewer requests where they would take longer
  int pauses = 20;          // runs after a pause
  double pause_s = 0.2;
};

// The least that has every key: for tests, and to see whether it works.
Effort QuickEffort();

// What a section is given. `progress` shows a line to people; `stop` says that they want to end.
struct Context {
  Effort effort;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };
};

// The error of a run that was stopped.
Status Stopped();

// Batch 1 over lengths: [{"batch", "length", "runs", "median_s", "p90_s", "p99_s", "limit",
// "share_of_limit"}].
Result<Json> MeasureLatency(Subject& subject, const Rates* rates, const Context& context);

// Batches over lengths: the same, with "tokens_per_s".
Result<Json> MeasureThroughput(Subject& subject, const Rates* rates, const Context& context);

// Texts in batches of 32, as they come.
Result<Json> MeasureTexts(Subject& subject, const Texts& texts, const Rates* rates,
                          const Context& context);

// The steps of a run, those that are alike in different layers together.
Result<Json> MeasureSteps(Subject& subject, const Rates& rates, const Context& context);

// Load, Create and the first run, with the file's pages in memory and without. Requires: nobody in
// this process has the model open, whose pages would stay.
Result<Json> MeasureLoading(const std::string& path, const SessionOptions& options,
                            const Context& context);

// Bytes: of the file, the Session, packed weights, and of the process before and after.
Json MeasureMemory(Subject& subject, int64_t resident_before);

// Open loop: requests of one sequence arrive by a Poisson process at 30, 50, 70 and 85 % of what
// one after the other gives, and wait for each other. Latency counts from the arrival.
Result<Json> MeasureLoad(Subject& subject, const std::vector<Batch>& requests, uint64_t seed,
                         const Context& context);

// What threads cost: a run of a model with next to no work, hot, asleep and with too many threads;
// and what they take when nothing runs.
Result<Json> MeasureThreads(const Context& context);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_SECTIONS_H_
