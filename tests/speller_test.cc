// The speller that ships, through search and tokenizer: its errors on the dictionary's dev part,
// and the sounds that the framework that trained it finds (models/export_g2p.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "attend/text.h"

namespace attend {
namespace {

const std::string kSpellerModel = std::string(ATTEND_SOURCE_DIR) + "/models/g2p-en.attend";
const std::string kSpellerData = std::string(ATTEND_TEST_DATA);

using Sounds = std::vector<std::string>;

Sounds Split(const std::string& text) {
  std::istringstream words(text);
  Sounds sounds;
  for (std::string sound; words >> sound;) sounds.push_back(sound);
  return sounds;
}

Sounds WithoutStress(Sounds sounds) {
  for (std::string& sound : sounds) {
    while (!sound.empty() && sound.back() >= '0' && sound.back() <= '2') sound.pop_back();
  }
  return sounds;
}

struct DictionaryWord {
  std::string spelling;
  std::vector<Sounds> sounds;  // any of them is right
};

// Spelling, a tab, pronunciations with " | " between them.
std::vector<DictionaryWord> ReadDictionary() {
  std::ifstream file(kSpellerData + "/cmudict/dev.tsv");
  std::vector<DictionaryWord> words;
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    DictionaryWord word{line.substr(0, tab), {}};
    for (size_t at = tab + 1; at <= line.size();) {
      const size_t end = std::min(line.find(" | ", at), line.size());
      word.sounds.push_back(Split(line.substr(at, end - at)));
      at = end + 3;
    }
    words.push_back(std::move(word));
  }
  return words;
}

// How many sounds must be put in, left out or changed to make one of the other.
size_t EditDistance(const Sounds& a, const Sounds& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row[b.size()];
}

// Shares of wrong words, and of wrong sounds beside the closest pronunciation.
struct Errors {
  size_t words = 0, wrong = 0, distance = 0, length = 0;

  void Add(const Sounds& found, const std::vector<Sounds>& right) {
    size_t best = found.size() + 1000, best_length = 0;
    for (const Sounds& sounds : right) {
      const size_t distance_to = EditDistance(found, sounds);
      if (distance_to > best || (distance_to == best && sounds.size() <= best_length)) continue;
      best = distance_to;
      best_length = sounds.size();
    }
    ++words;
    wrong += best > 0 ? 1 : 0;
    distance += best;
    length += best_length;
  }
  double word_rate() const { return static_cast<double>(wrong) / static_cast<double>(words); }
  double sound_rate() const { return static_cast<double>(distance) / static_cast<double>(length); }
};

Generator Speller(int threads) {
  Result<Generator> generator =
      Generator::Load(kSpellerModel, {.session = {.num_threads = threads}, .max_text_tokens = 64});
  EXPECT_TRUE(generator.ok()) << generator.status().ToString();
  return *std::move(generator);
}

TEST(ShippedSpeller, ErrorsOnDev) {
  Generator speller = Speller(2);
  EXPECT_EQ(speller.settings().num_beams, 4);
  const std::vector<DictionaryWord> words = ReadDictionary();
  ASSERT_EQ(words.size(), 12441u);
  std::vector<std::string_view> texts;
  for (const DictionaryWord& word : words) texts.push_back(word.spelling);
  const Result<std::vector<Generation>> found = speller.GenerateBatch(texts);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  Errors with_stress, without_stress;
  for (size_t i = 0; i < words.size(); ++i) {
    const Sounds sounds = Split((*found)[i].outputs.at(0).text);
    with_stress.Add(sounds, words[i].sounds);
    std::vector<Sounds> bare;
    for (const Sounds& right : words[i].sounds) bare.push_back(WithoutStress(right));
    without_stress.Add(WithoutStress(sounds), bare);
  }
  std::printf(
      "spelling to sounds on dev: %zu words, %.2f %% wrong, %.2f %% of sounds wrong; without "
      "stress %.2f %% and %.2f %%\n",
      words.size(), 100 * with_stress.word_rate(), 100 * with_stress.sound_rate(),
      100 * without_stress.word_rate(), 100 * without_stress.sound_rate());
  EXPECT_LE(with_stress.word_rate(), 0.36);
  EXPECT_LE(with_stress.sound_rate(), 0.11);
  EXPECT_LE(without_stress.word_rate(), 0.32);
  EXPECT_LE(without_stress.sound_rate(), 0.09);
}

// Word, sounds, score: what beam search of the training framework gives for every 25th word.
TEST(ShippedSpeller, SaysWhatTheFrameworkThatTrainedItSays) {
  Generator speller = Speller(2);
  std::ifstream file(kSpellerData + "/g2p/beam.tsv");
  size_t words = 0, same = 0;
  double largest = 0;
  for (std::string line; std::getline(file, line); ++words) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    const Result<Generation> found = speller.Generate(line.substr(0, first));
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    const GeneratedText& best = found->outputs.at(0);
    if (best.text != line.substr(first + 1, second - first - 1)) continue;
    ++same;
    largest = std::max(largest, std::abs(best.score - std::stod(line.substr(second + 1))));
  }
  std::printf("%zu of %zu words sound as in training; scores differ by %.1e at most\n", same, words,
              largest);
  ASSERT_GT(words, 400u);
  EXPECT_GE(static_cast<double>(same), 0.995 * static_cast<double>(words));
  EXPECT_LE(largest, 1e-4);
}

TEST(ShippedSpeller, SpeaksAWordOfNoDictionary) {
  Generator speller = Speller(1);
  const Result<Generation> found = speller.Generate("attendify");
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  const Sounds sounds = Split(found->outputs.at(0).text);
  EXPECT_GE(sounds.size(), 6u);
  EXPECT_LE(sounds.size(), 10u);
  EXPECT_EQ(*speller.Generate("ATTENDIFY")->outputs.begin()->ids.begin(),
            found->outputs[0].ids[0]);  // case does not matter
}

}  // namespace
}  // namespace attend
