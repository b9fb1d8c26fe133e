// The command line as scripts see it: exit codes, objects, and what bad input is answered with.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "attend/attend.h"
#include "tests/child.h"

namespace attend::testing {
namespace {

using nlohmann::json;

const char* const kCommands[] = {"tag", "classify", "embed",   "rank",   "attention", "tokenize",
                                 "run", "convert",  "inspect", "verify", "info",      "completion"};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Usage, EveryCommandHasHelp) {
  const Outcome all = Attend({"--help"});
  EXPECT_EQ(all.code, 0);
  for (const std::string command : kCommands) {
    EXPECT_TRUE(Contains(all.out, command)) << command;
    for (const Outcome& help : {Attend({command, "--help"}), Attend({"help", command})}) {
      EXPECT_EQ(help.code, 0) << command;
      EXPECT_TRUE(Contains(help.out, "Usage: attend " + command)) << help.out;
      EXPECT_TRUE(Contains(help.out, "--json")) << command;
      EXPECT_EQ(help.err, "") << command;
    }
  }
}

TEST(Usage, Version) {
  const Outcome outcome = Attend({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(Contains(outcome.out, std::string("attend ") + Version())) << outcome.out;
  EXPECT_TRUE(Contains(outcome.out, "oneDNN")) << outcome.out;
}

struct UsageCase {
  const char* name;
  std::vector<std::string> arguments;
  const char* message;  // part of standard error
};

class UsageError : public ::testing::TestWithParam<UsageCase> {};

TEST_P(UsageError, IsExplained) {
  const Outcome outcome = Attend(GetParam().arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(Contains(outcome.err, GetParam().message)) << outcome.err;
}

TEST_P(UsageError, IsOneObjectWithJson) {
  std::vector<std::string> arguments = GetParam().arguments;
  if (arguments.empty()) return;
  arguments.insert(arguments.begin() + 1, "--json");
  const Outcome outcome = Attend(arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  const json error = outcome.error();
  EXPECT_EQ(error.at("code"), "USAGE");
  for (const char* key : {"what", "where", "hint"}) EXPECT_TRUE(error.at(key).is_string()) << key;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, UsageError,
    ::testing::Values(
        UsageCase{"NoCommand", {}, "a command is missing"},
        UsageCase{"UnknownCommand", {"tagg"}, "did you mean `attend tag`?"},
        UsageCase{"StrangeCommand", {"frobnicate"}, "no such command"},
        UsageCase{"UnknownOption", {"tag", "--jsn", "x"}, "did you mean --json?"},
        UsageCase{"UnknownOptionWithValue", {"tag", "--thread=2", "x"}, "did you mean --threads?"},
        UsageCase{"ValueOfNoSet", {"tag", "--precision", "f64", "x"}, "--precision"},
        UsageCase{"NotANumber", {"tag", "--threads", "two", "x"}, "--threads"},
        UsageCase{"NumberOutOfRange", {"tag", "--threads", "-1", "x"}, "--threads"},
        UsageCase{"ZeroBatch", {"tag", "--batch-tokens", "0", "x"}, "--batch-tokens"},
        UsageCase{"MissingValue", {"tag", "-m"}, "--model"},
        UsageCase{"MissingArgument", {"inspect"}, "an argument is missing"},
        UsageCase{"TooManyArguments", {"verify", "a", "b"}, "unexpected argument 'b'"},
        UsageCase{"MissingOutput", {"convert", "folder"}, "--output"},
        UsageCase{"NoSuchPicture", {"attention", "--output", "a.png", "x"}, ".svg or .html"},
        UsageCase{"RawText", {"attention", "--raw", "x"}, "standard input"},
        UsageCase{"NegativeLayer", {"attention", "--layer", "-1", "x"}, "--layer"},
        UsageCase{"NoModelToRun", {"run"}, "name one model"},
        UsageCase{"NoSuchIsa", {"info", "--isa", "avx3"}, "avx3"},
        UsageCase{"NoSuchShell", {"completion", "tcsh"}, "expected bash, zsh or fish"},
        UsageCase{"NoSuchWant", {"run", "x.attend", "--want", "attention"}, "--want"}),
    [](const auto& test) { return test.param.name; });

// What is given instead of a model.
struct BadFile {
  const char* name;
  std::string bytes;
  int exit_code;
  const char* code;
  const char* message;
};

std::string Pickle() {
  return std::string("\x80\x02}q\x00(X\x01\x00\x00\x00", 12) + std::string(200, 'x');
}

class BadModel : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadModel, IsExplainedByEveryCommand) {
  const BadFile& bad = GetParam();
  TemporaryFolder folder;
  const std::string path = folder.Write("model.attend", bad.bytes);
  const std::vector<std::vector<std::string>> commands = {{"tag", "--json", "-m", path, "x"},
                                                          {"embed", "--json", "-m", path, "x"},
                                                          {"classify", "--json", "-m", path, "x"},
                                                          {"rank", "--json", "-m", path, "x", "y"},
                                                          {"attention", "--json", "-m", path, "x"},
                                                          {"tokenize", "--json", "-m", path, "x"},
                                                          {"run", "--json", path},
                                                          {"inspect", "--json", path}};
  for (const std::vector<std::string>& command : commands) {
    const Outcome outcome = Attend(command);
    EXPECT_EQ(outcome.code, bad.exit_code) << command[0] << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const json error = outcome.error();
    EXPECT_EQ(error.at("code"), bad.code) << command[0];
    EXPECT_TRUE(Contains(error.dump(), bad.message)) << command[0] << ": " << error;
    EXPECT_TRUE(Contains(error.at("where").get<std::string>(), path))
        << command[0] << ": " << error;
    EXPECT_NE(error.at("hint"), "") << command[0] << ": " << error;
  }
  const Outcome verify = Attend({"verify", path});
  EXPECT_EQ(verify.code, 6) << verify.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadModel,
    ::testing::Values(
        BadFile{"LfsPointer",
                "version https://git-lfs.github.com/spec/v1\noid sha256:"
                "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
                3, "CORRUPT", "LFS"},
        BadFile{"Html", "<!DOCTYPE html>\n<html><body>404</body></html>\n", 3, "CORRUPT", "HTML"},
        BadFile{"Pickle", Pickle(), 3, "CORRUPT", "ickle"},
        BadFile{"Empty", "", 3, "CORRUPT", "mpty"},
        BadFile{"Json", "{\"model_type\": \"bert\"}\n", 3, "CORRUPT", "JSON"},
        BadFile{"Zip", std::string("PK\x03\x04", 4) + std::string(100, '\0'), 3, "CORRUPT", "zip"}),
    [](const auto& test) { return test.param.name; });

TEST(BadPath, MissingFile) {
  const Outcome outcome = Attend({"tag", "--json", "-m", "/nowhere/x.attend", "x"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.error().at("code"), "NOT_FOUND");
  EXPECT_TRUE(Contains(outcome.err, "/nowhere/x.attend"));
  EXPECT_EQ(Attend({"verify", "/nowhere/x.attend"}).code, 4);
  EXPECT_EQ(Attend({"convert", "/nowhere", "-o", "/tmp/x"}).code, 4);
}

TEST(BadPath, FolderInsteadOfFile) {
  const Outcome outcome = Attend({"tag", "--json", "-m", Models::Get().folder().path(), "x"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(outcome.error().at("code"), "IO");
  EXPECT_TRUE(Contains(outcome.err, "folder")) << outcome.err;
}

TEST(BadPath, FileInsteadOfFolder) {
  const Outcome outcome = Attend({"convert", "--json", Models::Get().tagger, "-o", "/tmp/x"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(Contains(outcome.err, "folder")) << outcome.err;
}

TEST(WrongTask, SaysWhatTheModelIsFor) {
  const Models& models = Models::Get();
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"embed", "--json", "-m", models.tagger, "x"}, "attend tag"},
      {{"classify", "--json", "-m", models.tagger, "x"}, "attend tag"},
      {{"rank", "--json", "-m", models.tagger, "x", "y"}, "attend tag"},
      {{"tag", "--json", "-m", models.classifier, "x"}, "attend classify"},
      {{"embed", "--json", "-m", models.classifier, "x"}, "attend classify"},
      {{"rank", "--json", "-m", models.classifier, "x", "y"}, "attend classify"},
      {{"tag", "--json", "-m", models.embedder, "x"}, "attend embed"},
      {{"classify", "--json", "-m", models.embedder, "x"}, "attend embed"}};
  for (const auto& [arguments, use] : cases) {
    const Outcome outcome = Attend(arguments);
    EXPECT_EQ(outcome.code, 3) << arguments[0] << " " << arguments[3];
    EXPECT_EQ(outcome.error().at("code"), "UNSUPPORTED");
    EXPECT_TRUE(Contains(outcome.err, use)) << outcome.err;
  }
}

TEST(BadText, InvalidUtf8NamesTheLine) {
  for (const std::string command : {"tag", "tokenize"}) {
    const Outcome outcome = Attend({command, "--json", "-m", Models::Get().tagger},
                                   "good\nbad \xff text\nnever read\n");
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    ASSERT_EQ(outcome.objects().size(), 1u) << command;
    EXPECT_EQ(outcome.objects()[0].at("text"), "good");
    EXPECT_EQ(outcome.error().at("code"), "INVALID_ARGUMENT");
    EXPECT_TRUE(Contains(outcome.error().dump(), "line 2")) << outcome.err;
    EXPECT_TRUE(Contains(outcome.error().dump(), "UTF-8")) << outcome.err;
  }
}

TEST(BadText, NulBytesAreText) {
  const std::string text("a\0b", 3);
  for (const Outcome& outcome :
       {Attend({"tag", "--json", "-m", Models::Get().tagger}, text + "\n"),
        Attend({"tag", "--json", "--input", "json", "-m", Models::Get().tagger},
               "{\"text\": \"a\\u0000b\"}\n")}) {
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    ASSERT_EQ(outcome.objects().size(), 1u);
    EXPECT_EQ(outcome.objects()[0].at("text").get<std::string>(), text);
  }
}

TEST(BadText, TooLongIsAnErrorUnlessTruncated) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word ";
  const Models& models = Models::Get();
  const std::vector<std::vector<std::string>> commands = {
      {"classify", "--json", "-m", models.classifier},
      {"embed", "--json", "-m", models.embedder},
      {"rank", "x", "--json", "-m", models.embedder}};
  for (std::vector<std::string> command : commands) {
    Outcome outcome = Attend(command, text + "\n");
    EXPECT_EQ(outcome.code, 5) << outcome.err;
    EXPECT_EQ(outcome.error().at("code"), "CAPACITY");
    EXPECT_TRUE(Contains(outcome.error().at("hint").get<std::string>(), "--truncate"))
        << outcome.err;
    EXPECT_TRUE(Contains(outcome.error().at("what").get<std::string>(), "64")) << outcome.err;
    command.push_back("--truncate");
    outcome = Attend(command, text + "\nshort\n");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const json& object : outcome.objects()) {
      EXPECT_EQ(object.contains("truncated"), object.at("text") != "short") << object;
    }
  }
}

TEST(BadText, BadJsonLines) {
  const std::vector<std::string> lines = {"not json",
                                          "[1]",
                                          "{}",
                                          "{\"text\": 1}",
                                          "{\"words\": \"a\"}",
                                          "{\"words\": [1]}",
                                          "{\"text\": \"\xff\"}"};
  for (const std::string& line : lines) {
    const Outcome outcome = Attend({"tag", "--json", "--input", "json", "-m", Models::Get().tagger},
                                   "{\"text\": \"ok\"}\n" + line + "\n");
    EXPECT_EQ(outcome.code, 3) << line;
    EXPECT_EQ(outcome.objects().size(), 1u) << line;
    EXPECT_TRUE(Contains(outcome.error().at("where").get<std::string>(), "line 2")) << outcome.err;
  }
}

TEST(Tag, Objects) {
  const Outcome outcome = Attend({"tag", "--json", "-m", Models::Get().tagger, "I saw a saw", "",
                                  "na\xc3\xafve \xf0\x9f\x98\x80 x"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0].at("text"), "I saw a saw");
  ASSERT_EQ(objects[0].at("words").size(), 4u);
  EXPECT_EQ(objects[1].at("words").size(), 0u);
  for (const json& object : objects) {
    for (const json& word : object.at("words")) {
      const size_t begin = word.at("begin"), end = word.at("end");
      EXPECT_EQ(object.at("text").get<std::string>().substr(begin, end - begin), word.at("text"));
      EXPECT_GT(word.at("score"), 1.0 / 7 - 1e-6);
      EXPECT_LE(word.at("score"), 1.0);
      EXPECT_FALSE(word.at("label").get<std::string>().empty());
    }
  }
}

TEST(Tag, OffsetUnits) {
  const std::string text = "\xf0\x9f\x98\x80 na\xc3\xafve x";  // emoji, "naïve", "x"
  const std::vector<std::pair<std::string, std::vector<int>>> cases = {
      {"bytes", {12, 13}}, {"codepoints", {8, 9}}, {"utf16", {9, 10}}};
  for (const auto& [unit, range] : cases) {
    const Outcome outcome =
        Attend({"tag", "--json", "--offsets", unit, "-m", Models::Get().tagger, text});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json word = outcome.objects()[0].at("words").back();
    EXPECT_EQ(word.at("text"), "x");
    EXPECT_EQ(word.at("begin"), range[0]) << unit;
    EXPECT_EQ(word.at("end"), range[1]) << unit;
  }
}

TEST(Tag, WordsGivesOneLabelAWord) {
  const std::string line =
      "don't stop e-mail@x.org  \xe4\xb8\xad\xe6\x96\x87 \xcc\x81 Antidisestablishment";
  const Outcome outcome =
      Attend({"tag", "--words", "--json", "-m", Models::Get().tagger}, line + "\n\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 2u);
  const std::vector<std::string> expected = {"don't",
                                             "stop",
                                             "e-mail@x.org",
                                             "",
                                             "\xe4\xb8\xad\xe6\x96\x87",
                                             "\xcc\x81",
                                             "Antidisestablishment"};
  ASSERT_EQ(objects[0].at("words").size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(objects[0].at("words")[i].at("text"), expected[i]);
    EXPECT_NE(objects[0].at("words")[i].at("label"), "");
  }
  EXPECT_EQ(objects[1].at("words").size(), 0u);
  const Outcome same = Attend({"tag", "--input", "json", "--json", "-m", Models::Get().tagger},
                              json{{"words", expected}}.dump() + "\n");
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.objects()[0], objects[0]);
}

TEST(Tag, PlainTextForPeople) {
  const Outcome outcome = Attend({"tag", "-m", Models::Get().tagger, "I saw", "\x1b[31m"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("I/")) << outcome.out;
  EXPECT_TRUE(Contains(outcome.out, " saw/")) << outcome.out;
  EXPECT_FALSE(Contains(outcome.out, "\x1b")) << "a text must not command the terminal";
}

TEST(Tag, ArgumentsAreTakenAsTheyAre) {
  const Outcome outcome = Attend(
      {"tag", "--json", "-m", Models::Get().tagger, "[MASK]", "-5", "info", "--", "--help", "-x"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> texts;
  for (const json& object : outcome.objects()) texts.push_back(object.at("text"));
  EXPECT_EQ(texts, (std::vector<std::string>{"[MASK]", "-5", "info", "--help", "-x"}));
}

TEST(Tag, ShippedModelIsFoundByVariable) {
  TemporaryFolder folder;
  std::filesystem::copy(Models::Get().tagger, folder / "pos-en.attend");
  const Outcome outcome =
      Attend({"tag", "--json", "I saw"}, "", {"ATTEND_MODELS=" + folder.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // The tiny model's labels, not those of the model that ships.
  EXPECT_TRUE(Contains("O B-PER I-PER B-LOC I-LOC B-MISC I-MISC",
                       outcome.objects()[0].at("words")[0].at("label")));
}

TEST(Tag, NoShippedModelSaysWhereItLooked) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::copy(ProgramPath(), folder / "bin/attend");
  Child child({folder / "bin/attend", "tag", "--json", "x"});
  EXPECT_EQ(child.Finish(), 4);
  EXPECT_TRUE(Contains(child.err(), folder / "share/attend/models")) << child.err();
  std::filesystem::create_directories(folder / "share/attend/models");
  std::filesystem::copy(Models::Get().tagger, folder / "share/attend/models/pos-en.attend");
  Child found({folder / "bin/attend", "tag", "--json", "x"});
  EXPECT_EQ(found.Finish(), 0) << found.err();
}

TEST(Classify, ObjectsAndPairs) {
  const Outcome outcome = Attend({"classify", "--json", "--pair", "-m", Models::Get().classifier},
                                 "one text\tanother\n\t\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0].at("text"), "one text");
  for (const json& object : objects) {
    double sum = 0;
    std::string best;
    double best_score = 0;
    for (const auto& [label, score] : object.at("scores").items()) {
      sum += score.get<double>();
      if (score > best_score) best = label, best_score = score;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_EQ(object.at("label"), best);
    EXPECT_EQ(object.at("scores").size(), 3u);
  }
  const Outcome single =
      Attend({"classify", "--json", "-m", Models::Get().classifier}, "one text\n");
  EXPECT_NE(single.objects()[0].at("scores"), objects[0].at("scores"));
  const Outcome no_tab =
      Attend({"classify", "--json", "--pair", "-m", Models::Get().classifier}, "one\n");
  EXPECT_EQ(no_tab.code, 3);
  EXPECT_TRUE(Contains(no_tab.err, "TAB")) << no_tab.err;
}

// Reads [B, D] f32 of NumPy's format 1.0.
std::vector<float> ReadNpy(const std::string& bytes, const std::string& shape) {
  EXPECT_TRUE(bytes.starts_with(std::string("\x93NUMPY\x01\x00", 8)));
  const size_t header =
      10 + static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ(header % 64, 0u);
  EXPECT_TRUE(Contains(bytes.substr(0, header), "'shape': " + shape)) << bytes.substr(0, header);
  std::vector<float> values((bytes.size() - header) / 4);
  std::memcpy(values.data(), bytes.data() + header, values.size() * 4);
  return values;
}

TEST(Embed, JsonAndNpyAreEqualAndRoundTrip) {
  TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  const std::string input = "a small text\n\nanother one\n";
  const Outcome as_json = Attend({"embed", "--json", "-m", Models::Get().embedder}, input);
  ASSERT_EQ(as_json.code, 0) << as_json.err;
  ASSERT_EQ(as_json.objects().size(), 3u);
  const Outcome as_npy = Attend({"embed", "-m", Models::Get().embedder, "--output", path}, input);
  ASSERT_EQ(as_npy.code, 0) << as_npy.err;
  EXPECT_EQ(as_npy.out, "");
  const std::vector<float> values = ReadNpy(ReadFile(path), "(3, 60)");
  ASSERT_EQ(values.size(), 180u);
  size_t i = 0;
  for (const json& object : as_json.objects()) {
    double square = 0;
    for (const json& value : object.at("embedding")) {
      EXPECT_EQ(value.get<float>(), values[i++]);
      square += value.get<double>() * value.get<double>();
    }
    EXPECT_NEAR(square, 1, 1e-5);
  }
}

TEST(Embed, NothingIsLeftBehindAfterAnError) {
  TemporaryFolder folder;
  folder.Write("x.npy", "before");
  const Outcome outcome =
      Attend({"embed", "-m", Models::Get().embedder, "-o", folder / "x.npy"}, "ok\n\xff\n");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(ReadFile(folder / "x.npy"), "before");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_EQ(Attend({"embed", "-m", Models::Get().embedder, "-o", folder / "no/x.npy", "a"}).code,
            4);
}

TEST(Rank, BestFirstByCosine) {
  const Models& models = Models::Get();
  const Outcome outcome = Attend(
      {"rank", "--json", "-m", models.embedder, "the query", "other words here", "the query", "x"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0].at("index"), 1);
  EXPECT_EQ(objects[0].at("text"), "the query");
  EXPECT_NEAR(objects[0].at("score").get<double>(), 1, 1e-6);
  EXPECT_GE(objects[1].at("score"), objects[2].at("score"));
  const Outcome streamed = Attend({"rank", "--json", "-m", models.embedder, "the query"},
                                  "other words here\nthe query\nx\n");
  EXPECT_EQ(streamed.out, outcome.out);
}

TEST(Tokenize, ModelAndTokenizerJsonAgree) {
  const std::string source = ATTEND_TEST_DATA "/hf/bert_token_classification/tokenizer.json";
  const std::string input = "I saw a saw\n\nna\xc3\xafve [MASK]\n";
  const Outcome a = Attend({"tokenize", "--json", "-m", Models::Get().tagger}, input);
  const Outcome b = Attend({"tokenize", "--json", "-m", source}, input);
  ASSERT_EQ(a.code, 0) << a.err;
  ASSERT_EQ(b.code, 0) << b.err;
  EXPECT_EQ(a.out, b.out);
  ASSERT_EQ(a.objects().size(), 3u);
  for (const json& object : a.objects()) {
    const size_t count = object.at("ids").size();
    EXPECT_GE(count, 2u);
    for (const char* key : {"type_ids", "tokens", "offsets"})
      EXPECT_EQ(object.at(key).size(), count);
    EXPECT_EQ(object.at("tokens").front(), "[CLS]");
  }
  const Outcome bare = Attend({"tokenize", "--json", "--no-special", "-m", source}, input);
  EXPECT_EQ(bare.objects()[0].at("ids").size() + 2, a.objects()[0].at("ids").size());
  EXPECT_EQ(bare.objects()[1].at("ids").size(), 0u);
  const Outcome cut = Attend({"tokenize", "--json", "--max-length", "3", "-m", source}, input);
  EXPECT_EQ(cut.objects()[0].at("ids").size(), 3u);
  EXPECT_EQ(cut.objects()[0].at("truncated"), true);
  const Outcome pair = Attend({"tokenize", "--json", "--pair", "-m", source}, "a\tb\n");
  ASSERT_EQ(pair.code, 0) << pair.err;
  EXPECT_EQ(pair.objects()[0].at("type_ids").back(), 1);
}

TEST(Run, RoundTripsFloats) {
  const Models& models = Models::Get();
  const std::string input =
      "{\"ids\": [2, 7, 9, 3]}\n{\"ids\": [5], \"type_ids\": [1], \"other\": {}}\n";
  const Outcome outcome = Attend({"run", models.tagger, "--want", "hidden,logits"}, input);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 2u);
  Result<Model> model = Model::Load(models.tagger);
  ASSERT_TRUE(model.ok());
  Result<Session> session = Session::Create(*model);
  ASSERT_TRUE(session.ok());
  const std::vector<int32_t> ids = {2, 7, 9, 3, 5}, types = {0, 0, 0, 0, 1}, offsets = {0, 4, 5};
  TokenBatch batch;
  batch.ids = ids, batch.type_ids = types, batch.offsets = offsets;
  Result<Output> output = session->Run(batch);
  ASSERT_TRUE(output.ok());
  size_t hidden = 0, logits = 0;
  for (const json& object : objects) {
    EXPECT_FALSE(object.contains("pooled"));
    for (const json& row : object.at("hidden")) {
      for (const json& value : row) EXPECT_EQ(value.get<float>(), output->hidden[hidden++]);
    }
    for (const json& row : object.at("logits")) {
      for (const json& value : row) EXPECT_EQ(value.get<float>(), output->logits[logits++]);
    }
  }
  EXPECT_EQ(hidden, output->hidden.size());
  EXPECT_EQ(logits, output->logits.size());
}

TEST(Run, BadLines) {
  struct Case {
    const char* line;
    int code;
    const char* message;
  };
  const Case cases[] = {{"{\"ids\": [2, 300]}", 3, "300"},
                        {"{\"ids\": [-1]}", 3, "-1"},
                        {"{\"ids\": [1.5]}", 3, "ids[0]"},
                        {"{\"ids\": [4294967296]}", 3, "ids[0]"},
                        {"{\"ids\": []}", 3, ""},
                        {"{\"ids\": 5}", 3, "list"},
                        {"{\"ids\": [5], \"type_ids\": [0, 0]}", 3, "type_ids"},
                        {"{\"ids\": [5], \"type_ids\": [9]}", 3, "9"},
                        {"{\"input\": [[1.0]]}", 3, "token ids"},
                        {"{\"text\": \"x\"}", 3, "ids"},
                        {"{\"ids\": [5], \"decoder_ids\": [1]}", 3, "decoder_ids"},
                        {"nonsense", 3, ""}};
  for (const Case& bad : cases) {
    const Outcome outcome =
        Attend({"run", "--json", Models::Get().tagger},
               std::string("{\"ids\": [5]}\n") + bad.line + "\n{\"ids\": [5]}\n");
    EXPECT_EQ(outcome.code, bad.code) << bad.line << ": " << outcome.err;
    EXPECT_EQ(outcome.objects().size(), 1u) << bad.line;
    EXPECT_TRUE(Contains(outcome.error().at("where").get<std::string>(), "line 2")) << outcome.err;
    EXPECT_TRUE(Contains(outcome.err, bad.message)) << bad.line << ": " << outcome.err;
  }
  std::string ids = "1";
  for (int i = 0; i < 64; ++i) ids += ",1";
  const Outcome too_long =
      Attend({"run", "--json", Models::Get().tagger}, "{\"ids\": [" + ids + "]}\n");
  EXPECT_EQ(too_long.code, 5) << too_long.err;
  EXPECT_TRUE(Contains(too_long.err, "64")) << too_long.err;
  const Outcome want =
      Attend({"run", "--json", "--want", "pooled", Models::Get().tagger}, "{\"ids\": [5]}\n");
  EXPECT_EQ(want.code, 3) << want.err;
  EXPECT_EQ(Attend({"run", Models::Get().tagger, "--input", "x.npy"}).code, 3);
}

TEST(Inspect, Objects) {
  const Outcome outcome = Attend({"inspect", "--json", Models::Get().tagger});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json object = outcome.objects()[0];
  EXPECT_EQ(object.at("task"), "tokens");
  EXPECT_EQ(object.at("source"), "bert");
  EXPECT_EQ(object.at("hidden_size"), 48);
  EXPECT_EQ(object.at("max_length"), 64);
  EXPECT_EQ(object.at("tokenizer"), "wordpiece");
  EXPECT_EQ(object.at("labels").size(), 7u);
  EXPECT_EQ(object.at("file_bytes"), std::filesystem::file_size(Models::Get().tagger));
  EXPECT_GT(object.at("session_bytes"), 0);
  EXPECT_GT(object.at("tensors").size(), 30u);
  const Outcome people = Attend({"inspect", "--tensors", Models::Get().tagger});
  EXPECT_TRUE(Contains(people.out, "embeddings.tokens.weight")) << people.out;
  EXPECT_TRUE(Contains(people.out, "B-MISC")) << people.out;
}

TEST(Verify, SaysNoToADamagedFile) {
  const Outcome whole = Attend({"verify", "--json", Models::Get().tagger});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(whole.objects()[0].at("ok"), true);
  std::string bytes = ReadFile(Models::Get().tagger);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  TemporaryFolder folder;
  const std::string path = folder.Write("damaged.attend", bytes);
  const Outcome damaged = Attend({"verify", "--json", path});
  EXPECT_EQ(damaged.code, 6) << damaged.err;
  EXPECT_EQ(damaged.objects()[0].at("ok"), false);
  EXPECT_EQ(damaged.error().at("code"), "CORRUPT");
  bytes.resize(bytes.size() / 2);
  EXPECT_EQ(Attend({"verify", folder.Write("half.attend", bytes)}).code, 6);
}

TEST(Info, Objects) {
  const Outcome outcome = Attend({"info", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json object = outcome.objects()[0];
  for (const char* key : {"version", "libraries", "cpu", "isa", "threads_reason"}) {
    EXPECT_NE(object.at(key), "") << key;
  }
  EXPECT_TRUE(object.at("caches").is_object());
  EXPECT_GE(object.at("threads"), 1);
  const std::vector<std::string> isas = object.at("isas");
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), "sse4");
  const Outcome limited = Attend({"info", "--json", "--isa", "sse4", "--threads", "3"});
  EXPECT_EQ(limited.objects()[0].at("isa"), "sse4");
  EXPECT_EQ(limited.objects()[0].at("threads"), 3);
  for (const std::string isa : {"sse4", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}) {
    const bool available = std::find(isas.begin(), isas.end(), isa) != isas.end();
    EXPECT_EQ(Attend({"info", "--isa", isa}).code, available ? 0 : 7) << isa;
  }
}

TEST(Completion, BashCompletesCommandsAndOptions) {
  const std::string script =
      "eval \"$('" + ProgramPath() +
      "' completion bash)\"; "
      "COMP_WORDS=(attend ta); COMP_CWORD=1; _attend; echo \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(attend tag --wor); COMP_CWORD=2; _attend; echo \"${COMPREPLY[@]}\"";
  Child child({"bash", "-c", script});
  EXPECT_EQ(child.Finish(), 0) << child.err();
  EXPECT_EQ(child.err(), "");
  EXPECT_EQ(child.out(), "tag\n--words\n");
  for (const std::string shell : {"zsh", "fish"}) {
    const Outcome outcome = Attend({"completion", shell});
    EXPECT_EQ(outcome.code, 0);
    for (const std::string command : kCommands)
      EXPECT_TRUE(Contains(outcome.out, command)) << shell;
  }
}

TEST(Color, IsAskedFor) {
  const std::string model = Models::Get().tagger;
  EXPECT_FALSE(Contains(Attend({"tag", "-m", model, "x"}).out, "\x1b"));
  EXPECT_TRUE(Contains(Attend({"tag", "--color", "always", "-m", model, "x"}).out, "\x1b"));
  EXPECT_TRUE(Contains(Attend({"tag", "-m", model, "x"}, "", {"CLICOLOR_FORCE=1"}).out, "\x1b"));
  EXPECT_FALSE(Contains(
      Attend({"tag", "-m", model, "x"}, "", {"CLICOLOR_FORCE=1", "NO_COLOR=1"}).out, "\x1b"));
  EXPECT_FALSE(Contains(
      Attend({"tag", "--color", "never", "-m", model, "x"}, "", {"CLICOLOR_FORCE=1"}).out, "\x1b"));
}

TEST(Output, FullDeviceIsAnIoError) {
  Child child({"bash", "-c", "'" + ProgramPath() + "' info > /dev/full"});
  EXPECT_EQ(child.Finish(), 4) << child.err();
  EXPECT_TRUE(Contains(child.err(), "cannot write")) << child.err();
}

TEST(Convert, SaysWhatItUnderstoodAndIsDeterministic) {
  TemporaryFolder folder;
  const std::string source = ATTEND_TEST_DATA "/hf/bert_token_classification";
  const Outcome a = Attend({"convert", "--json", source, "-o", folder / "a.attend"});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.objects()[0].at("task"), "tokens");
  EXPECT_EQ(a.objects()[0].at("tokenizer"), "wordpiece");
  EXPECT_FALSE(a.objects()[0].at("understood").empty());
  EXPECT_EQ(ReadFile(folder / "a.attend"), ReadFile(Models::Get().tagger));
  const Outcome bad = Attend({"convert", "--json", folder.path(), "-o", folder / "b.attend"});
  EXPECT_NE(bad.code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "b.attend"));
}

}  // namespace
}  // namespace attend::testing
