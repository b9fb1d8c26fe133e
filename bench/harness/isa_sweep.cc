#include "bench/harness/isa_sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attend/attend.h"
#include "bench/harness/stats.h"
#include "bench/harness/worker.h"

namespace attend::bench {
namespace {

constexpr const char* kPrecisions[] = {"f32", "bf16", "int8"};
constexpr std::pair<int64_t, int64_t> kCells[] = {{1, 16}, {1, 128}, {8, 128}};

// All numbers of the outputs, one behind the other.
std::vector<double> Numbers(const Json& outputs) {
  std::vector<double> numbers;
  for (const auto& [name, list] : outputs.items()) {
    for (const Json& value : list) numbers.push_back(value.is_null() ? NAN : value.get<double>());
  }
  return numbers;
}

double LargestDifference(const std::vector<double>& one, const std::vector<double>& other) {
  if (one.size() != other.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    const double difference = std::abs(one[i] - other[i]);
    if (!(difference <= largest)) largest = difference;  // a NaN too
  }
  return largest;
}

Result<Json> MeasureRow(Worker& worker, const Context& context) {
  Json cells = Json::array();
  const int64_t longest = worker.facts()["max_length"];
  for (const auto& [sequences, length] : kCells) {
    if (context.stop()) return Stopped();
    const int64_t mine = std::min(length, longest);
    const Result<std::vector<double>> times =
        worker.Time(sequences, mine, sequences == 1 ? context.effort.least_runs / 2 : 3,
                    context.effort.cell_s / 2);
    if (!times.ok()) return times.status();
    const double median = Median(*times);
    cells.push_back({{"batch", sequences},
                     {"length", mine},
                     {"runs", times->size()},
                     {"median_s", median},
                     {"tokens_per_s", static_cast<double>(sequences * mine) / median}});
  }
  return cells;
}

}  // namespace

Result<Json> SweepIsas(const std::vector<std::string>& command, const Context& context) {
  std::vector<std::string> isas = AvailableIsas();
  std::reverse(isas.begin(), isas.end());
  std::vector<double> reference;
  double largest_output = 0;
  Json rows = Json::array();
  for (const std::string& isa : isas) {
    for (const char* precision : kPrecisions) {
      context.progress(isa + ", " + precision);
      Json row = {{"isa", isa}, {"precision", precision}};
      std::vector<std::string> argv = command;
      argv.insert(argv.end(), {"--isa", isa, "--precision", precision});
      const Result<std::unique_ptr<Worker>> worker = Worker::Start(argv);
      if (!worker.ok()) {
        if (worker.status().code() != ErrorCode::kUnsupported) return worker.status();
        row["left_out"] = worker.status().what();
        rows.push_back(row);
        continue;
      }
      const Result<Json> outputs = (*worker)->Ask("outputs");
      if (!outputs.ok()) return outputs.status();
      const std::vector<double> numbers = Numbers(*outputs);
      if (reference.empty()) {
        reference = numbers;
        for (const double number : numbers) {
          largest_output = std::max(largest_output, std::abs(number));
        }
      }
      Result<Json> cells = MeasureRow(**worker, context);
      if (!cells.ok()) return cells.status();
      row["largest_difference"] = LargestDifference(numbers, reference);
      row["weight_bytes"] = (*worker)->facts()["weight_bytes"];
      row["cells"] = *std::move(cells);
      rows.push_back(row);
    }
  }
  return Json{{"compared_with", isas.front() + ", f32"},
              {"largest_output", largest_output},
              {"rows", rows}};
}

}  // namespace attend::bench
