// The tagger that ships, through the engine: its accuracy on the treebank's dev part, and the
// logits and tags of the framework that trained it (models/export_golden.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/text.h"
#include "engine/format.h"
#include "tests/testing.h"

namespace attend {
namespace {

const std::string kTaggerModel = std::string(ATTEND_SOURCE_DIR) + "/models/pos-en.attend";
const std::string kTaggerData = std::string(ATTEND_TEST_DATA);

struct Sentence {
  std::vector<std::string> words, tags;
};

// Word and tag of one word a line, an empty line after a sentence.
std::vector<Sentence> ReadTreebank() {
  std::ifstream file(kTaggerData + "/ud_english_ewt/en_ewt.dev.tsv");
  std::vector<Sentence> sentences(1);
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) {
      sentences.emplace_back();
      continue;
    }
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    sentences.back().words.push_back(line.substr(0, first));
    sentences.back().tags.push_back(line.substr(first + 1, second - first - 1));
  }
  while (!sentences.empty() && sentences.back().words.empty()) sentences.pop_back();
  return sentences;
}

std::vector<std::string> ReadTags() {
  std::ifstream file(kTaggerData + "/tagger/tags.txt");
  std::vector<std::string> tags;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) tags.push_back(line);
  }
  return tags;
}

TEST(ShippedTagger, TagsDevAsTheFrameworkThatTrainedIt) {
  Result<Tagger> tagger = Tagger::Load(kTaggerModel, {.session = {.num_threads = 2}});
  ASSERT_TRUE(tagger.ok()) << tagger.status().ToString();
  const std::vector<Sentence> sentences = ReadTreebank();
  ASSERT_EQ(sentences.size(), 2001u);
  std::vector<std::vector<std::string_view>> texts;
  for (const Sentence& sentence : sentences) {
    texts.emplace_back(sentence.words.begin(), sentence.words.end());
  }
  Result<std::vector<Tags>> tagged = tagger->TagWordsBatch(texts);
  ASSERT_TRUE(tagged.ok()) << tagged.status().ToString();
  const std::vector<std::string> expected = ReadTags();
  size_t words = 0, right = 0, same = 0;
  for (size_t s = 0; s < sentences.size(); ++s) {
    ASSERT_EQ((*tagged)[s].words.size(), sentences[s].words.size());  // one label a word
    for (size_t w = 0; w < sentences[s].words.size(); ++w, ++words) {
      ASSERT_LT(words, expected.size());
      const std::string& label = (*tagged)[s].words[w].label;
      right += label == sentences[s].tags[w] ? 1 : 0;
      same += label == expected[words] ? 1 : 0;
    }
  }
  ASSERT_EQ(words, 25147u);
  ASSERT_EQ(expected.size(), words);
  const double total = static_cast<double>(words);
  const double accuracy = static_cast<double>(right) / total;
  const double agreement = static_cast<double>(same) / total;
  std::printf("tagger on dev: %zu of %zu words right (%.2f %%), %zu as in training (%.3f %%)\n",
              right, words, 100 * accuracy, same, 100 * agreement);
  EXPECT_GE(accuracy, 0.960);
  EXPECT_GE(agreement, 0.999);
}

// The percentage of dev's words that get the right tag.
double AccuracyOn(const std::vector<Sentence>& sentences, Precision precision) {
  Result<Tagger> tagger =
      Tagger::Load(kTaggerModel, {.session = {.num_threads = 2, .precision = precision}});
  EXPECT_TRUE(tagger.ok()) << tagger.status().ToString();
  std::vector<std::vector<std::string_view>> texts;
  for (const Sentence& sentence : sentences) {
    texts.emplace_back(sentence.words.begin(), sentence.words.end());
  }
  Result<std::vector<Tags>> tagged = tagger->TagWordsBatch(texts);
  EXPECT_TRUE(tagged.ok()) << tagged.status().ToString();
  double words = 0, right = 0;
  for (size_t s = 0; s < sentences.size(); ++s) {
    for (size_t w = 0; w < sentences[s].words.size(); ++w, ++words) {
      right += (*tagged)[s].words[w].label == sentences[s].tags[w] ? 1 : 0;
    }
  }
  return 100 * right / words;
}

// Chosen by the caller, with no layer more exact than the rest.
TEST(ShippedTagger, KeepsItsAccuracyInEveryPrecision) {
  const std::vector<Sentence> sentences = ReadTreebank();
  const double f32 = AccuracyOn(sentences, Precision::kF32);
  const double bf16 = AccuracyOn(sentences, Precision::kBf16);
  const double int8 = AccuracyOn(sentences, Precision::kInt8);
  std::printf("tagger on dev: %.2f %% in f32, %.2f %% in bf16, %.2f %% in int8\n", f32, bf16, int8);
  EXPECT_GE(bf16, f32 - 0.1);
  EXPECT_GE(int8, f32 - 0.3);
}

// From the raw text: a word counts if begin and end are right, a tagged word if its tag is too.
TEST(ShippedTagger, CutsAndTagsRawText) {
  Result<Tagger> tagger = Tagger::Load(kTaggerModel, {.session = {.num_threads = 2}});
  ASSERT_TRUE(tagger.ok()) << tagger.status().ToString();
  const std::vector<Sentence> sentences = ReadTreebank();
  std::ifstream file(kTaggerData + "/ud_english_ewt/en_ewt.dev.text.tsv");
  size_t gold = 0, cut = 0, found = 0, tagged_right = 0, s = 0;
  for (std::string line; std::getline(file, line); ++s) {
    ASSERT_LT(s, sentences.size());
    const size_t tab = line.find('\t');
    const std::string text = line.substr(0, tab);
    std::map<std::pair<uint32_t, uint32_t>, std::string> words;
    size_t at = tab + 1;
    for (const std::string& tag : sentences[s].tags) {
      const size_t dash = line.find('-', at);
      const uint32_t begin = static_cast<uint32_t>(std::stoul(line.substr(at, dash - at)));
      const uint32_t end = static_cast<uint32_t>(std::stoul(line.substr(dash + 1)));
      words[{begin, end}] = tag;
      at = std::min(line.find(' ', dash), line.size() - 1) + 1;
    }
    gold += sentences[s].tags.size();
    Result<Tags> tags = tagger->Tag(text);
    ASSERT_TRUE(tags.ok()) << tags.status().ToString();
    cut += tags->words.size();
    for (const TaggedWord& word : tags->words) {
      const auto right = words.find({word.range.begin, word.range.end});
      if (right == words.end()) continue;
      ++found;
      tagged_right += right->second == word.label ? 1 : 0;
    }
  }
  ASSERT_EQ(s, sentences.size());
  const auto percent = [](size_t a, size_t b) {
    return 100.0 * static_cast<double>(a) / static_cast<double>(b);
  };
  const auto f1 = [&](size_t hits) { return percent(2 * hits, gold + cut); };
  std::printf(
      "raw text of dev: words precision %.2f recall %.2f F1 %.2f; tagged words precision "
      "%.2f recall %.2f F1 %.2f\n",
      percent(found, cut), percent(found, gold), f1(found), percent(tagged_right, cut),
      percent(tagged_right, gold), f1(tagged_right));
  EXPECT_GE(f1(found), 98.5);
  EXPECT_GE(f1(tagged_right), 95.0);
}

// The largest difference from the framework's logits over 50 sentences; the logits are up to ~10.
double LargestLogitDifference(const Model& model) {
  const testing::Golden golden = testing::ReadGolden(kTaggerData + "/tagger/logits.safetensors");
  Result<Session> session = Session::Create(model);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  double largest = 0;
  int sentences = 0;
  for (int k = 0; golden.tensors.count(std::to_string(k) + ".logits") != 0; ++k, ++sentences) {
    const auto read = [&](const char* name) {
      const auto& wide = golden.tensors.at(std::to_string(k) + "." + name).i64;
      return std::vector<int32_t>(wide.begin(), wide.end());
    };
    const std::vector<int32_t> ids = read("input_ids"), types = read("type_ids");
    const int32_t offsets[] = {0, static_cast<int32_t>(ids.size())};
    Result<Output> output = session->Run({.ids = ids, .offsets = offsets, .type_ids = types});
    EXPECT_TRUE(output.ok()) << output.status().ToString();
    const std::vector<float>& want = golden.tensors.at(std::to_string(k) + ".logits").f32;
    EXPECT_EQ(output->logits.size(), want.size());
    for (size_t i = 0; i < std::min(want.size(), output->logits.size()); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(output->logits[i]) - want[i]));
    }
  }
  EXPECT_EQ(sentences, 50);
  return largest;
}

TEST(ShippedTagger, LogitsAreThoseOfTraining) {
  Result<Model> model = Model::Load(kTaggerModel);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const double largest = LargestLogitDifference(*model);
  std::printf("logits of 50 sentences: largest difference %.1e\n", largest);
  EXPECT_LE(largest, 1e-4);
}

TEST(ShippedTagger, AnotherWeightGivesOtherLogits) {
  Result<FileBytes> file = FileBytes::Open(kTaggerModel, FileBytes::Mode::kRead);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
  Result<FileView> view = FileView::Open(file->bytes(), VerifyLevel::kStructure, kTaggerModel);
  ASSERT_TRUE(view.ok());
  const std::optional<TensorView> weight = view->FindTensor("layers.2.ffn.up.weight");
  ASSERT_TRUE(weight.has_value());
  // Structure and header stay whole, so the model loads; only the numbers of one layer differ.
  const size_t at = static_cast<size_t>(weight->bytes.data() - file->bytes().data());
  for (size_t i = 0; i < weight->bytes.size(); i += 7) bytes[at + i] ^= std::byte{0x20};
  Result<Model> model = Model::FromBytes(bytes);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_GT(LargestLogitDifference(*model), 1e-2);
}

TEST(ShippedTagger, TheTwoSawsDiffer) {
  Result<Tagger> tagger = Tagger::Load(kTaggerModel);
  ASSERT_TRUE(tagger.ok()) << tagger.status().ToString();
  Result<Tags> tags = tagger->Tag("I saw a saw");
  ASSERT_TRUE(tags.ok());
  std::string labels;
  for (const TaggedWord& word : tags->words) labels += word.label + " ";
  EXPECT_EQ(labels, "PRON VERB DET NOUN ");
}

}  // namespace
}  // namespace attend
