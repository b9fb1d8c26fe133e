// A trace tells what ran when: whole, nested and in order on every thread, and it changes nothing.
#include "attend/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/batcher.h"
#include "attend/text.h"
#include "engine/model.h"
#include "tests/child.h"
#include "tests/decoder_testing.h"
#include "tests/random_model.h"
#include "tests/tiny_text_model.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr int kLayers = 3;

Model SmallModel() {
  const Result<Model> model = testing::RandomModel(testing::EncoderConfig(64, kLayers, 4, 128), 1);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return *model;
}

std::vector<float> Hidden(const Model& model, SessionOptions options) {
  options.max_tokens = 512;
  Result<Session> session = Session::Create(model, options);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<int32_t> ids(300, 5), offsets = {0, 7, 300};
  const Result<Output> output = session->Run(TokenBatch{.ids = ids, .offsets = offsets});
  EXPECT_TRUE(output.ok()) << output.status().ToString();
  return {output->hidden.begin(), output->hidden.end()};
}

// The events whose name begins with `name`.
std::vector<json> Named(const json& trace, const std::string& name) {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"].get<std::string>().rfind(name, 0) == 0) found.push_back(event);
  }
  return found;
}

// "layer 1", and not "layer norm".
bool IsLayer(const json& event) {
  const std::string name = event["name"];
  return name.starts_with("layer ") && std::isdigit(static_cast<unsigned char>(name[6])) != 0;
}

bool IsSegment(const json& event) {
  return IsLayer(event) || event["name"] == "input" || event["name"] == "pooling";
}

// As a viewer reads it: in the order of the file each span of a thread begins within the one that
// is still open, if any, and ends no later.
void ExpectNested(const json& trace) {
  std::map<int, std::vector<double>> open;  // by thread: the ends of what is open
  double last = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double from = event["ts"], to = from + event["dur"].get<double>();
    EXPECT_GE(from, last);
    last = from;
    std::vector<double>& ends = open[event["tid"]];
    constexpr double kRounded = 0.0005;  // of microseconds with three digits
    while (!ends.empty() && ends.back() <= from + kRounded) ends.pop_back();
    if (!ends.empty()) {
      EXPECT_LE(to, ends.back() + kRounded) << event;
    }
    ends.push_back(to);
  }
}

class Shares : public ::testing::TestWithParam<Share> {};

TEST_P(Shares, EveryStepOfEveryThreadLiesInItsRun) {
  const Model model = SmallModel();
  Result<Trace> trace = Trace::Create();
  ASSERT_TRUE(trace.ok()) << trace.status().ToString();
  const std::vector<float> plain = Hidden(model, {.num_threads = 2, .share = GetParam()});
  const std::vector<float> traced =
      Hidden(model, {.num_threads = 2, .share = GetParam(), .trace = &*trace});
  EXPECT_EQ(traced, plain);

  const json all = json::parse(trace->ToJson());
  EXPECT_EQ(trace->num_dropped(), 0);
  EXPECT_EQ(all["traceEvents"].size(), static_cast<size_t>(trace->num_events()));
  const std::vector<json> runs = Named(all, "run");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["args"]["tokens"], 300);
  EXPECT_EQ(runs[0]["args"]["sequences"], 2);
  const double begin = runs[0]["ts"], end = begin + runs[0]["dur"].get<double>();
  // Steps and waits of a thread follow each other; layers and the run have them.
  std::map<int, std::vector<std::pair<double, double>>> threads;
  for (const json& event : all["traceEvents"]) {
    if (event["name"] == "run" || IsSegment(event)) continue;
    const double from = event["ts"], to = from + event["dur"].get<double>();
    EXPECT_GE(from, begin);
    EXPECT_LE(to, end + 0.002);
    threads[event["tid"]].emplace_back(from, to);
  }
  EXPECT_EQ(threads.size(), 2u);
  for (auto& [thread, spans] : threads) {
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) {
      EXPECT_GE(spans[i].first, spans[i - 1].second - 0.002);
    }
  }
  // A tile of each layer at least, on at least one thread.
  EXPECT_GE(Named(all, "attention").size(), static_cast<size_t>(kLayers));
  EXPECT_GE(Named(all, "qkv").size(), static_cast<size_t>(kLayers));
  EXPECT_EQ(Named(all, "wait").empty(), GetParam() == Share::kSequences);
  ExpectNested(all);
  for (int layer = 1; layer <= kLayers; ++layer) {
    const std::string name = "layer " + std::to_string(layer);
    const std::vector<json> spans = Named(all, name);
    ASSERT_GE(spans.size(), 1u) << name;
    EXPECT_LE(spans.size(), 2u) << name;  // one a thread that had something to do
    for (const json& span : spans) EXPECT_EQ(span["cat"], "layer");
  }
  EXPECT_TRUE(Named(all, "layer " + std::to_string(kLayers + 1)).empty());
  EXPECT_FALSE(Named(all, "input").empty());
}

INSTANTIATE_TEST_SUITE_P(All, Shares,
                         ::testing::Values(Share::kSequences, Share::kRows, Share::kColumns));

TEST(Trace, WhatHasNoRoomIsCounted) {
  Result<Trace> trace = Trace::Create(10);
  ASSERT_TRUE(trace.ok());
  Hidden(SmallModel(), {.trace = &*trace});
  EXPECT_EQ(trace->num_events(), 10);
  EXPECT_GT(trace->num_dropped(), 10);
  const json all = json::parse(trace->ToJson());
  EXPECT_EQ(all["traceEvents"].size(), 10u);
  EXPECT_EQ(all["otherData"]["dropped"], std::to_string(trace->num_dropped()));
  trace->Clear();
  EXPECT_EQ(trace->num_events(), 0);
  EXPECT_EQ(trace->num_dropped(), 0);
}

TEST(Trace, OptionsOutOfRange) {
  for (const int64_t events : {int64_t{0}, int64_t{-1}, int64_t{100'000'001}}) {
    const Status status = Trace::Create(events).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(testing::Has(status.what(), "max_events is " + std::to_string(events)));
  }
}

TEST(Trace, ABatcherSaysHowLongRequestsWaited) {
  Result<Trace> trace = Trace::Create();
  ASSERT_TRUE(trace.ok());
  {
    Result<Batcher> batcher = Batcher::Create(
        SmallModel(), {.session = {.max_tokens = 64, .trace = &*trace}, .num_workers = 1});
    ASSERT_TRUE(batcher.ok()) << batcher.status().ToString();
    const std::vector<int32_t> ids(20, 3);
    for (int i = 0; i < 5; ++i) {
      Result<PendingAnswer> pending = batcher->Submit({.ids = ids});
      ASSERT_TRUE(pending.ok()) << pending.status().ToString();
      ASSERT_TRUE(pending->Wait().ok());
    }
  }
  const json all = json::parse(trace->ToJson());
  std::map<std::string, std::set<int64_t>> ids;
  for (const json& event : Named(all, "queue")) ids[event["ph"]].insert(event["id"].get<int64_t>());
  EXPECT_EQ(ids["b"].size(), 5u);
  EXPECT_EQ(ids["e"], ids["b"]);
  EXPECT_EQ(Named(all, "run").size(), 5u);
}

TEST(Trace, ABatcherNotesWhatItEncodes) {
  Result<Trace> trace = Trace::Create();
  ASSERT_TRUE(trace.ok());
  const Result<Model> model = Model::FromBytes(testing::TinyModelBytes(Task::kTokens));
  ASSERT_TRUE(model.ok());
  Result<Batcher> batcher =
      Batcher::Create(*model, {.session = {.max_tokens = 64, .trace = &*trace}, .num_workers = 1});
  ASSERT_TRUE(batcher.ok()) << batcher.status().ToString();
  for (int i = 0; i < 3; ++i) {
    Result<PendingAnswer> pending = batcher->Submit({.text = "I saw a saw"});
    ASSERT_TRUE(pending.ok()) << pending.status().ToString();
    ASSERT_TRUE(pending->Wait().ok());
  }
  EXPECT_EQ(Named(json::parse(trace->ToJson()), "tokenize").size(), 3u);
}

TEST(Trace, LayersOfAnEncoderAndOfItsDecoder) {
  Result<Trace> trace = Trace::Create();
  ASSERT_TRUE(trace.ok());
  const Result<Model> model = testing::RandomModel(testing::EncoderDecoderConfig(), 3);
  ASSERT_TRUE(model.ok());
  Result<Session> session = Session::Create(*model, {.max_tokens = 64, .trace = &*trace});
  ASSERT_TRUE(session.ok());
  const int32_t ids[] = {5, 6, 7}, offsets[] = {0, 3};
  ASSERT_TRUE(
      session
          ->Run(TokenBatch{
              .ids = ids, .offsets = offsets, .decoder_ids = ids, .decoder_offsets = offsets})
          .ok());
  const json all = json::parse(trace->ToJson());
  ExpectNested(all);
  const int64_t layers = model->data().config.num_layers;
  const int64_t decoder_layers = model->data().config.decoder_layers;
  const auto count = std::count_if(all["traceEvents"].begin(), all["traceEvents"].end(), IsLayer);
  EXPECT_EQ(count, layers + decoder_layers);
}

// A run for the beginning of all texts, and one for each step; all of the plans lies in one.
TEST(Trace, RunsOfAGenerator) {
  Result<Trace> trace = Trace::Create();
  ASSERT_TRUE(trace.ok());
  const Result<Model> model = testing::RandomModel(testing::EncoderDecoderConfig(), 3);
  ASSERT_TRUE(model.ok());
  GeneratorOptions options;
  options.session.num_threads = 2;
  options.session.trace = &*trace;
  options.max_text_tokens = 16;
  options.settings = {.max_new_tokens = 4, .min_new_tokens = 4, .decoder_start_token_id = 1};
  Result<Generator> generator = Generator::Create(*model, options);
  ASSERT_TRUE(generator.ok()) << generator.status().ToString();
  const int32_t ids[] = {5, 6, 7};
  const GenerationInput inputs[] = {{.ids = ids}, {.ids = std::span(ids).first(2)}};
  ASSERT_TRUE(generator->GenerateIds(inputs).ok());
  const json all = json::parse(trace->ToJson());
  ExpectNested(all);
  const std::vector<json> runs = Named(all, "run");
  ASSERT_EQ(runs.size(), 1u + 3);
  EXPECT_EQ(runs[0]["args"], (json{{"tokens", 5}, {"sequences", 2}}));
  for (size_t i = 1; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i]["args"], (json{{"tokens", 2}, {"sequences", 2}}));
  }
  for (const json& event : all["traceEvents"]) {
    const double from = event["ts"], to = from + event["dur"].get<double>();
    const auto holds = [&](const json& run) {
      const double begin = run["ts"], end = begin + run["dur"].get<double>();
      return begin - 0.002 <= from && to <= end + 0.002;
    };
    EXPECT_EQ(std::count_if(runs.begin(), runs.end(), holds), 1) << event;
  }
  const int64_t layers = model->data().config.num_layers;
  const int64_t decoder_layers = model->data().config.decoder_layers;
  std::set<std::pair<std::string, size_t>> seen;  // by name and run, on whichever threads
  for (const json& event : all["traceEvents"]) {
    if (!IsLayer(event)) continue;
    size_t run = 0;
    while (run + 1 < runs.size() && runs[run + 1]["ts"] <= event["ts"]) ++run;
    seen.emplace(event["name"], run);
  }
  EXPECT_GE(seen.size(),
            static_cast<size_t>(std::max(layers, decoder_layers) + 3 * decoder_layers));
}

// Each command that runs a model.
TEST(Trace, TheProgramWritesOne) {
  const testing::TemporaryFolder folder;
  const testing::Models& models = testing::Models::Get();
  const std::vector<std::vector<std::string>> commands = {
      {"tag", "I saw a saw"},
      {"classify", "good"},
      {"generate", "saw"},
      {"attention", "--json", "I saw"},
      {"embed", "-m", models.embedder, "I saw"},
      {"rank", "-m", models.embedder, "saw", "I saw"},
      {"run", models.tagger}};
  for (std::vector<std::string> command : commands) {
    SCOPED_TRACE(command[0]);
    const std::string file = folder / (command[0] + ".json");
    command.insert(command.end(), {"--trace", file});
    const testing::Outcome outcome = testing::Attend(command, "{\"ids\": [2, 5, 7, 3]}\n");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json all = json::parse(testing::ReadFile(file));
    EXPECT_EQ(Named(all, "tokenize").empty(), command[0] == "run");
    EXPECT_FALSE(Named(all, "attention").empty());
    EXPECT_FALSE(Named(all, "run").empty());
    EXPECT_FALSE(Named(all, "layer 1").empty());
    ExpectNested(all);
  }
  const testing::Outcome outcome =
      testing::Attend({"tag", "a", "--trace", folder / "no/such/folder/trace.json"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
}

}  // namespace
}  // namespace attend
