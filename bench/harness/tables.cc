// Which tables a document has.
#include <cstdio>
#include <string>
#include <utility>

#include "bench/harness/print.h"

namespace attend::bench {
namespace {

std::string Size(const Json& cell) {
  return cell.at("batch").dump() + " x " + cell.at("length").dump();
}

std::string ShareOf(const Json& cell) {
  return cell.contains("share_of_limit") ? Percent(NumberOf(cell, "share_of_limit")) : "-";
}

TitledTable RatesTable(const Json& rates) {
  TextTable table({"what", "one core", "all threads"});
  for (const Json& rate : rates.at("gemm")) {
    table.Add({"GEMM " + TextOf(rate, "precision") + ", " + TextOf(rate, "implementation") +
                   ", 64 x " + rate.at("n").dump() + " x " + rate.at("k").dump(),
               PerSecond(NumberOf(rate, "one_core_flops"), "FLOP"),
               PerSecond(NumberOf(rate, "flops"), "FLOP")});
  }
  for (const Json& rate : rates.at("read")) {
    table.Add({"reading " + TextOf(rate, "level") + ", " +
                   Fixed(NumberOf(rate, "bytes_a_thread") / 1024, 0) + " KiB a thread",
               PerSecond(NumberOf(rate, "one_core_bytes_per_s"), "B"),
               PerSecond(NumberOf(rate, "bytes_per_s"), "B")});
  }
  return {"rates", "What the machine can do, measured in this run", "", table};
}

TitledTable LatencyTable(const Json& cells) {
  TextTable table({"tokens", "median", "p90", "p99", "runs", "share of the limit"});
  for (const Json& cell : cells) {
    table.Add({cell.at("length").dump(), Milliseconds(NumberOf(cell, "median_s")),
               Milliseconds(NumberOf(cell, "p90_s")), Milliseconds(NumberOf(cell, "p99_s")),
               cell.at("runs").dump(), ShareOf(cell)});
  }
  return {"latency", "Latency, batch 1", "", table};
}

TitledTable ThroughputTable(const Json& cells) {
  TextTable table({"batch x tokens", "median", "throughput", "runs", "share of the limit"});
  for (const Json& cell : cells) {
    table.Add({Size(cell), Milliseconds(NumberOf(cell, "median_s")),
               PerSecond(NumberOf(cell, "tokens_per_s"), "tokens"), cell.at("runs").dump(),
               ShareOf(cell)});
  }
  return {"throughput", "Throughput", "", table};
}

TitledTable TextsTable(const Json& texts) {
  if (texts.contains("left_out")) {
    return {"texts", "Texts as they come", "left out: " + TextOf(texts, "left_out"), TextTable({})};
  }
  TextTable table({"texts", "tokens", "all of them", "tokens", "texts", "share of the limit"});
  table.Add({texts.at("texts").dump(), texts.at("tokens").dump(),
             Seconds(NumberOf(texts, "median_s")), PerSecond(NumberOf(texts, "tokens_per_s"), ""),
             PerSecond(NumberOf(texts, "texts_per_s"), ""), ShareOf(texts)});
  return {"texts", "Texts as they come, in batches of " + texts.at("texts_a_batch").dump(), "",
          table};
}

// The limit, term by term.
std::string LimitNote(const Json& limit) {
  return "limit " + Seconds(NumberOf(limit, "limit_s")) + " = max(" +
         Fixed(NumberOf(limit, "gemm_flops") / 1e9, 3) + " GFLOP" + " / " +
         PerSecond(NumberOf(limit, "gemm_flops_per_s"), "FLOP") + " = " +
         Seconds(NumberOf(limit, "gemm_s")) + ", " + Mebibytes(NumberOf(limit, "weight_bytes")) +
         " of weights / " + PerSecond(NumberOf(limit, "read_bytes_per_s"), "B") + " (" +
         TextOf(limit, "weights_in") + ") = " + Seconds(NumberOf(limit, "weights_s")) +
         ") + attention " + Seconds(NumberOf(limit, "attention_s"));
}

TitledTable StepsTable(const Json& run) {
  TextTable table(
      {"step", "count", "time", "of the run", "FLOP", "bytes", "bound", "of its limit"});
  if (run.contains("left_out")) {
    return {"steps", "Steps of " + Size(run), "left out: " + TextOf(run, "left_out"),
            TextTable({})};
  }
  const double all = run.at("run_s");
  for (const Json& step : run.at("steps")) {
    table.Add({TextOf(step, "step"), step.at("count").dump(), Seconds(NumberOf(step, "time_s")),
               Percent(NumberOf(step, "time_s") / all),
               NumberOf(step, "flops") > 0 ? PerSecond(NumberOf(step, "flops_per_s"), "FLOP") : "-",
               PerSecond(NumberOf(step, "bytes_per_s"), "B"), TextOf(step, "bound"),
               ShareOf(step)});
  }
  table.Add({"waiting for other threads", "", Seconds(NumberOf(run, "waiting_s")),
             Percent(NumberOf(run, "waiting_s") / all), "", "", "", ""});
  return {"steps",
          "Steps of " + Size(run) + " tokens, by " + TextOf(run, "share") + ": " + Seconds(all) +
              ", " + ShareOf(run) + " of the limit",
          LimitNote(run.at("limit")), table};
}

TitledTable LoadingTable(const Json& loading) {
  TextTable table({"file", "Load", "Create", "first run", "all", "runs"});
  for (const char* kind : {"warm", "cold"}) {
    const Json& times = loading.at(kind);
    table.Add({kind, Milliseconds(NumberOf(times, "load_s")),
               Milliseconds(NumberOf(times, "create_s")),
               Milliseconds(NumberOf(times, "first_run_s")),
               Milliseconds(NumberOf(times, "total_s")), times.at("runs").dump()});
  }
  const double kept = loading.at("cold").at("pages_kept");
  return {"loading", "From a path to the first answer",
          kept > 0.01 ? "the system kept " + Percent(kept) + " of the file: cold is not cold" : "",
          table};
}

TitledTable MemoryTable(const Json& memory) {
  TextTable table({"what", "bytes"});
  for (const auto& [key, label] :
       {std::pair("file_bytes", "file"), std::pair("weight_bytes", "packed weights"),
        std::pair("session_bytes", "session"), std::pair("resident_before_bytes", "process before"),
        std::pair("resident_bytes", "process with all of it")}) {
    table.Add({label, Mebibytes(NumberOf(memory, key))});
  }
  return {"memory", "Memory, for runs of " + memory.at("max_tokens").dump() + " tokens", "", table};
}

TitledTable ThreadsTable(const Json& threads) {
  TextTable table({"a run of next to no work", "awake", "p99", "asleep", "worst"});
  for (const Json& one : threads.at("overhead")) {
    const bool many = one.at("threads").get<int>() > 1;
    table.Add({one.at("threads").dump() + (many ? " threads, by " : " thread, by ") +
                   TextOf(one, "share") + (one.at("asked_share") == "auto" ? " (auto)" : ""),
               Seconds(NumberOf(one, "hot_s")), Seconds(NumberOf(one, "hot_p99_s")),
               Seconds(NumberOf(one, "cold_s")), Seconds(NumberOf(one, "cold_worst_s"))});
  }
  const Json& crowd = threads.at("too_many");
  const Json& idle = threads.at("idle");
  return {"threads", "Threads",
          crowd.at("many_threads").dump() + " threads in place of " +
              crowd.at("right_threads").dump() + " take " + Fixed(NumberOf(crowd, "ratio"), 2) +
              " times as long; idle, " + Seconds(NumberOf(idle, "processor_s")) +
              " of processor in " + Seconds(NumberOf(idle, "during_s")),
          table};
}

TitledTable LoadTable(const Json& load) {
  TextTable table({"arrivals", "a second", "p50", "p99", "p99.9", "worst", "requests"});
  for (const Json& rate : load.at("rates")) {
    table.Add({Percent(NumberOf(rate, "share_of_capacity")) + " of capacity",
               Fixed(NumberOf(rate, "requests_per_s"), 1), Milliseconds(NumberOf(rate, "p50_s")),
               Milliseconds(NumberOf(rate, "p99_s")), Milliseconds(NumberOf(rate, "p999_s")),
               Milliseconds(NumberOf(rate, "worst_s")), rate.at("requests").dump()});
  }
  const Json& cold = load.at("cold");
  table.Add({"one, after " + Seconds(NumberOf(cold, "pause_s")) + " of pause", "",
             Milliseconds(NumberOf(cold, "p50_s")), Milliseconds(NumberOf(cold, "p99_s")), "",
             Milliseconds(NumberOf(cold, "worst_s")), cold.at("requests").dump()});
  return {"load", "Open loop: Poisson arrivals, latency from the arrival",
          "capacity " + Fixed(NumberOf(load, "capacity_per_s"), 1) + " requests a second of " +
              Fixed(NumberOf(load, "mean_tokens"), 1) + " tokens on average",
          table};
}

TitledTable IsasTable(const Json& isas) {
  TextTable table(
      {"ISA, precision", "1 x 16", "1 x 128", "8 x 128", "8 x 128, tokens", "difference"});
  for (const Json& row : isas.at("rows")) {
    std::vector<std::string> line = {TextOf(row, "isa") + ", " + TextOf(row, "precision")};
    if (row.contains("left_out")) {
      line.push_back("left out: " + TextOf(row, "left_out"));
    } else {
      for (const Json& cell : row.at("cells"))
        line.push_back(Milliseconds(NumberOf(cell, "median_s")));
      line.push_back(PerSecond(NumberOf(row.at("cells").back(), "tokens_per_s"), ""));
      char difference[32];
      std::snprintf(difference, sizeof(difference), "%.2e", NumberOf(row, "largest_difference"));
      line.push_back(difference);
    }
    table.Add(line);
  }
  return {"isas", "Every instruction set times every precision, a process each",
          "difference: the largest of any output to " + TextOf(isas, "compared_with") +
              "; the largest output is " + Fixed(NumberOf(isas, "largest_output"), 2),
          table};
}

}  // namespace

std::vector<TitledTable> TablesOf(const Json& document) {
  std::vector<TitledTable> tables;
  const auto add = [&](const char* name, TitledTable (*make)(const Json&)) {
    if (document.contains(name)) tables.push_back(make(document.at(name)));
  };
  add("rates", RatesTable);
  add("latency", LatencyTable);
  add("throughput", ThroughputTable);
  add("texts", TextsTable);
  if (document.contains("steps")) {
    for (const Json& run : document.at("steps")) tables.push_back(StepsTable(run));
  }
  add("isas", IsasTable);
  add("load", LoadTable);
  add("threads", ThreadsTable);
  add("loading", LoadingTable);
  add("memory", MemoryTable);
  return tables;
}

}  // namespace attend::bench
