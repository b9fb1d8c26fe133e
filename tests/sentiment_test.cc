// The sentiment classifier that ships, through the engine: its figures on the dev texts, and the
// logits and labels of the framework that trained it (models/export_sentiment.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "attend/attend.h"
#include "attend/text.h"
#include "tests/testing.h"

namespace attend {
namespace {

const std::string kSentimentModel = std::string(ATTEND_SOURCE_DIR) + "/models/sentiment-en.attend";
const std::string kSentimentData = std::string(ATTEND_TEST_DATA) + "/sentiment";

struct Rated {
  double rating = 0;
  std::string text;
};

// Mean rating, source and text of one text a line.
std::vector<Rated> ReadTexts() {
  std::ifstream file(kSentimentData + "/dev.tsv");
  std::vector<Rated> texts;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    texts.push_back({std::stod(line.substr(0, first)), line.substr(second + 1)});
  }
  return texts;
}

std::string LabelOf(double rating) {
  return rating > 0.5 ? "positive" : rating < -0.5 ? "negative" : "neutral";
}

double Percent(size_t part, size_t all) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

// A text whose rating is beyond 0.5 either way is on the right side if, of the positive and the
// negative label, the right one is likelier, however likely the neutral one is.
TEST(ShippedSentiment, JudgesDevAsTheFrameworkThatTrainedIt) {
  Result<Classifier> classifier =
      Classifier::Load(kSentimentModel, {.session = {.num_threads = 2}});
  ASSERT_TRUE(classifier.ok()) << classifier.status().ToString();
  const std::span<const std::string> labels = classifier->labels();
  ASSERT_EQ(std::vector<std::string>(labels.begin(), labels.end()),
            (std::vector<std::string>{"negative", "neutral", "positive"}));
  const std::vector<Rated> rated = ReadTexts();
  ASSERT_EQ(rated.size(), 2371u);
  std::vector<std::string_view> texts;
  for (const Rated& text : rated) texts.push_back(text.text);
  Result<std::vector<Classification>> found = classifier->ClassifyBatch(texts);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  std::ifstream trained(kSentimentData + "/labels.txt");
  size_t right = 0, sides = 0, right_side = 0, same = 0;
  for (size_t i = 0; i < rated.size(); ++i) {
    const Classification& result = (*found)[i];
    std::string expected;
    ASSERT_TRUE(std::getline(trained, expected));
    same += result.label == expected ? 1 : 0;
    right += result.label == LabelOf(rated[i].rating) ? 1 : 0;
    if (std::abs(rated[i].rating) <= 0.5) continue;
    ++sides;
    right_side += (result.scores[2] > result.scores[0]) == (rated[i].rating > 0) ? 1 : 0;
  }
  ASSERT_EQ(sides, 1889u);
  std::printf("sentiment on dev: %.2f %% of %zu labels right, %.2f %% of %zu on the right side, ",
              Percent(right, rated.size()), rated.size(), Percent(right_side, sides), sides);
  std::printf("%zu labels as in training (%.3f %%)\n", same, Percent(same, rated.size()));
  EXPECT_GE(Percent(right, rated.size()), 75.0);
  EXPECT_GE(Percent(right_side, sides), 88.0);
  EXPECT_GE(Percent(same, rated.size()), 99.9);
}

TEST(ShippedSentiment, LogitsAreThoseOfTraining) {
  Result<Model> model = Model::Load(kSentimentModel);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = Session::Create(*model);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const testing::Golden golden = testing::ReadGolden(kSentimentData + "/logits.safetensors");
  double largest = 0;
  int texts = 0;
  for (; golden.tensors.count(std::to_string(texts) + ".logits") != 0; ++texts) {
    const auto& wide = golden.tensors.at(std::to_string(texts) + ".input_ids").i64;
    const std::vector<int32_t> ids(wide.begin(), wide.end());
    const int32_t offsets[] = {0, static_cast<int32_t>(ids.size())};
    Result<Output> output = session->Run({.ids = ids, .offsets = offsets});
    ASSERT_TRUE(output.ok()) << output.status().ToString();
    const std::vector<float>& want = golden.tensors.at(std::to_string(texts) + ".logits").f32;
    ASSERT_EQ(output->logits.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(output->logits[i]) - want[i]));
    }
  }
  EXPECT_EQ(texts, 50);
  std::printf("logits of %d texts: largest difference %.1e\n", texts, largest);
  EXPECT_LE(largest, 1e-4);
}

TEST(ShippedSentiment, TakesSides) {
  Result<Classifier> classifier = Classifier::Load(kSentimentModel);
  ASSERT_TRUE(classifier.ok()) << classifier.status().ToString();
  const auto label = [&](std::string_view text) {
    Result<Classification> result = classifier->Classify(text);
    return result.ok() ? result->label : result.status().ToString();
  };
  EXPECT_EQ(label("You are very good"), "positive");
  EXPECT_EQ(label("It is a chair."), "neutral");
  EXPECT_EQ(label("I hate this."), "negative");
}

}  // namespace
}  // namespace attend
