// Requests that come when they come: an open loop. A server that measures only how long its own
// work takes does not see the queue before it; here latency counts from the scheduled arrival.
#include <algorithm>
#include <cmath>

#include "bench/harness/sections.h"
#include "bench/harness/stats.h"
#include "bench/harness/timing.h"

namespace attend::bench {
namespace {

// Waits until `when`: asleep, and the last stretch, which is about as long as the system
// oversleeps, awake.
void WaitUntil(double when) {
  SleepFor(when - Now() - 150e-6);
  while (Now() < when) {
  }
}

// A cycle of requests, run one after the other.
struct Service {
  Subject& subject;
  const std::vector<Batch>& requests;
  size_t next = 0;

  Result<double> RunNext() { return subject.Run(requests[next++ % requests.size()]); }
};

// Requests a second when each follows the one before at once.
Result<double> Capacity(Service* service, int64_t count, const Context& context) {
  for (size_t i = 0; i < std::min<size_t>(service->requests.size(), 64); ++i) {
    const Result<double> warm = service->RunNext();
    if (!warm.ok()) return warm.status();
  }
  const double start = Now();
  for (int64_t i = 0; i < count; ++i) {
    if (context.stop()) return Stopped();
    const Result<double> taken = service->RunNext();
    if (!taken.ok()) return taken.status();
  }
  return static_cast<double>(count) / (Now() - start);
}

Result<Json> RunRate(Service* service, double share, double rate, uint64_t seed,
                     const Context& context) {
  const double most = std::max(context.effort.rate_most_s * rate, 20.0);
  const int64_t count = std::min(context.effort.requests, static_cast<int64_t>(most));
  const std::vector<double> arrivals = PoissonArrivals(count, rate, seed);
  std::vector<double> latencies;
  latencies.reserve(arrivals.size());
  double busy = 0;
  const double start = Now() + 1e-3;
  for (const double arrival : arrivals) {
    if (context.stop()) return Stopped();
    WaitUntil(start + arrival);
    const Result<double> taken = service->RunNext();
    if (!taken.ok()) return taken.status();
    latencies.push_back(Now() - start - arrival);
    busy += *taken;
  }
  return Json{{"share_of_capacity", share},           {"requests_per_s", rate},
              {"requests", arrivals.size()},          {"p50_s", Percentile(latencies, 0.5)},
              {"p99_s", Percentile(latencies, 0.99)}, {"p999_s", Percentile(latencies, 0.999)},
              {"worst_s", Percentile(latencies, 1)},  {"busy", busy / (Now() - start)}};
}

// Single requests after a pause in which threads fall asleep and caches go to others.
Result<Json> RunCold(Service* service, const Context& context) {
  std::vector<double> latencies;
  for (int i = 0; i < context.effort.pauses; ++i) {
    if (context.stop()) return Stopped();
    SleepFor(context.effort.pause_s);
    const Result<double> taken = service->RunNext();
    if (!taken.ok()) return taken.status();
    latencies.push_back(*taken);
  }
  return Json{{"pause_s", context.effort.pause_s},
              {"requests", latencies.size()},
              {"p50_s", Percentile(latencies, 0.5)},
              {"p99_s", Percentile(latencies, 0.99)},
              {"worst_s", Percentile(latencies, 1)}};
}

}  // namespace

Result<Json> MeasureLoad(Subject& subject, const std::vector<Batch>& requests, uint64_t seed,
                         const Context& context) {
  Service service{subject, requests};
  context.progress("capacity");
  const Result<double> capacity =
      Capacity(&service, std::max<int64_t>(context.effort.requests / 4, 10), context);
  if (!capacity.ok()) return capacity.status();
  double tokens = 0;
  for (const Batch& request : requests) tokens += static_cast<double>(request.tokens());
  Json rates = Json::array();
  for (const double share : {0.30, 0.50, 0.70, 0.85}) {
    context.progress("arrivals at " + std::to_string(static_cast<int>(share * 100 + 0.5)) + " %");
    Result<Json> rate = RunRate(&service, share, share * *capacity,
                                seed + static_cast<uint64_t>(rates.size()), context);
    if (!rate.ok()) return rate.status();
    rates.push_back(*std::move(rate));
  }
  context.progress("after pauses");
  Result<Json> cold = RunCold(&service, context);
  if (!cold.ok()) return cold.status();
  return Json{{"kinds_of_requests", requests.size()},
              {"mean_tokens", tokens / static_cast<double>(requests.size())},
              {"seed", seed},
              {"capacity_per_s", *capacity},
              {"rates", rates},
              {"cold", *std::move(cold)}};
}

}  // namespace attend::bench
