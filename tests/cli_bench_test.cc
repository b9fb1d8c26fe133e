// attend bench: its document, its page, comparisons, and what bad options are answered. Times are
// looked at for their presence alone.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/child.h"

namespace attend::testing {
namespace {

using nlohmann::json;

const std::string& Tagger() { return Models::Get().tagger; }

std::string SomeTexts(const TemporaryFolder& folder) {
  return folder.Write("texts", "I saw a saw\n\nIt is a long way to the end of the line.\nyes\n");
}

// A document of everything there is.
const json& Whole() {
  static const json document = [] {
    const TemporaryFolder folder;
    const Outcome outcome =
        Attend({"bench", Tagger(), "--quick", "--threads", "2", "--isa", "all", "--load", "--text",
                SomeTexts(folder), "--report", folder / "report", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json whole = outcome.code == 0 ? outcome.objects().at(0) : json();
    EXPECT_EQ(json::parse(ReadFile(folder / "report/bench.json")), whole);
    return whole;
  }();
  return document;
}

void ExpectKeys(const json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) EXPECT_TRUE(object.contains(key)) << key << " in " << object;
}

TEST(Bench, DocumentHead) {
  const json& document = Whole();
  ExpectKeys(document, {"attend", "command", "date", "machine", "model", "settings"});
  ExpectKeys(document.at("machine"), {"cpu", "caches", "isa", "isas", "threads_reason"});
  EXPECT_TRUE(document.at("command").get<std::string>().starts_with("attend bench "));
  EXPECT_EQ(document.at("settings").at("threads"), 2);
  EXPECT_EQ(document.at("model").at("file"), Tagger());
}

TEST(Bench, DocumentGrids) {
  const json& document = Whole();
  for (const char* section : {"latency", "throughput"}) {
    ASSERT_FALSE(document.at(section).empty());
    for (const json& cell : document.at(section)) {
      ExpectKeys(cell, {"batch", "length", "runs", "p90_s", "p99_s", "limit"});
      EXPECT_GT(cell.at("median_s"), 0);
      EXPECT_GE(cell.at("p99_s"), cell.at("median_s"));
      const json& limit = cell.at("limit");
      const double gemm = limit.at("gemm_s"), weights = limit.at("weights_s");
      EXPECT_NEAR(limit.at("limit_s").get<double>(),
                  std::max(gemm, weights) + limit.at("attention_s").get<double>(), 1e-12);
      EXPECT_NEAR(cell.at("share_of_limit").get<double>() * cell.at("median_s").get<double>(),
                  limit.at("limit_s").get<double>(), 1e-9);
    }
  }
  const json& texts = document.at("texts");
  EXPECT_EQ(texts.at("texts"), 4);
  EXPECT_GT(texts.at("tokens_per_s"), 0);
}

TEST(Bench, DocumentRatesAndSteps) {
  const json& document = Whole();
  EXPECT_GT(document.at("rates").at("gemm").at(0).at("flops"), 1e8);
  EXPECT_GE(document.at("rates").at("read").size(), 3u);
  ASSERT_FALSE(document.at("steps").empty());
  for (const json& run : document.at("steps")) {
    double flops = 0;
    int attentions = 0;
    for (const json& step : run.at("steps")) {
      ExpectKeys(step, {"step", "count", "flops_per_s", "bytes_per_s", "bound", "limit_s"});
      EXPECT_GT(step.at("time_s"), 0);
      EXPECT_GT(step.at("row_bytes"), 0);
      flops += step.at("flops").get<double>();
      if (Has(step.at("step"), "attention")) attentions += step.at("count").get<int>();
    }
    EXPECT_EQ(attentions, document.at("model").at("num_layers"));
    const json& limit = run.at("limit");
    EXPECT_NEAR(flops,
                limit.at("gemm_flops").get<double>() + limit.at("attention_flops").get<double>(),
                flops * 1e-9);
  }
}

TEST(Bench, DocumentLoadThreadsLoadingMemory) {
  const json& document = Whole();
  const json& load = document.at("load");
  ASSERT_EQ(load.at("rates").size(), 4u);
  for (const json& rate : load.at("rates")) {
    EXPECT_LE(rate.at("p50_s"), rate.at("p99_s"));
    EXPECT_LE(rate.at("p99_s"), rate.at("p999_s"));
    EXPECT_NEAR(
        rate.at("requests_per_s").get<double>(),
        rate.at("share_of_capacity").get<double>() * load.at("capacity_per_s").get<double>(), 1e-6);
  }
  ExpectKeys(load.at("cold"), {"p50_s", "p99_s", "pause_s"});
  const json& threads = document.at("threads");
  EXPECT_EQ(threads.at("overhead").size(), 4u);
  ExpectKeys(threads.at("too_many"), {"ratio", "right_threads", "many_threads"});
  ExpectKeys(threads.at("idle"), {"processor_s"});
  for (const char* kind : {"warm", "cold"}) {
    ExpectKeys(document.at("loading").at(kind), {"load_s", "create_s", "first_run_s", "total_s"});
  }
  EXPECT_EQ(document.at("memory").at("file_bytes"),
            static_cast<int64_t>(std::filesystem::file_size(Tagger())));
  EXPECT_GT(document.at("memory").at("weight_bytes"), 0);
}

TEST(Bench, EveryIsaTimesEveryPrecision) {
  const json& isas = Whole().at("isas");
  const json& rows = isas.at("rows");
  ASSERT_EQ(rows.size(), 3 * AvailableIsas().size());
  for (const json& row : rows) {
    if (row.contains("left_out")) {
      EXPECT_NE(row.at("precision"), "f32");
      EXPECT_NE(row.at("left_out"), "");
      continue;
    }
    EXPECT_EQ(row.at("cells").size(), 3u);
    if (row.at("precision") != "f32") continue;
    EXPECT_LT(row.at("largest_difference"), 1e-3);
    const bool same = row.at("isa") == AvailableIsas().back();
    EXPECT_TRUE(!same || row.at("largest_difference") == 0);
  }
}

TEST(Bench, TablesForPeople) {
  const Outcome outcome =
      Attend({"bench", Tagger(), "--quick", "--sections", "latency,memory", "--threads", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(Has(outcome.out, "\nLatency, batch 1\n"));
  EXPECT_TRUE(Has(outcome.out, "\nMemory, "));
  EXPECT_FALSE(Has(outcome.out, "Throughput"));
  EXPECT_EQ(outcome.err, "");
}

// Every tag that is opened is closed, in order.
void ExpectWellFormed(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    if (tag[0] == '!' || tag.back() == '/') continue;
    if (tag[0] != '/') {
      open.push_back(tag.substr(0, tag.find_first_of(" \n")));
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    ASSERT_EQ(open.back(), tag.substr(1));
    open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

TEST(Bench, ReportStandsAlone) {
  const TemporaryFolder folder;
  const Outcome outcome = Attend(
      {"bench", Tagger(), "--quick", "--load", "--isa", "all", "--report", folder / "deep/<&>"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = ReadFile(folder / "deep/<&>/index.html");
  ExpectWellFormed(page);
  for (const char* part : {"src=", "href=", "url(", "@import", "<script", "NaN", "nan", "inf\""}) {
    EXPECT_FALSE(Has(page, part)) << part;
  }
  EXPECT_TRUE(Has(page, "prefers-color-scheme:dark"));
  EXPECT_TRUE(Has(page, "deep/&lt;&amp;&gt;")) << "the command, escaped";
  for (const char* part : {"Latency, batch 1", "Throughput", "Roofline", "Open loop",
                           "by instruction set", "oneDNN"}) {
    EXPECT_TRUE(Has(page, part)) << part;
  }
  const json document = json::parse(ReadFile(folder / "deep/<&>/bench.json"));
  EXPECT_TRUE(Has(page, document.at("machine").at("cpu").get<std::string>()));
}

TEST(Bench, Compare) {
  const TemporaryFolder folder;
  const std::string a = folder / "a.json", b = folder / "b.json";
  const Outcome made = Attend({"bench", Tagger(), "--quick", "--sections", "latency", "--json", a});
  ASSERT_EQ(made.code, 0) << made.err;
  json document = json::parse(ReadFile(a));
  const double before = document["latency"][1]["median_s"];
  document["latency"][1]["median_s"] = 2 * before;
  document["settings"]["threads"] = 77;
  folder.Write("b.json", document.dump());

  const Outcome same = Attend({"bench", "--compare", a, a, "--json", "--fail-above", "1.01"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_TRUE(same.objects().at(0).at("differs").empty());
  for (const json& cell : same.objects().at(0).at("cells")) EXPECT_EQ(cell.at("ratio"), 1);

  const Outcome slower = Attend({"bench", "--compare", a, b, "--json", "--fail-above", "1.9"});
  EXPECT_EQ(slower.code, 6);
  EXPECT_TRUE(Has(slower.error().at("what"), "latency 1 x 16 takes 2.000 times as long"));
  EXPECT_EQ(slower.objects().at(0).at("worst").at("ratio"), 2);
  EXPECT_EQ(slower.objects().at(0).at("differs").size(), 1u);
  EXPECT_EQ(Attend({"bench", "--compare", a, b, "--fail-above", "2.1"}).code, 0);
  EXPECT_EQ(Attend({"bench", "--compare", b, a, "--fail-above", "1.9"}).code, 0);

  const std::string other = folder.Write("other.json", "{\"a\": 1}");
  EXPECT_EQ(Attend({"bench", "--compare", a, other}).code, 3);
  EXPECT_EQ(Attend({"bench", "--compare", a, folder.Write("bad.json", "{")}).code, 3);
  EXPECT_EQ(Attend({"bench", "--compare", a, folder / "missing.json"}).code, 4);
}

TEST(Bench, SidesInTurns) {
  const Outcome outcome = Attend({"bench", Tagger(), "--quick", "--threads", "2", "--ab",
                                  "--share rows --threads=1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json sides = outcome.objects().at(0);
  EXPECT_EQ(sides.at("a").at("facts").at("threads"), 2);
  EXPECT_EQ(sides.at("b").at("facts").at("threads"), 1);
  ASSERT_FALSE(sides.at("cells").empty());
  for (const json& cell : sides.at("cells")) {
    EXPECT_GT(cell.at("ratio"), 0);
    EXPECT_LE(cell.at("low"), cell.at("ratio"));
    EXPECT_GE(cell.at("high"), cell.at("ratio"));
    EXPECT_LE(cell.at("noise_low"), cell.at("noise"));
    EXPECT_GE(cell.at("noise_high"), cell.at("noise"));
  }
  const Outcome program = Attend({"bench", Tagger(), "--quick", "--ab-program", ProgramPath(),
                                  "--pairs", "2", "--fail-above", "1e9"});
  EXPECT_EQ(program.code, 0) << program.err;
  EXPECT_TRUE(Has(program.out, "A / A"));
  EXPECT_EQ(Attend({"bench", Tagger(), "--quick", "--ab-program", ProgramPath(), "--pairs", "2",
                    "--fail-above", "1e-9"})
                .code,
            6);
}

TEST(Bench, SidesThatCannotRun) {
  const Outcome option = Attend({"bench", Tagger(), "--quick", "--ab", "--precision bf16 --isa x"});
  EXPECT_NE(option.code, 0);
  EXPECT_EQ(Attend({"bench", Tagger(), "--ab-program", "/nowhere/attend"}).code, 4);
  // A program that does not know what it is asked.
  EXPECT_EQ(Attend({"bench", Tagger(), "--ab-program", "/bin/true"}).code, 4);
}

TEST(Bench, Serve) {
  const Outcome outcome = Attend({"bench", "--serve", "-m", Tagger(), "--quick"},
                                 "time 1 8 3 0\nnonsense\ntime 0 8 3 0\ntexts\noutputs\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> lines = outcome.objects();
  ASSERT_EQ(lines.size(), 6u);
  ExpectKeys(lines[0], {"isa", "precision", "threads", "weight_bytes"});
  EXPECT_EQ(lines[1].size(), 3u);
  for (const int i : {2, 3, 4}) EXPECT_TRUE(lines[i].contains("error")) << lines[i];
  EXPECT_FALSE(lines[5].at("logits").empty());
}

TEST(Bench, OptionsThatMakeNoSense) {
  const std::vector<std::vector<std::string>> cases = {
      {"--sections", "nothing"},
      {"--seconds", "0"},
      {"--seconds", "x"},
      {"--fail-above", "2"},
      {"--fail-above", "-1", "--compare", "a", "b"},
      {"--compare", "a.json"},
      {"--isa", "all", "--ab", "--threads 1"},
      {"--ab", "--threads 1", "--report", "x"},
      {"--ab", "--threads 1", "--serve"},
      {"--share", "everything"},
      {"--pairs", "0"},
      {"one.attend", "two.attend"},
      {"--report="},
  };
  for (const std::vector<std::string>& options : cases) {
    std::vector<std::string> arguments = {"bench"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = Attend(arguments);
    EXPECT_EQ(outcome.code, 2) << options[0] << " " << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(Attend({"bench", "missing.attend"}).code, 4);
  EXPECT_EQ(Attend({"bench", Tagger(), "--quick", "--text", "missing"}).code, 4);
  const TemporaryFolder folder;
  EXPECT_EQ(Attend({"bench", folder.Write("x.attend", "no model")}).code, 3);
}

// Models without ids, with a decoder, and with graphs.
TEST(Bench, EveryKindOfModel) {
  const TemporaryFolder folder;
  const auto convert = [&folder](const std::string& source) {
    const std::string path = folder / "m.attend";
    EXPECT_EQ(Attend({"convert", std::string(ATTEND_TEST_DATA) + "/" + source, "-o", path}).code,
              0);
    return path;
  };
  for (const char* source : {"hf/t5", "hf/gpt2", "hf/bert"}) {
    const Outcome outcome = Attend(
        {"bench", convert(source), "--quick", "--sections", "latency,throughput,steps", "--json"});
    EXPECT_EQ(outcome.code, 0) << source << outcome.err;
  }
  const Outcome graph = Attend({"bench", convert("family/edges_softmax"), "--quick", "--json"});
  EXPECT_EQ(graph.code, 3);
  EXPECT_TRUE(Has(graph.error().at("what"), "edges"));
}

}  // namespace
}  // namespace attend::testing
