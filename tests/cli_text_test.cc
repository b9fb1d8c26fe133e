// The commands that take texts: their objects, and their text for people.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>

#include "tests/child.h"

namespace attend::testing {
namespace {

using nlohmann::json;

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
  EXPECT_TRUE(Has(outcome.out, " saw/")) << outcome.out;
  EXPECT_FALSE(Has(outcome.out, "\x1b")) << "a text must not command the terminal";
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
  EXPECT_TRUE(Has("O B-PER I-PER B-LOC I-LOC B-MISC I-MISC",
                  outcome.objects()[0].at("words")[0].at("label")));
}

TEST(Tag, NoShippedModelSaysWhereItLooked) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::copy(ProgramPath(), folder / "bin/attend");
  Child child({folder / "bin/attend", "tag", "--json", "x"});
  EXPECT_EQ(child.Finish(), 4);
  EXPECT_TRUE(Has(child.err(), folder / "share/attend/models")) << child.err();
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
  EXPECT_TRUE(Has(no_tab.err, "TAB")) << no_tab.err;
}

// Reads [B, D] f32 of NumPy's format 1.0.
std::vector<float> ReadNpy(const std::string& bytes, const std::string& shape) {
  EXPECT_TRUE(bytes.starts_with(std::string("\x93NUMPY\x01\x00", 8)));
  const size_t header =
      10 + static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ(header % 64, 0u);
  EXPECT_TRUE(Has(bytes.substr(0, header), "'shape': " + shape)) << bytes.substr(0, header);
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

// A rename puts a file in the place of anything: even of /dev/null, for those who may.
TEST(Embed, OutputReplacesFilesOnly) {
  TemporaryFolder folder;
  const std::string pipe = folder / "pipe", sub_folder = folder / "folder";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_directory(sub_folder);
  for (const std::string& path : {pipe, sub_folder, folder / "folder/"}) {
    const Outcome outcome =
        Attend({"embed", "--json", "-m", Models::Get().embedder, "-o", path, "x"});
    EXPECT_EQ(outcome.code, 3) << path << outcome.err;
    EXPECT_TRUE(Has(outcome.error().at("where"), folder.path())) << outcome.err;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
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

}  // namespace
}  // namespace attend::testing
