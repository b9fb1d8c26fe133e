// Whole models: what is generated, by greedy search and beams, is what Hugging Face transformers
// generates, and does not depend on what is generated beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "attend/text.h"
#include "tests/child.h"
#include "tests/generate_testing.h"
#include "tools/convert.h"

namespace attend::testing {
namespace {

struct GoldenRun {
  Ids input;
  std::vector<Ids> outputs;  // new ids only
  std::vector<double> scores;
};

struct GoldenFolder {
  std::map<std::string, GenerationSettings> settings;
  std::map<std::string, std::vector<GoldenRun>> runs;  // by setting
};

nlohmann::json ReadJsonFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return nlohmann::json::parse(file);
}

GoldenFolder ReadFolder(const std::string& path) {
  GoldenFolder folder;
  const auto settings = ReadJsonFile(path + "/generation_settings.json");
  for (const auto& [name, object] : settings["settings"].items()) {
    folder.settings[name] = SettingsOf(object);
  }
  const auto& eos = settings["special_ids"]["eos_token_id"];
  const Ids ends = eos.is_array() ? eos.get<Ids>() : Ids{eos.get<int32_t>()};
  const bool has_encoder = settings["special_ids"].contains("decoder_start_token_id");
  std::ifstream lines(path + "/generation.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    GoldenRun run;
    run.input = json["input_ids"].get<Ids>();
    for (Ids ids : json["output_ids"].get<std::vector<Ids>>()) {
      ids.erase(ids.begin(), ids.begin() + (has_encoder ? 1 : static_cast<int>(run.input.size())));
      // Behind the end token all is padding.
      const auto end = std::find_first_of(ids.begin(), ids.end(), ends.begin(), ends.end());
      if (end != ids.end()) ids.erase(end + 1, ids.end());
      run.outputs.push_back(std::move(ids));
    }
    if (json.contains("scores")) run.scores = json["scores"].get<std::vector<double>>();
    folder.runs[json["setting"]].push_back(std::move(run));
  }
  return folder;
}

std::vector<Found> Answers(Generator* generator, const std::vector<GoldenRun>& runs) {
  std::vector<GenerationInput> inputs;
  for (const GoldenRun& run : runs) inputs.push_back({.ids = run.input});
  const Result<std::vector<Generation>> generations = generator->GenerateIds(inputs);
  EXPECT_TRUE(generations.ok()) << generations.status().ToString();
  std::vector<Found> answers(runs.size());
  for (size_t i = 0; generations.ok() && i < runs.size(); ++i) {
    for (const GeneratedText& output : (*generations)[i].outputs) {
      answers[i].outputs.push_back(output.ids);
      answers[i].scores.push_back(output.score);
    }
  }
  return answers;
}

class GenerateGolden : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string source = std::string(ATTEND_TEST_DATA) + "/hf/" + GetParam();
    ConvertReport report;
    const Status status =
        ConvertFolder({.folder = source, .output = folder_ / "model.attend"}, &report);
    ASSERT_TRUE(status.ok()) << status.ToString();
    golden_ = ReadFolder(source);
    ASSERT_GE(golden_.settings.size(), 2u);
  }

  Generator Make(const GenerationSettings& settings, int threads, int32_t sequences) const {
    GeneratorOptions options{.settings = settings};
    options.session.num_threads = threads;
    options.session.max_sequences = sequences;
    Result<Generator> generator = Generator::Load(folder_ / "model.attend", options);
    EXPECT_TRUE(generator.ok()) << generator.status().ToString();
    return *std::move(generator);
  }

  TemporaryFolder folder_;
  GoldenFolder golden_;
};

TEST_P(GenerateGolden, IdsAreEqualAndScoresNear) {
  int equal = 0, all = 0;
  double largest = 0;
  for (const auto& [name, runs] : golden_.runs) {
    ASSERT_TRUE(golden_.settings.contains(name)) << name;
    Generator generator = Make(golden_.settings.at(name), 2, 16);
    const std::vector<Found> answers = Answers(&generator, runs);
    for (size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(answers[i].outputs, runs[i].outputs) << name << ", run " << i;
      for (size_t k = 0; k < runs[i].outputs.size(); ++k, ++all) {
        equal += k < answers[i].outputs.size() && answers[i].outputs[k] == runs[i].outputs[k];
      }
      for (size_t k = 0; k < std::min(runs[i].scores.size(), answers[i].scores.size()); ++k) {
        const double want = runs[i].scores[k];
        largest = std::max(largest, std::abs(answers[i].scores[k] - want) / (1 + std::abs(want)));
      }
    }
  }
  std::printf("%s: %d of %d sequences equal; scores differ by %.1e at most\n", GetParam(), equal,
              all, largest);
  EXPECT_EQ(equal, all);
  EXPECT_LE(largest, 1e-5);
}

TEST_P(GenerateGolden, NeighboursAndThreadsDoNotMatter) {
  int compared = 0;
  for (const auto& [name, runs] : golden_.runs) {
    Generator alone = Make(golden_.settings.at(name), 1, 1);
    std::vector<Found> want;
    for (const GoldenRun& run : runs) want.push_back(Answers(&alone, {run})[0]);
    std::vector<GoldenRun> many(runs.rbegin(), runs.rend());
    many.insert(many.end(), runs.begin(), runs.end());
    std::vector<Found> twice(want.rbegin(), want.rend());
    twice.insert(twice.end(), want.begin(), want.end());
    for (int threads : {1, 2, 3}) {
      for (int32_t sequences : {2, 5, 16}) {
        Generator generator = Make(golden_.settings.at(name), threads, sequences);
        EXPECT_EQ(Answers(&generator, many), twice) << name << ", " << threads << " threads";
        compared += static_cast<int>(many.size());
      }
    }
  }
  std::printf("%s: %d outcomes with neighbours, all the same bits as alone\n", GetParam(),
              compared);
}

INSTANTIATE_TEST_SUITE_P(All, GenerateGolden,
                         ::testing::Values("t5", "t5_v1_1", "bart", "marian", "gpt2", "llama",
                                           "llama_rope_scaled", "qwen3"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace attend::testing
