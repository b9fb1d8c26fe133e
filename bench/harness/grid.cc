// Latency, throughput, texts.
#include <algorithm>
#include <optional>
#include <span>

#include "bench/harness/limit.h"
#include "bench/harness/sections.h"
#include "bench/harness/stats.h"

namespace attend::bench {
namespace {

Json Summary(const std::vector<double>& times) {
  return {{"runs", times.size()},
          {"median_s", Median(times)},
          {"p90_s", Percentile(times, 0.90)},
          {"p99_s", Percentile(times, 0.99)},
          {"fastest_s", *std::min_element(times.begin(), times.end())}};
}

// The limit of what took `median` seconds.
void AddLimit(const std::optional<Limit>& limit, double median, Json* cell) {
  if (!limit) return;
  (*cell)["share_of_limit"] = limit->seconds() / median;
  (*cell)["limit"] = limit->ToJson();
}

Result<Json> MeasureCell(Subject& subject, int64_t sequences, int64_t length, const Rates* rates,
                         const Context& context) {
  if (context.stop()) return Stopped();
  context.progress(std::to_string(sequences) + " x " + std::to_string(length) + " tokens");
  const Batch batch = subject.MakeBatch(sequences, length);
  const Result<std::vector<double>> times =
      subject.Times(batch, context.effort.cell_s, sequences == 1 ? context.effort.least_runs : 5);
  if (!times.ok()) return times.status();
  Json cell = {{"batch", sequences}, {"length", length}};
  cell.update(Summary(*times));
  const double median = cell["median_s"];
  cell["tokens_per_s"] = static_cast<double>(batch.tokens()) / median;
  if (rates != nullptr) AddLimit(LimitOf(subject, batch, *rates), median, &cell);
  return cell;
}

}  // namespace

Effort QuickEffort() {
  return {.cell_s = 0.002,
          .rate_s = 0.002,
          .least_runs = 3,
          .lengths = {8, 16},
          .batches = {2},
          .batch_lengths = {8, 16},
          .step_lengths = {8},
          .text_batch = 32,
          .loads = 1,
          .requests = 40,
          .pauses = 2,
          .pause_s = 0.01};
}

Status Stopped() { return Status(ErrorCode::kCancelled, "stopped before the end", "bench"); }

Result<Json> MeasureLatency(Subject& subject, const Rates* rates, const Context& context) {
  Json cells = Json::array();
  for (const int64_t length : context.effort.lengths) {
    if (length > subject.max_length()) continue;
    Result<Json> cell = MeasureCell(subject, 1, length, rates, context);
    if (!cell.ok()) return cell.status();
    cells.push_back(*std::move(cell));
  }
  return cells;
}

Result<Json> MeasureThroughput(Subject& subject, const Rates* rates, const Context& context) {
  Json cells = Json::array();
  for (const int64_t sequences : context.effort.batches) {
    for (const int64_t length : context.effort.batch_lengths) {
      if (length > subject.max_length() || sequences * length > subject.options().max_tokens) {
        continue;
      }
      Result<Json> cell = MeasureCell(subject, sequences, length, rates, context);
      if (!cell.ok()) return cell.status();
      cells.push_back(*std::move(cell));
    }
  }
  return cells;
}

Result<Json> MeasureTexts(Subject& subject, const Texts& texts, const Rates* rates,
                          const Context& context) {
  std::vector<Batch> batches;
  std::optional<double> limit = 0;
  const std::span<const std::vector<int32_t>> all(texts.ids);
  const size_t size = static_cast<size_t>(context.effort.text_batch);
  for (size_t i = 0; i < all.size(); i += size) {
    batches.push_back(subject.MakeBatch(all.subspan(i, std::min(size, all.size() - i))));
    const std::optional<Limit> mine =
        rates == nullptr ? std::nullopt : LimitOf(subject, batches.back(), *rates);
    limit = limit && mine ? std::optional(*limit + mine->seconds()) : std::nullopt;
  }
  std::vector<double> times;
  double spent = 0;
  // All batches once for warming up, then as often as a few cells' time allows.
  for (int round = 0; round < 2 || (spent < 4 * context.effort.cell_s && round < 50); ++round) {
    double sum = 0;
    for (const Batch& batch : batches) {
      if (context.stop()) return Stopped();
      const Result<double> taken = subject.Run(batch);
      if (!taken.ok()) return taken.status();
      sum += *taken;
    }
    context.progress("texts, round " + std::to_string(round + 1));
    spent += sum;
    if (round > 0) times.push_back(sum);
  }
  Json section = {{"file", texts.file},     {"texts", texts.ids.size()}, {"cut", texts.cut},
                  {"tokens", texts.tokens}, {"batches", batches.size()}, {"texts_a_batch", size}};
  section.update(Summary(times));
  const double median = section["median_s"];
  section["tokens_per_s"] = static_cast<double>(texts.tokens) / median;
  section["texts_per_s"] = static_cast<double>(texts.ids.size()) / median;
  if (limit) {
    section["limit_s"] = *limit;
    section["share_of_limit"] = *limit / median;
  }
  return section;
}

}  // namespace attend::bench
