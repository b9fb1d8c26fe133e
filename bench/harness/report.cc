#include "bench/harness/report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "bench/harness/plot.h"
#include "bench/harness/print.h"

namespace attend::bench {
namespace {

constexpr char kStyle[] = R"css(
:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--line:#d5dae1;--page:#fff;--panel:#f6f8fa;
--c0:#1256c4;--c1:#c2410c;--c2:#15803d;--c3:#7e22ce;--c4:#0e7490;--c5:#a16207}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4af;--line:#343c46;--page:#0d1117;
--panel:#161b22;--c0:#6cb6ff;--c1:#ff9a62;--c2:#5fd38a;--c3:#c99bff;--c4:#4fd0e6;--c5:#e3b341}}
*{box-sizing:border-box}
body{margin:0 auto;padding:20px 16px 40px;max-width:1440px;background:var(--page);color:var(--ink);
font:15px/1.45 system-ui,"Helvetica Neue",Arial,sans-serif}
h1{font-size:22px;margin:0 0 12px}
h2{font-size:16px;margin:26px 0 4px}
p{margin:2px 0 8px;color:var(--soft);font-size:14px;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:14px;
margin:20px 0}
figure{margin:0;padding:8px;background:var(--panel);border:1px solid var(--line);border-radius:8px;
max-width:560px}
svg{display:block;width:100%;height:auto}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:3px 14px 3px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}
td:first-child{white-space:normal;min-width:150px}
th{color:var(--soft);font-weight:600}
text{fill:var(--ink);font:12px system-ui,"Helvetica Neue",Arial,sans-serif}
.t{font-size:14px;font-weight:600}
.k{fill:var(--soft)}
.g{stroke:var(--line);stroke-width:1}
.a{stroke:var(--soft);stroke-width:1}
.l{fill:none;stroke-width:2}
.d{stroke-dasharray:5 4;stroke-width:1.5}
.p{opacity:.35}
)css";

// One rule a colour, for lines and for what is filled.
std::string ColorRules() {
  std::string rules;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    rules += ".l.s" + n + "{stroke:var(--c" + n + ")}.m.s" + n + ",.f.s" + n + "{fill:var(--c" + n +
             ")}\n";
  }
  return rules;
}

std::string Plain(double value) {
  return Fixed(value, value < 10 && value != std::floor(value) ? 1 : 0);
}

// A tick of a logarithmic axis: 1, 2 or 5 times a power of ten.
std::string Short(double value) {
  return Fixed(value, value < 0.0099 ? 3 : value < 0.099 ? 2 : value < 0.99 ? 1 : 0);
}

std::string LatencyPlot(const Json& cells) {
  LinePlot plot{.title = "Latency, batch 1",
                .x_label = "tokens",
                .y_label = "ms",
                .log_x = true,
                .log_y = true,
                .x_text = Plain,
                .y_text = Short};
  Series median{.name = "median"}, p99{.name = "99 % are faster"};
  Series limit{.name = "limit of this machine", .marks = false, .dashed = true};
  for (const Json& cell : cells) {
    const double length = NumberOf(cell, "length");
    plot.x_ticks.push_back(length);
    median.points.push_back({length, NumberOf(cell, "median_s") * 1e3});
    p99.points.push_back({length, NumberOf(cell, "p99_s") * 1e3});
    if (!cell.contains("limit")) continue;
    limit.points.push_back({length, NumberOf(cell.at("limit"), "limit_s") * 1e3});
  }
  plot.series = {median, p99};
  if (!limit.points.empty()) plot.series.push_back(limit);
  return DrawLines(plot);
}

std::string ThroughputPlot(const Json& cells) {
  LinePlot plot{.title = "Throughput",
                .x_label = "tokens of a sequence",
                .y_label = "thousand tokens/s",
                .log_x = true,
                .x_text = Plain,
                .y_text = Plain};
  std::map<int64_t, Series> by_batch;
  for (const Json& cell : cells) {
    const double length = NumberOf(cell, "length");
    Series& series = by_batch[cell.at("batch").get<int64_t>()];
    series.name = "batch " + cell.at("batch").dump();
    series.points.push_back({length, NumberOf(cell, "tokens_per_s") / 1e3});
    if (std::find(plot.x_ticks.begin(), plot.x_ticks.end(), length) == plot.x_ticks.end()) {
      plot.x_ticks.push_back(length);
    }
  }
  for (const auto& [batch, series] : by_batch) plot.series.push_back(series);
  return DrawLines(plot);
}

std::string LoadPlot(const Json& load) {
  LinePlot plot{.title = "Open loop: latency under load",
                .x_label = "arrivals, % of capacity",
                .y_label = "ms",
                .log_y = true,
                .x_text = Plain,
                .y_text = Short};
  Series p50{.name = "half are faster"}, p99{.name = "99 %"}, p999{.name = "99.9 %"};
  for (const Json& rate : load.at("rates")) {
    const double share = NumberOf(rate, "share_of_capacity") * 100;
    plot.x_ticks.push_back(share);
    p50.points.push_back({share, NumberOf(rate, "p50_s") * 1e3});
    p99.points.push_back({share, NumberOf(rate, "p99_s") * 1e3});
    p999.points.push_back({share, NumberOf(rate, "p999_s") * 1e3});
  }
  plot.series = {p50, p99, p999};
  return DrawLines(plot);
}

std::string IsaBars(const Json& isas) {
  std::vector<Bar> bars;
  std::map<std::string, int> colors;
  for (const Json& row : isas.at("rows")) {
    if (row.contains("left_out")) continue;
    const double rate = NumberOf(row.at("cells").back(), "tokens_per_s");
    const std::string precision = TextOf(row, "precision");
    const int color = colors.try_emplace(precision, static_cast<int>(colors.size())).first->second;
    bars.push_back({.name = TextOf(row, "isa") + ", " + precision,
                    .value = rate,
                    .text = PerSecond(rate, ""),
                    .color = color});
  }
  return DrawBars("Tokens a second of 8 x 128, by instruction set", bars);
}

// FLOPs by the byte across, FLOP/s up; the roof is what reading and arithmetic allow.
std::string RooflinePlot(const Json& run, const Json& rates) {
  LinePlot plot{.title = "Roofline, steps of " + run.at("batch").dump() + " x " +
                         run.at("length").dump() + " tokens",
                .x_label = "FLOP a byte",
                .y_label = "GFLOP/s",
                .log_x = true,
                .log_y = true,
                .x_text = Short,
                .y_text = Short};
  Series steps{.name = "steps, by their number in the table", .line = false};
  double low = 1e30, high = 0;
  int number = 0;
  for (const Json& step : run.at("steps")) {
    ++number;
    const double flops = NumberOf(step, "flops");
    const double bytes = NumberOf(step, "weight_bytes") + NumberOf(step, "row_bytes");
    if (flops <= 0 || bytes <= 0) continue;
    steps.points.push_back(
        {flops / bytes, NumberOf(step, "flops_per_s") / 1e9, std::to_string(number)});
    low = std::min(low, flops / bytes);
    high = std::max(high, flops / bytes);
  }
  if (steps.points.empty()) return "";
  low /= 2, high *= 2;
  plot.series = {steps};
  const double peak = NumberOf(run.at("limit"), "gemm_flops_per_s") / 1e9;
  for (const Json& rate : rates.at("read")) {
    const double bandwidth = NumberOf(rate, "bytes_per_s") / 1e9;
    Series roof{.name = "roof from " + TextOf(rate, "level"), .marks = false, .dashed = true};
    const double ridge = std::clamp(peak / bandwidth, low, high);
    for (const double x : {low, ridge, high}) {
      roof.points.push_back({x, std::min(peak, x * bandwidth)});
    }
    plot.series.push_back(roof);
  }
  return DrawLines(plot);
}

// Every step's time, and how much of it the machine could not do without.
std::string StepBars(const Json& run) {
  std::vector<Bar> bars;
  int number = 0;
  for (const Json& step : run.at("steps")) {
    const double seconds = NumberOf(step, "time_s");
    bars.push_back({.name = std::to_string(++number) + ". " + TextOf(step, "step").substr(0, 56) +
                            " (" + step.at("count").dump() + ")",
                    .value = seconds,
                    .text = Seconds(seconds),
                    .within = NumberOf(step, "share_of_limit")});
  }
  bars.push_back({.name = "waiting for other threads",
                  .value = NumberOf(run, "waiting_s"),
                  .text = Seconds(NumberOf(run, "waiting_s")),
                  .color = 1});
  return DrawBars("Time of " + run.at("batch").dump() + " x " + run.at("length").dump() +
                      " tokens by step; full: its limit",
                  bars);
}

std::string Figure(const std::string& svg) {
  return svg.empty() ? "" : "<figure>\n" + svg + "</figure>\n";
}

std::string Plots(const Json& document) {
  std::string html;
  const auto has = [&](const char* name) {
    return document.contains(name) && !document.at(name).empty();
  };
  if (has("latency")) html += Figure(LatencyPlot(document.at("latency")));
  if (has("throughput")) html += Figure(ThroughputPlot(document.at("throughput")));
  if (has("isas")) html += Figure(IsaBars(document.at("isas")));
  if (has("load")) html += Figure(LoadPlot(document.at("load")));
  if (has("steps")) {
    for (const Json& run : document.at("steps")) {
      if (run.contains("left_out")) continue;
      if (has("rates")) html += Figure(RooflinePlot(run, document.at("rates")));
      html += Figure(StepBars(run));
    }
  }
  return "<div class=\"plots\">\n" + html + "</div>\n";
}

std::string HtmlTable(const TitledTable& titled) {
  std::string html = "<h2>" + Escaped(titled.title) + "</h2>\n";
  if (!titled.note.empty()) html += "<p>" + Escaped(titled.note) + "</p>\n";
  const bool numbered = titled.section == "steps";
  html += "<div class=\"wide\"><table>\n";
  bool head = true;
  int number = 0;
  const size_t columns = titled.table.rows().front().size();
  for (const std::vector<std::string>& row : titled.table.rows()) {
    const std::string tag = head ? "th" : "td";
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      // What was left out says why across the columns that it has not.
      const size_t span = i + 1 == row.size() ? columns - i : 1;
      html += "<" + tag + (span > 1 ? " colspan=\"" + std::to_string(span) + "\"" : "") + ">";
      if (i == 0 && !head && numbered && !row[1].empty()) html += std::to_string(++number) + ". ";
      html += Escaped(row[i]) + "</" + tag + ">";
    }
    html += "</tr>\n";
    head = false;
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string DrawReport(const Json& document) {
  const std::string title = "attend bench, " + TextOf(document.at("machine"), "cpu");
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
      Escaped(title) + "</title>\n<style>" + kStyle + ColorRules() +
      "</style>\n</head>\n<body>\n<h1>" + Escaped(title) + "</h1>\n<dl>\n";
  for (const auto& [name, value] : FactsOf(document)) {
    html += "<dt>" + Escaped(name) + "</dt><dd>" + Escaped(value) + "</dd>\n";
  }
  html += "</dl>\n" + Plots(document);
  for (const TitledTable& table : TablesOf(document)) html += HtmlTable(table);
  return html + "<p>The figures behind this page: bench.json beside it.</p>\n</body>\n</html>\n";
}

}  // namespace attend::bench
