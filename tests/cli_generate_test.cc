// attend generate, and "generate" of attend run, as scripts see them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/child.h"
#include "tests/hf_folder.h"
#include "tests/tokenizer_testing.h"

namespace attend::testing {
namespace {

using nlohmann::json;

// A small T5 that was trained on a made-up language, and the same with letters for tokens.
class Speller {
 public:
  static const Speller& Get() {
    static const Speller speller;
    return speller;
  }
  std::string ids, text;  // the files' paths

 private:
  Speller() : ids(folder_ / "ids.attend"), text(folder_ / "text.attend") {
    TestFolder hf("t5_v1_1");
    hf.Remove("tokenizer.json");
    hf.Save();
    Convert(hf, ids);
    hf.Write("tokenizer.json", Letters().dump());
    hf.Write("generation_config.json",
             R"({"eos_token_id":1,"pad_token_id":0,"decoder_start_token_id":0,"num_beams":4,)"
             R"("max_new_tokens":20,"early_stopping":false,"transformers_version":"5.24.0"})");
    Convert(hf, text);
  }

  static void Convert(const TestFolder& hf, const std::string& output) {
    const Outcome outcome = Attend({"convert", hf.path(), "-o", output});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }

  // <pad>, </s>, 26 letters, then symbols up to the model's 61 entries.
  static json Letters() {
    json definition = json::parse(ReadWhole(DataPath("tokenizers/characters/tokenizer.json")));
    json vocabulary = {{"<pad>", 0}, {"</s>", 1}};
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      vocabulary[std::string(1, letter)] = vocabulary.size();
    }
    while (vocabulary.size() < 61) {
      vocabulary["S" + std::to_string(vocabulary.size())] = vocabulary.size();
    }
    definition["model"]["vocab"] = vocabulary;
    definition["added_tokens"].erase(2);  // the unknown token
    return definition;
  }

  TemporaryFolder folder_;
};

Outcome Generate(std::vector<std::string> arguments, std::string_view input = {}) {
  std::vector<std::string> all = {"generate", "-m", Speller::Get().text};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Attend(all, input);
}

TEST(CliGenerate, Objects) {
  const Outcome outcome = Generate({"--json", "saw", "Fence"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0].at("text"), "saw");
  EXPECT_EQ(objects[1].at("text"), "Fence");
  for (const json& object : objects) {
    EXPECT_GT(object.at("ids").size(), 0u);
    EXPECT_LE(object.at("ids").size(), 20u);
    EXPECT_LT(object.at("score").get<double>(), 0);
    size_t symbols = 0;
    for (const json& id : object.at("ids")) symbols += id > 1;
    const std::string output = object.at("output");
    EXPECT_EQ(static_cast<size_t>(std::count(output.begin(), output.end(), ' ')) + 1, symbols);
  }
  const Outcome plain = Generate({"saw", "Fence"});
  EXPECT_EQ(plain.out, objects[0].at("output").get<std::string>() + "\n" +
                           objects[1].at("output").get<std::string>() + "\n");
}

TEST(CliGenerate, Options) {
  const auto ids = [](std::vector<std::string> options) {
    options.insert(options.end(), {"--json", "saw"});
    const Outcome outcome = Generate(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? outcome.objects().at(0).at("ids").get<std::vector<int>>()
                             : std::vector<int>();
  };
  const std::vector<int> usual = ids({});
  EXPECT_EQ(ids({"--beam", "4"}), usual);  // what the file says
  EXPECT_EQ(ids({"--max-new-tokens", "3"}).size(), 3u);
  const std::vector<int> greedy = ids({"--beam", "1"});
  EXPECT_EQ(ids({"--beam", "1", "--temperature", "0"}), greedy);
  EXPECT_EQ(ids({"--beam", "1", "--top-k", "1"}), greedy);
  EXPECT_EQ(ids({"--beam", "1", "--top-p", "0"}), greedy);
  const std::vector<int> sample = ids({"--beam", "1", "--temperature", "3", "--seed", "7"});
  EXPECT_NE(sample, greedy);
  EXPECT_EQ(ids({"--beam", "1", "--temperature", "3", "--seed", "7"}), sample);
  EXPECT_NE(ids({"--beam", "1", "--temperature", "3", "--seed", "8"}), sample);
  // Scores per token to a power below zero make short outputs better.
  EXPECT_LE(ids({"--length-penalty", "-8"}).size(), usual.size());
  EXPECT_EQ(ids({"--threads", "1"}), usual);
}

TEST(CliGenerate, ScoreIsPerTokenToThePenalty) {
  const auto score = [](const char* penalty) {
    const Outcome outcome = Generate({"--json", "--beam", "1", "--length-penalty", penalty, "saw"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json object = outcome.objects().at(0);
    return std::pair(object.at("score").get<double>(), object.at("ids").size());
  };
  const auto [sum, count] = score("0");
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(score("1").first, sum / n, 1e-5 * -sum);
  EXPECT_NEAR(score("0.5").first, sum / std::sqrt(n), 1e-5 * -sum);
  EXPECT_NEAR(score("-1").first, sum * n, 1e-5 * -sum * n);
}

TEST(CliGenerate, AStreamKeepsOrderWhateverTheBatches) {
  std::string input;
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k <= i % 11; ++k) input += static_cast<char>('a' + (i * 7 + k * 3) % 26);
    input += "\n";
  }
  const Outcome outcome = Generate({"--json"}, input);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::string texts;
  for (const json& object : outcome.objects()) {
    texts += object.at("text").get<std::string>() + "\n";
  }
  EXPECT_EQ(texts, input);
  for (const char* tokens : {"1", "100", "100000"}) {
    EXPECT_EQ(Generate({"--json", "--batch-tokens", tokens}, input).out, outcome.out) << tokens;
  }
  EXPECT_EQ(Generate({"--json"}, "").out, "");
  const Outcome objects = Generate({"--json", "--input", "json"}, "{\"text\": \"saw\"}\n");
  EXPECT_EQ(objects.out, Generate({"--json", "saw"}).out);
}

TEST(CliGenerate, ACoProcessIsAnsweredLineByLine) {
  Child child({ProgramPath(), "generate", "-m", Speller::Get().text});
  for (size_t line = 1; line <= 3; ++line) {
    std::string_view text = "abc\n";
    while (!text.empty()) text.remove_prefix(static_cast<size_t>(child.Pump(text, 20000)));
    ASSERT_TRUE(child.WaitLines(line));
  }
  EXPECT_EQ(child.Finish(), 0);
}

TEST(CliGenerate, Errors) {
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string message;
  };
  const std::string ids = Speller::Get().ids;
  const std::string long_text(2000, 'a');
  const std::vector<Case> cases = {
      {{"--beam", "0", "x"}, 2, "--beam"},
      {{"--beam", "two", "x"}, 2, "--beam"},
      {{"--max-new-tokens", "0", "x"}, 2, "--max-new-tokens"},
      {{"--top-k", "-1", "x"}, 2, "--top-k"},
      {{"--temperature", "warm", "x"}, 2, "--temperature"},
      {{"--temperature", "-1", "x"}, 3, "temperature"},
      {{"--top-p", "1.5", "x"}, 3, "top_p"},
      {{"--length-penalty", "nan", "x"}, 3, "length_penalty"},
      {{"caf\xE9"}, 3, "UTF-8"},
      {{"two words"}, 3, "U+0020"},
      {{"--max-length", "8", "abcdefghij"}, 5, "11 tokens"},
      {{"-m", ids, "x"}, 3, "no tokenizer"},
      {{"-m", Models::Get().tagger, "x"}, 3, "labels words"},
  };
  for (const Case& one : cases) {
    std::vector<std::string> arguments = {"--json"};
    arguments.insert(arguments.end(), one.arguments.begin(), one.arguments.end());
    const bool has_model = one.arguments[0] == "-m";
    std::vector<std::string> all = {"generate"};
    if (!has_model) all.insert(all.end(), {"-m", Speller::Get().text});
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = Attend(all);
    EXPECT_EQ(outcome.code, one.code) << one.message << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(Has(outcome.error().dump(), one.message)) << outcome.err;
  }
  EXPECT_EQ(Generate({"--truncate", "--max-length", "8", "abcdefghij"}).code, 0);
  EXPECT_EQ(Generate({long_text}).code, 0);  // the model takes any length
}

TEST(CliGenerate, OtherCommandsSayWhatTheModelIsFor) {
  for (const char* command : {"classify", "tag", "embed"}) {
    const Outcome outcome = Attend({command, "--json", "-m", Speller::Get().text, "x"});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_TRUE(Has(outcome.err, "attend generate")) << outcome.err;
  }
}

// ---- attend run.

TEST(RunGenerate, SettingsOfEveryLine) {
  const Outcome outcome =
      Attend({"run", Speller::Get().ids},
             "{\"ids\": [14, 1]}\n"
             "{\"ids\": [14, 1], \"generate\": {\"num_beams\": 4, \"max_new_tokens\": 16, "
             "\"length_penalty\": 0.6, \"early_stopping\": true, \"num_return_sequences\": 4}}\n"
             "{\"ids\": [14, 1], \"generate\": {\"max_new_tokens\": 2}}\n"
             "{\"ids\": [14, 1], \"decoder_ids\": [0, 9], \"generate\": {}}\n"
             "{\"ids\": [14, 1], \"decoder_ids\": [9], \"generate\": {}}\n"
             "{\"ids\": [14, 1]}\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 6u);
  EXPECT_EQ(objects[0].at("generated"), json::parse("[[9,1]]"));  // the golden greedy output
  EXPECT_EQ(objects[0].at("scores").size(), 1u);
  EXPECT_EQ(objects[1].at("generated").size(), 4u);
  EXPECT_EQ(objects[1].at("scores").size(), 4u);
  EXPECT_EQ(objects[3].at("generated"), json::parse("[[1]]"));
  EXPECT_EQ(objects[4], objects[3]);  // the start token is put in front
  EXPECT_EQ(objects[5], objects[0]);  // what a line set is gone
}

TEST(RunGenerate, BadLines) {
  struct Case {
    const char* line;
    int code;
    const char* message;
  };
  const Case cases[] = {
      {R"({"ids": [1], "generate": {"num_beams": 0}})", 3, "num_beams"},
      {R"({"ids": [1], "generate": {"num_beam": 4}})", 3, "num_beam\\\""},
      {R"({"ids": [1], "generate": {"num_beams": 1.5}})", 3, "num_beams"},
      {R"({"ids": [1], "generate": {"early_stopping": "soon"}})", 3, "never"},
      {R"({"ids": [1], "generate": {"bad_words_ids": [5]}})", 3, "bad_words_ids"},
      {R"({"ids": [1], "generate": {"bad_words_ids": [[5, 61]]}})", 3, "bad_words_ids[0][1]"},
      {R"({"ids": [1], "generate": {"num_return_sequences": 3}})", 3, "num_return_sequences"},
      {R"({"ids": [1], "generate": {"do_sample": true, "temperature": 0}})", 3, "temperature"},
      {R"({"ids": [1], "generate": {"eos_token_id": 61}})", 3, "eos_token_id"},
      {R"({"ids": [1], "generate": 4})", 3, "generate"},
      {R"({"ids": [61]})", 3, "61"},
      {R"({"ids": []})", 3, "no tokens"},
      {R"({"ids": [1], "decoder_ids": [99]})", 3, "99"},
      {R"({"ids": [1], "decoder_ids": [0, 2, 3], "generate": {"max_length": 3}})", 5, "max_length"},
      {R"({"input": [[1.0]]})", 3, "token ids"},
  };
  for (const Case& bad : cases) {
    const Outcome outcome = Attend({"run", "--json", Speller::Get().ids},
                                   std::string("{\"ids\": [5]}\n") + bad.line + "\n");
    EXPECT_EQ(outcome.code, bad.code) << bad.line << ": " << outcome.err;
    EXPECT_EQ(outcome.objects().size(), 1u) << bad.line;
    EXPECT_TRUE(Has(outcome.error().at("where").get<std::string>(), "line 2")) << outcome.err;
    EXPECT_TRUE(Has(outcome.err, bad.message)) << bad.line << ": " << outcome.err;
  }
  const Outcome encoder =
      Attend({"run", "--json", Models::Get().tagger}, "{\"ids\": [5], \"generate\": {}}\n");
  EXPECT_EQ(encoder.code, 3);
  EXPECT_TRUE(Has(encoder.err, "does not generate")) << encoder.err;
}

TEST(ConvertGeneration, SettingsThatAttendDoesNotKnow) {
  const auto convert = [](const char* generation) {
    TestFolder hf("t5_v1_1");
    hf.Write("generation_config.json", generation);
    TemporaryFolder out;
    return Attend({"convert", hf.path(), "-o", out / "x.attend"});
  };
  const Outcome typical = convert(R"({"eos_token_id": 1, "typical_p": 0.9})");
  EXPECT_EQ(typical.code, 3);
  EXPECT_TRUE(Has(typical.err, "typical_p") && Has(typical.err, "0.9")) << typical.err;
  EXPECT_EQ(convert(R"({"eos_token_id": 1, "typical_p": 1.0, "use_cache": true})").code, 0);
  const Outcome outside = convert(R"({"eos_token_id": 61})");
  EXPECT_EQ(outside.code, 3);
  EXPECT_TRUE(Has(outside.err, "eos_token_id")) << outside.err;
  const Outcome unknown = convert(R"({"eos_token_id": 1, "of_the_future": 5})");
  EXPECT_EQ(unknown.code, 0);
  EXPECT_TRUE(Has(unknown.out + unknown.err, "of_the_future")) << unknown.out;
}

// Old folders have the settings in config.json.
TEST(ConvertGeneration, SettingsInConfigJson) {
  TestFolder hf("t5_v1_1");
  hf.Remove("generation_config.json");
  hf.config["num_beams"] = 4;
  hf.config["max_length"] = 4;
  hf.Save();
  TemporaryFolder out;
  const std::string file = out / "x.attend";
  ASSERT_EQ(Attend({"convert", hf.path(), "-o", file}).code, 0);
  const Outcome outcome = Attend({"run", file}, "{\"ids\": [25]}\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.objects().at(0).at("generated").at(0).size(), 3u);
}

}  // namespace
}  // namespace attend::testing
