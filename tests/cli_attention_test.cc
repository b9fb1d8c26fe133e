// attend attention: objects, pictures in the terminal and in files, and what bad input is answered.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/child.h"
#include "tools/attention_picture.h"

namespace attend::testing {
namespace {

using nlohmann::json;
using tools::AttentionPicture;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A model of ids without a tokenizer, and one that takes a graph of vectors.
std::string Convert(const TemporaryFolder& folder, const std::string& source) {
  const std::string path = folder / "model.attend";
  const Outcome outcome =
      Attend({"convert", std::string(ATTEND_TEST_DATA) + "/" + source, "-o", path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return path;
}

TEST(Attention, Object) {
  const Outcome outcome = Attend({"attention", "--json", "I saw a saw"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json object = outcome.objects().at(0);
  EXPECT_EQ(object.at("tokens"), json({"[CLS]", "i", "saw", "a", "saw", "[SEP]"}));
  ASSERT_EQ(object.at("layers").size(), 4u);
  for (const json& layer : object.at("layers")) {
    ASSERT_EQ(layer.size(), 12u);
    for (const json& head : layer) {
      ASSERT_EQ(head.size(), 6u);
      for (const json& query : head) {
        ASSERT_EQ(query.size(), 6u);
        double sum = 0;
        for (const json& weight : query) sum += weight.get<double>();
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
  }
}

TEST(Attention, LayerAndHeadAreThoseOfTheWhole) {
  const json all = Attend({"attention", "--json", "I saw a saw"}).objects().at(0);
  const json one =
      Attend({"attention", "--json", "--layer", "2", "--head", "7", "I saw a saw"}).objects().at(0);
  EXPECT_EQ(one.at("layer"), 2);
  EXPECT_EQ(one.at("head"), 7);
  EXPECT_EQ(one.at("layers"), json::array({json::array({all.at("layers")[2][7]})}));
}

TEST(Attention, Terminal) {
  const Outcome mean = Attend({"attention", "I saw a saw"});
  EXPECT_EQ(mean.code, 0) << mean.err;
  EXPECT_TRUE(mean.out.starts_with("layer 3, mean of 12 heads  (every row looks")) << mean.out;
  EXPECT_EQ(Count(mean.out, "\n"), 8u) << mean.out;
  EXPECT_FALSE(Has(mean.out, "\x1b")) << "colours without a terminal";
  const Outcome head = Attend({"attention", "--layer", "1", "--head", "4", "I saw a saw"});
  EXPECT_TRUE(head.out.starts_with("layer 1, head 4  (")) << head.out;
  EXPECT_TRUE(Has(Attend({"attention", "--color", "always", "saw"}).out, "\x1b[38;5;"));
  EXPECT_FALSE(
      Has(Attend({"attention", "saw"}, {}, {"NO_COLOR=1", "CLICOLOR_FORCE=1"}).out, "\x1b"));
  // Lines of standard input, one picture each.
  EXPECT_EQ(Count(Attend({"attention"}, "one\ntwo\n").out, "layer 3, "), 2u);
}

TEST(Attention, TerminalFitsItsWidth) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "word ";
  for (const int width : {40, 80, 200}) {
    const Outcome outcome = Attend({"attention", text}, {}, {"COLUMNS=" + std::to_string(width)});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::string line;
    std::getline(lines, line);  // what is shown
    while (std::getline(lines, line)) {
      EXPECT_LE(tools::DisplayWidth(line), width) << line;
    }
  }
}

TEST(Attention, Files) {
  const TemporaryFolder folder;
  for (const std::string name : {"picture.svg", "picture.html"}) {
    const Outcome outcome =
        Attend({"attention", "--output", folder / name, "I <saw> a \"saw\" & co"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const std::string file = ReadFile(folder / name);
    EXPECT_EQ(Count(file, "data-l="), 4u * 13u) << "all heads of all layers, and the means";
    EXPECT_TRUE(Has(file, "prefers-color-scheme:dark"));
    EXPECT_TRUE(Has(file, "I &lt;saw&gt; a &quot;saw&quot; &amp; co"));
    EXPECT_FALSE(Has(file, "<saw>"));
    EXPECT_TRUE(Has(file, "<title>saw → [SEP]: 0"));
    // Nothing is fetched from elsewhere: the name of the format is the only address.
    EXPECT_EQ(Count(file, "://"), Count(file, "http://www.w3.org/2000/svg"));
    EXPECT_FALSE(Has(file, "src="));
    EXPECT_FALSE(Has(file, "href="));
  }
  EXPECT_TRUE(ReadFile(folder / "picture.html").starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(ReadFile(folder / "picture.svg").starts_with("<?xml"));
}

TEST(Attention, AFileShowsOneText) {
  const TemporaryFolder folder;
  const Outcome outcome = Attend({"attention", "--json", "--output", folder / "p.svg", "a", "b"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.error().at("where"), "text 1, --output");
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "p.svg"));
}

TEST(Attention, Errors) {
  const Outcome layer = Attend({"attention", "--json", "--layer", "4", "x"});
  EXPECT_EQ(layer.code, 3);
  EXPECT_EQ(layer.error().at("what"), "there is no layer 4; the model has 0 to 3");
  EXPECT_EQ(layer.error().at("where"), "text 1, --layer");
  const Outcome head = Attend({"attention", "--json", "--head", "12", "x"});
  EXPECT_EQ(head.error().at("what"), "there is no head 12; the model has 0 to 11");
  std::string text;
  for (int i = 0; i < 600; ++i) text += "word ";
  const Outcome length = Attend({"attention", "--json", text});
  EXPECT_EQ(length.code, 5);
  EXPECT_TRUE(Has(length.error().at("what"), "the text has 600 tokens"));
  EXPECT_EQ(Attend({"attention", "--output", "/nowhere/p.svg", "x"}).code, 4);
}

TEST(Attention, RawIdsAndGraphs) {
  const TemporaryFolder folder;
  const std::string ids = Convert(folder, "family/minimal_tokens_tagger");
  const Outcome text = Attend({"attention", "--json", "-m", ids, "x"});
  EXPECT_EQ(text.code, 3);
  const Outcome raw = Attend({"attention", "--json", "--raw", "-m", ids}, "{\"ids\": [3, 1, 2]}\n");
  ASSERT_EQ(raw.code, 0) << raw.err;
  EXPECT_EQ(raw.objects().at(0).at("tokens"), json({"3", "1", "2"}));
  const std::string graph = Convert(folder, "family/edges_softmax");
  const json sizes = json::parse(Attend({"inspect", "--json", graph}).out);
  json input = {{"edges", {{0, 1}, {2, 2}}}};
  const char* const key = sizes.at("input_size") > 0 ? "input" : "ids";
  for (int i = 0; i < 3; ++i) {
    input[key].push_back(sizes.at("input_size") > 0
                             ? json(std::vector<double>(sizes.at("input_size"), 0.5 * i))
                             : json(i));
  }
  const Outcome seen = Attend({"attention", "--json", "--raw", "-m", graph}, input.dump() + "\n");
  ASSERT_EQ(seen.code, 0) << seen.err;
  for (const json& layer : seen.objects().at(0).at("layers")) {
    for (const json& weights : layer) {
      EXPECT_EQ(weights, json({{0.0, 1.0, 0.0}, {0.0, 0.0, 0.0}, {0.0, 0.0, 1.0}}));
    }
  }
}

AttentionPicture Two() {
  AttentionPicture picture;
  picture.title = "two";
  picture.queries = picture.keys = {"a", "\x1b[31m"};
  picture.layer_numbers = {5};
  picture.head_numbers = {1, 2};
  picture.weights = {1, 0, 0.5f, -0.5f, 0, 0, 0.25f, 1.5f};
  return picture;
}

TEST(AttentionPicture, MeanAndNames) {
  const AttentionPicture picture = Two();
  EXPECT_EQ(picture.Matrix(0, tools::kMeanOfHeads), std::vector<float>({0.5f, 0, 0.375f, 0.5f}));
  EXPECT_EQ(picture.Matrix(0, 1), std::vector<float>({0, 0, 0.25f, 1.5f}));
  EXPECT_EQ(picture.Name(0, 1), "layer 5, head 2");
  EXPECT_EQ(picture.Name(0, tools::kMeanOfHeads), "layer 5, mean of 2 heads");
}

TEST(AttentionPicture, ATokenCannotCommandTheTerminal) {
  AttentionPicture picture = Two();
  const auto plain = [](std::string_view text, std::string_view) { return std::string(text); };
  for (const int width : {100, 8}) {
    EXPECT_FALSE(Has(tools::DrawInTerminal(picture, width, plain), "\x1b"));
  }
  EXPECT_FALSE(Has(tools::DrawSvg(picture), "\x1b"));
  // Nor end the script that it is written into.
  picture.queries[0] = "]]></script>";
  EXPECT_EQ(Count(tools::DrawSvg(picture), "</script>"), 1u);
}

TEST(AttentionPicture, BelowZeroIsShown) {
  AttentionPicture picture = Two();
  picture.head = 0;
  const auto plain = [](std::string_view text, std::string_view) { return std::string(text); };
  EXPECT_TRUE(Has(tools::DrawInTerminal(picture, 100, plain), "-0.50"));
  EXPECT_TRUE(Has(tools::DrawSvg(picture), "class=\"n\""));
  EXPECT_TRUE(Has(tools::DrawSvg(picture), "below zero"));
}

TEST(AttentionPicture, Widths) {
  EXPECT_EQ(tools::DisplayWidth("caf\u00e9"), 4);
  EXPECT_EQ(tools::DisplayWidth("cafe\u0301"), 4);
  EXPECT_EQ(tools::DisplayWidth("日本"), 4);
  EXPECT_EQ(tools::Shorten("unbelievable", 6), "unbel…");
  EXPECT_EQ(tools::Shorten("saw", 3), "saw");
}

}  // namespace
}  // namespace attend::testing
