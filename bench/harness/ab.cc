#include "bench/harness/ab.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "bench/harness/stats.h"
#include "bench/harness/worker.h"

namespace attend::bench {
namespace {

constexpr int kResamples = 2000;

struct Case {
  std::string name;
  int64_t sequences = 0, length = 0;  // 0: the texts
};

std::vector<Case> CasesOf(const Json& facts, const Context& context) {
  std::vector<Case> cases;
  const int64_t longest = facts["max_length"];
  for (const int64_t length : context.effort.lengths) {
    if (length > longest) continue;
    cases.push_back({"1 x " + std::to_string(length), 1, length});
  }
  const int64_t sequences = context.effort.batches.front();
  const int64_t length = std::min<int64_t>(context.effort.batch_lengths.back(), 128);
  if (length <= longest) {
    cases.push_back(
        {std::to_string(sequences) + " x " + std::to_string(length), sequences, length});
  }
  if (facts["texts"].get<int64_t>() > 0) cases.push_back({"texts as they come"});
  return cases;
}

// Seconds of one turn.
Result<double> Turn(Worker& worker, const Case& one, int runs) {
  // A pool that spins after its last run must not do so in the other's turn.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (one.length == 0) {
    const Result<Json> answer = worker.Ask("texts");
    if (!answer.ok()) return answer.status();
    return answer->get<double>();
  }
  const Result<std::vector<double>> times = worker.Time(one.sequences, one.length, runs, 0);
  if (!times.ok()) return times.status();
  return Median(*times);
}

// What pairs of turns gave.
struct Pairs {
  std::vector<double> one, other, ratios;
};

// One other other one.
Status RunPair(Worker& one, Worker& other, const Case& which, int runs, Pairs* pairs) {
  double times[4];
  Worker* const order[4] = {&one, &other, &other, &one};
  for (int i = 0; i < 4; ++i) {
    const Result<double> turn = Turn(*order[i], which, runs);
    if (!turn.ok()) return turn.status();
    times[i] = *turn;
  }
  pairs->one.push_back((times[0] + times[3]) / 2);
  pairs->other.push_back((times[1] + times[2]) / 2);
  pairs->ratios.push_back((times[1] + times[2]) / (times[0] + times[3]));
  return Status();
}

struct Workers {
  std::unique_ptr<Worker> a, b, again;  // `again`: another A
};

Result<Json> MeasureCase(const Workers& workers, const Case& which, int pairs,
                         const Context& context) {
  const Result<double> first = Turn(*workers.a, which, 3);
  const Result<double> second = Turn(*workers.b, which, 3);
  if (!first.ok()) return first.status();
  if (!second.ok()) return second.status();
  const int runs = static_cast<int>(std::clamp(0.03 / std::max(*first, *second), 1.0, 100.0));
  Pairs sides, noise;
  for (int i = 0; i < pairs; ++i) {
    if (context.stop()) return Stopped();
    context.progress(which.name + ", pair " + std::to_string(i + 1));
    ATTEND_RETURN_IF_ERROR(RunPair(*workers.a, *workers.b, which, runs, &sides));
    ATTEND_RETURN_IF_ERROR(RunPair(*workers.a, *workers.again, which, runs, &noise));
  }
  const Interval interval = BootstrapMedian(sides.ratios, kResamples, 1);
  const Interval noise_interval = BootstrapMedian(noise.ratios, kResamples, 2);
  return Json{{"case", which.name},
              {"pairs", pairs},
              {"runs_a_turn", runs},
              {"a_s", Median(sides.one)},
              {"b_s", Median(sides.other)},
              {"ratio", Median(sides.ratios)},
              {"low", interval.low},
              {"high", interval.high},
              {"noise", Median(noise.ratios)},
              {"noise_low", noise_interval.low},
              {"noise_high", noise_interval.high}};
}

std::string Joined(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

Result<Json> CompareSides(const AbSides& sides, int pairs, const Context& context) {
  Workers workers;
  for (const auto& [worker, command] :
       {std::pair(&workers.a, &sides.a), std::pair(&workers.b, &sides.b),
        std::pair(&workers.again, &sides.a)}) {
    Result<std::unique_ptr<Worker>> started = Worker::Start(*command);
    if (!started.ok()) return started.status();
    *worker = *std::move(started);
  }
  Json cells = Json::array();
  for (const Case& one : CasesOf(workers.a->facts(), context)) {
    Result<Json> cell = MeasureCase(workers, one, pairs, context);
    if (!cell.ok()) return cell.status();
    cells.push_back(*std::move(cell));
  }
  return Json{{"a", {{"command", Joined(sides.a)}, {"facts", workers.a->facts()}}},
              {"b", {{"command", Joined(sides.b)}, {"facts", workers.b->facts()}}},
              {"cells", cells}};
}

}  // namespace attend::bench
