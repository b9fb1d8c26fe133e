// The search against what Hugging Face transformers finds (tests/data/generation), against a plain
// twin, and at its edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>

#include "engine/generate_random.h"
#include "tests/generate_testing.h"
#include "tests/testing.h"

namespace attend::testing {
namespace {

FakeModel::Formula WithSalt(uint64_t salt, int64_t vocab) {
  return [=](const Ids& source, const Ids& ids) {
    const auto place = static_cast<uint64_t>(std::accumulate(source.begin(), source.end(), 0));
    return FormulaLogits(ids, salt + place, vocab);
  };
}

TEST(GenerateSearch, FindsWhatTransformersFinds) {
  std::ifstream file(std::string(ATTEND_TEST_DATA) + "/generation/search.jsonl");
  int cases = 0, outputs = 0;
  double largest = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto json = nlohmann::json::parse(line);
    const auto vocab = json["vocab_size"].get<int64_t>();
    const GenerationSettings given = SettingsOf(json["settings"]);
    const Status status = CheckSettings(given, vocab);
    ASSERT_TRUE(status.ok()) << status.ToString() << "\n" << line;
    const SearchSettings settings = PlainSettings(given);
    FakeModel model(vocab, settings.rows(), WithSalt(json["salt"].get<uint64_t>(), vocab));
    const Found found = Decode({{{}, json["prompt"].get<Ids>()}}, settings, vocab, 1, &model)[0];
    EXPECT_EQ(found.outputs, json["outputs"].get<std::vector<Ids>>()) << line;
    if (!json.contains("scores")) continue;
    const auto scores = json["scores"].get<std::vector<double>>();
    ASSERT_EQ(found.scores.size(), scores.size()) << line;
    for (size_t i = 0; i < scores.size(); ++i, ++outputs) {
      const double difference = std::abs(found.scores[i] - scores[i]) / (1 + std::abs(scores[i]));
      largest = std::max(largest, difference);
      EXPECT_LE(difference, 2e-6) << line;
    }
  }
  std::printf("%d cases, %d scores; largest difference %.1e\n", cases, outputs, largest);
  EXPECT_GT(cases, 390);
}

// ---- A plain twin: the definition, with nothing bounded and nothing reused.

struct Hypothesis {
  Ids ids;
  double score = 0;
};

struct TwinModel {
  int64_t vocab;
  FakeModel::Formula formula;

  std::vector<double> LogProbabilities(const Ids& ids) const {
    const std::vector<float> logits = formula({}, ids);
    double sum = 0;
    for (float logit : logits) sum += std::exp(static_cast<double>(logit));
    std::vector<double> log_probabilities;
    for (float logit : logits) log_probabilities.push_back(logit - std::log(sum));
    return log_probabilities;
  }
};

std::vector<Hypothesis> TwinBeams(const TwinModel& model, const Ids& prompt, size_t beams,
                                  size_t new_tokens, double penalty, EarlyStopping early) {
  constexpr int32_t kEnd = 0;
  std::vector<Hypothesis> running = {{prompt, 0}}, finished;
  const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
  for (size_t length = 1; length <= new_tokens; ++length) {
    std::vector<Hypothesis> all;
    for (const Hypothesis& beam : running) {
      const std::vector<double> next = model.LogProbabilities(beam.ids);
      for (size_t v = 0; v < next.size(); ++v) {
        all.push_back({beam.ids, beam.score + next[v]});
        all.back().ids.push_back(static_cast<int32_t>(v));
      }
    }
    std::stable_sort(all.begin(), all.end(), better);
    if (all.size() > 2 * beams) all.resize(2 * beams);
    running.clear();
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].ids.back() != kEnd && length < new_tokens) {
        if (running.size() < beams) running.push_back(all[rank]);
      } else if (rank < beams) {
        const double divisor = std::pow(static_cast<double>(length), penalty);
        finished.push_back({all[rank].ids, all[rank].score / divisor});
      }
    }
    std::stable_sort(finished.begin(), finished.end(), better);
    if (finished.size() > beams) finished.resize(beams);
    if (running.empty() || finished.size() < beams) continue;
    if (early == EarlyStopping::kYes) break;
    const bool longest = early == EarlyStopping::kNever && penalty > 0;
    const double best =
        running[0].score / std::pow(static_cast<double>(longest ? new_tokens : length), penalty);
    if (!(best > finished.back().score)) break;
  }
  return finished;
}

TEST(GenerateSearch, BeamsAreThoseOfThePlainTwin) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const int64_t vocab = 3 + random.Below(30);
    const TwinModel twin{vocab, WithSalt(random.Next() % 1000, vocab)};
    const auto beams = static_cast<int32_t>(2 + random.Below(5));
    const auto new_tokens = static_cast<int32_t>(1 + random.Below(10));
    if (vocab < 2 * beams) continue;  // the copies of the first beam would be taken, too
    const double penalty = std::vector<double>{1, 0, -0.5, 0.7, 2}[random.Next() % 5];
    const auto early = static_cast<EarlyStopping>(random.Next() % 3);
    const Ids prompt = {static_cast<int32_t>(random.Below(vocab))};
    const SearchSettings settings{.num_beams = beams,
                                  .num_return_sequences = beams,
                                  .max_new_tokens = new_tokens,
                                  .early_stopping = early,
                                  .length_penalty = penalty,
                                  .eos_token_ids = {0}};
    FakeModel model(vocab, beams, twin.formula);
    const Found found = Decode({{{}, prompt}}, settings, vocab, 1, &model)[0];
    const std::vector<Hypothesis> want = TwinBeams(twin, prompt, static_cast<size_t>(beams),
                                                   static_cast<size_t>(new_tokens), penalty, early);
    ASSERT_EQ(found.outputs.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(found.outputs[i], Ids(want[i].ids.begin() + 1, want[i].ids.end()));
      EXPECT_NEAR(found.scores[i], want[i].score, 1e-9 * (1 + std::abs(want[i].score)));
    }
  }
}

// With as many beams as there are sequences the best is found.
TEST(GenerateSearch, EnoughBeamsFindTheBestOfAll) {
  constexpr int64_t kVocab = 3;
  constexpr int32_t kNew = 4;
  for (uint64_t salt = 0; salt < 20; ++salt) {
    const TwinModel twin{kVocab, WithSalt(salt, kVocab)};
    std::vector<Hypothesis> open = {{{1}, 0}};
    Hypothesis best{{}, -1e300};
    while (!open.empty()) {
      const Hypothesis hypothesis = open.back();
      open.pop_back();
      const std::vector<double> next = twin.LogProbabilities(hypothesis.ids);
      for (size_t v = 0; v < next.size(); ++v) {
        Hypothesis longer{hypothesis.ids, hypothesis.score + next[v]};
        longer.ids.push_back(static_cast<int32_t>(v));
        const bool ended = v == 0 || longer.ids.size() == kNew + 1;
        if (!ended) {
          open.push_back(longer);
        } else if (longer.score > best.score) {
          best = longer;
        }
      }
    }
    const SearchSettings settings{.num_beams = 81,
                                  .max_new_tokens = kNew,
                                  .early_stopping = EarlyStopping::kNever,
                                  .length_penalty = 0,
                                  .eos_token_ids = {0}};
    FakeModel model(kVocab, 81, twin.formula);
    const Found found = Decode({{{}, {1}}}, settings, kVocab, 1, &model)[0];
    ASSERT_EQ(found.outputs.size(), 1u);
    EXPECT_EQ(found.outputs[0], Ids(best.ids.begin() + 1, best.ids.end())) << salt;
    EXPECT_NEAR(found.scores[0], best.score, 1e-9);
  }
}

// ---- What is decoded beside a text does not matter.

std::vector<SearchSettings> Strategies() {
  const SearchSettings base{.max_new_tokens = 12, .top_k = 0, .eos_token_ids = {0, 1}};
  std::vector<SearchSettings> all(5, base);
  all[1].num_beams = 4;
  all[1].num_return_sequences = 3;
  all[2].do_sample = true;
  all[3].do_sample = true;
  all[3].num_return_sequences = 3;
  all[3].top_p = 0.8;
  all[3].seed = 0x123456789ABCDEF;
  all[4].do_sample = true;
  all[4].num_beams = 3;
  all[4].temperature = 0.7;
  return all;
}

std::vector<Asked> ManyAsked(int count, int64_t vocab) {
  Random random(11);
  std::vector<Asked> asked;
  for (int i = 0; i < count; ++i) {
    Asked one;
    for (int64_t k = random.Below(9) + 1; k > 0; --k) {
      one.source.push_back(static_cast<int32_t>(random.Below(vocab)));
    }
    for (int64_t k = random.Below(3) + 1; k > 0; --k) {
      one.prompt.push_back(static_cast<int32_t>(random.Below(vocab)));
    }
    asked.push_back(std::move(one));
  }
  return asked;
}

TEST(GenerateSearch, NeighboursOrderAndSlotsDoNotMatter) {
  constexpr int64_t kVocab = 17;
  const std::vector<Asked> asked = ManyAsked(40, kVocab);
  int compared = 0;
  for (const SearchSettings& settings : Strategies()) {
    std::vector<Found> alone;
    std::map<size_t, int> lengths;
    for (const Asked& one : asked) {
      FakeModel model(kVocab, settings.rows(), WithSalt(1, kVocab));
      alone.push_back(Decode({one}, settings, kVocab, 1, &model)[0]);
      ++lengths[alone.back().outputs.at(0).size()];
    }
    EXPECT_GE(lengths.size(), 3u) << "the outputs should end at different times";
    for (int32_t slots : {1, 2, 5, 16, 64}) {
      FakeModel model(kVocab, slots * settings.rows(), WithSalt(1, kVocab));
      EXPECT_EQ(Decode(asked, settings, kVocab, slots, &model), alone) << slots;
      std::vector<Asked> reversed(asked.rbegin(), asked.rend());
      std::vector<Found> found = Decode(reversed, settings, kVocab, slots, &model);
      std::reverse(found.begin(), found.end());
      EXPECT_EQ(found, alone) << slots;
      EXPECT_LE(model.most_rows, static_cast<size_t>(slots * settings.rows()));
      compared += 2 * static_cast<int>(asked.size());
    }
  }
  std::printf("%d outcomes with neighbours, all the same bits as alone\n", compared);
}

// A slot that is done takes the next text: few steps run with few rows.
TEST(GenerateSearch, SlotsAreFilledAgain) {
  const std::vector<Asked> asked = ManyAsked(64, 17);
  const SearchSettings settings{.max_new_tokens = 12, .eos_token_ids = {0, 1}};
  FakeModel model(17, 8, WithSalt(1, 17));
  size_t tokens = 0;
  for (const Found& found : Decode(asked, settings, 17, 8, &model)) {
    tokens += found.outputs[0].size();
  }
  EXPECT_LE(model.num_steps, static_cast<int>(2 * tokens / 8));
}

TEST(GenerateSearch, AFailedStepReleasesEverything) {
  const SearchSettings settings{.num_beams = 2, .max_new_tokens = 9};
  FakeModel model(17, 8, WithSalt(1, 17));
  model.fail_at_step = 3;
  Search search(LimitsOf(settings, 17, 4, 12));
  const Ids prompt = {5};
  std::vector<SearchRequest> requests(6, {.prompt = prompt, .max_length = 10});
  const Status status = search.Run(requests, settings, &model, [](size_t, const SearchSlot&) {});
  EXPECT_EQ(status.what(), "the step failed");
  EXPECT_EQ(model.num_alive(), 0);
  model.fail_at_step = -1;
  int done = 0;
  ASSERT_TRUE(
      search.Run(requests, settings, &model, [&](size_t, const SearchSlot&) { ++done; }).ok());
  EXPECT_EQ(done, 6);
}

// ---- Edges.

// The same logits everywhere, but for what `rules` say of a last token.
FakeModel::Formula Table(std::vector<float> usual, std::map<int32_t, std::vector<float>> rules) {
  return [=](const Ids&, const Ids& ids) {
    const auto rule = rules.find(ids.back());
    return rule == rules.end() ? usual : rule->second;
  };
}

Found DecodeTable(const FakeModel::Formula& formula, int64_t vocab, const SearchSettings& settings,
                  const Ids& prompt = {3}) {
  FakeModel model(vocab, settings.rows(), formula);
  return Decode({{{}, prompt}}, settings, vocab, 1, &model)[0];
}

TEST(GenerateEdges, OfEqualLogitsTheFirstIsTaken) {
  const FakeModel::Formula same = Table({1, 1, 1, 1, 1, 1}, {});
  EXPECT_EQ(DecodeTable(same, 6, {.max_new_tokens = 3}).outputs[0], (Ids{0, 0, 0}));
  const Found beams =
      DecodeTable(same, 6, {.num_beams = 3, .num_return_sequences = 3, .max_new_tokens = 2});
  EXPECT_EQ(beams.outputs, (std::vector<Ids>{{0, 0}, {0, 1}, {0, 2}}));
}

TEST(GenerateEdges, TheEndAtOnce) {
  const FakeModel::Formula ends = Table({9, 0, 0, 0, 0, 0, 0, 0}, {});
  const SearchSettings greedy{.max_new_tokens = 5, .eos_token_ids = {0}};
  EXPECT_EQ(DecodeTable(ends, 8, greedy).outputs[0], Ids{0});
  SearchSettings beams = greedy;
  beams.num_beams = 2;
  beams.num_return_sequences = 2;
  beams.early_stopping = EarlyStopping::kYes;
  EXPECT_EQ(DecodeTable(ends, 8, beams).outputs, (std::vector<Ids>{{0}, {1, 0}}));
}

TEST(GenerateEdges, SeveralEndTokens) {
  const FakeModel::Formula chain =
      Table({0, 0, 0, 0, 9, 0}, {{4, {0, 0, 9, 0, 0, 0}}, {2, {0, 0, 0, 0, 0, 9}}});
  SearchSettings settings{.max_new_tokens = 5, .eos_token_ids = {1, 2}};
  EXPECT_EQ(DecodeTable(chain, 6, settings).outputs[0], (Ids{4, 2}));
  settings.eos_token_ids = {1};
  EXPECT_EQ(DecodeTable(chain, 6, settings).outputs[0], (Ids{4, 2, 5, 4, 2}));
}

TEST(GenerateEdges, TheLongestLengthIsReachedAndNotPassed) {
  const FakeModel::Formula never = WithSalt(5, 12);
  for (int32_t beams : {1, 4}) {
    SearchSettings settings{.num_beams = beams, .max_new_tokens = 7};
    EXPECT_EQ(DecodeTable(never, 12, settings).outputs[0].size(), 7u);
    settings.max_new_tokens = 1;
    EXPECT_EQ(DecodeTable(never, 12, settings).outputs[0].size(), 1u);
    // max_length counts the prompt; max_new_tokens wins over it.
    settings.max_new_tokens = 0;
    settings.max_length = 9;
    EXPECT_EQ(DecodeTable(never, 12, settings, {3, 4, 5}).outputs[0].size(), 6u);
    settings.max_new_tokens = 2;
    EXPECT_EQ(DecodeTable(never, 12, settings, {3, 4, 5}).outputs[0].size(), 2u);
    settings.max_new_tokens = settings.max_length = 0;
    EXPECT_EQ(DecodeTable(never, 12, settings).outputs[0].size(), 20u);
  }
}

TEST(GenerateEdges, ScoreIsTheSumOverLengthToThePenalty) {
  const FakeModel::Formula formula = WithSalt(8, 12);
  const TwinModel twin{12, formula};
  for (int32_t beams : {1, 3}) {
    for (double penalty : {1.0, 0.0, -1.0, 0.6}) {
      const SearchSettings settings{
          .num_beams = beams, .max_new_tokens = 6, .length_penalty = penalty};
      const Found found = DecodeTable(formula, 12, settings);
      Ids ids = {3};
      double sum = 0;
      for (int32_t id : found.outputs[0]) {
        sum += twin.LogProbabilities(ids)[static_cast<size_t>(id)];
        ids.push_back(id);
      }
      EXPECT_NEAR(found.scores[0], sum / std::pow(6.0, penalty), 1e-9);
    }
  }
}

TEST(GenerateEdges, ForcedTokensCountNothing) {
  const FakeModel::Formula formula = WithSalt(8, 12);
  for (int32_t beams : {1, 4}) {
    const SearchSettings settings{.num_beams = beams,
                                  .max_new_tokens = 2,
                                  .forced_bos_token_id = 7,
                                  .eos_token_ids = {2},
                                  .forced_eos_token_ids = {2}};
    const Found found = DecodeTable(formula, 12, settings);
    EXPECT_EQ(found.outputs[0], (Ids{7, 2}));
    EXPECT_EQ(found.scores[0], 0);
  }
}

// The settings forbid every token: what there is so far is the output.
TEST(GenerateEdges, ADeadEnd) {
  for (int32_t beams : {1, 2}) {
    const SearchSettings settings{
        .num_beams = beams, .max_new_tokens = 9, .no_repeat_ngram_size = 1};
    const Found found = DecodeTable(WithSalt(2, 5), 5, settings);
    ASSERT_EQ(found.outputs.size(), 1u);
    Ids sorted = found.outputs[0];
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, (Ids{0, 1, 2, 4}));
    EXPECT_TRUE(std::isfinite(found.scores[0]));
  }
  const SearchSettings nothing{.max_new_tokens = 9, .suppress_tokens = {0, 1, 2, 3, 4}};
  EXPECT_EQ(DecodeTable(WithSalt(2, 5), 5, nothing).outputs[0], Ids());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(DecodeTable(Table({nan, 0, nan, 1, nan}, {}), 5, {.max_new_tokens = 2}).outputs[0],
            (Ids{3, 3}));
}

TEST(GenerateEdges, MoreBeamsThanTokens) {
  const SearchSettings settings{.num_beams = 8, .num_return_sequences = 8, .max_new_tokens = 3};
  const Found found = DecodeTable(WithSalt(2, 2), 2, settings, {1});
  EXPECT_EQ(found.outputs.size(), 8u);
  for (const Ids& ids : found.outputs) EXPECT_EQ(ids.size(), 3u);
}

// ---- Sampling.

TEST(GenerateSampling, PhiloxIsThePublishedOne) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// How often each token is drawn as the first, over `draws` seeds.
std::vector<double> Frequencies(SearchSettings settings, const std::vector<float>& logits,
                                int draws) {
  std::vector<double> counts(logits.size());
  settings.do_sample = true;
  settings.max_new_tokens = 1;
  for (int i = 0; i < draws; ++i) {
    settings.seed = static_cast<uint64_t>(i);
    const Found found =
        DecodeTable(Table(logits, {}), static_cast<int64_t>(logits.size()), settings, {0});
    counts[static_cast<size_t>(found.outputs[0][0])] += 1.0 / draws;
  }
  return counts;
}

std::vector<double> Softmax(std::vector<double> logits) {
  double sum = 0;
  for (double& x : logits) sum += x = std::exp(x);
  for (double& x : logits) x /= sum;
  return logits;
}

void ExpectFrequencies(const std::vector<double>& got, const std::vector<double>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 4 * std::sqrt(want[i] / 20000)) << i;  // four standard deviations
  }
}

TEST(GenerateSampling, FrequenciesAreTheProbabilities) {
  constexpr int kDraws = 20000;
  constexpr double kNone = -1e300;
  const std::vector<float> logits = {0, 1, 2, -1, 1.5f};
  ExpectFrequencies(Frequencies({}, logits, kDraws), Softmax({0, 1, 2, -1, 1.5}));
  ExpectFrequencies(Frequencies({.temperature = 0.5}, logits, kDraws), Softmax({0, 2, 4, -2, 3}));
  ExpectFrequencies(Frequencies({.top_k = 2}, logits, kDraws),
                    Softmax({kNone, kNone, 2, kNone, 1.5}));
  // Probabilities 0.068, 0.184, 0.501, 0.025, 0.304: the last two are 0.7 and more.
  ExpectFrequencies(Frequencies({.top_p = 0.7}, logits, kDraws),
                    Softmax({kNone, kNone, 2, kNone, 1.5}));
  ExpectFrequencies(Frequencies({.top_p = 0.8}, logits, kDraws),
                    Softmax({kNone, 1, 2, kNone, 1.5}));
  ExpectFrequencies(Frequencies({.min_p = 0.3}, logits, kDraws),
                    Softmax({kNone, 1, 2, kNone, 1.5}));
  ExpectFrequencies(Frequencies({.top_p = 0}, logits, 100), {0, 0, 1, 0, 0});
}

TEST(GenerateSampling, EqualsOfTheLastOfTopKStay) {
  const std::vector<double> got = Frequencies({.top_k = 2}, {1, 2, 1, 0}, 20000);
  ExpectFrequencies(got, Softmax({1, 2, 1, -1e300}));
}

TEST(GenerateSampling, TheSeedDecides) {
  SearchSettings settings{.max_new_tokens = 12, .do_sample = true, .top_k = 0};
  const FakeModel::Formula formula = WithSalt(4, 30);
  const Found first = DecodeTable(formula, 30, settings);
  EXPECT_EQ(DecodeTable(formula, 30, settings), first);
  settings.seed = 1;
  EXPECT_NE(DecodeTable(formula, 30, settings).outputs, first.outputs);
  settings.seed = uint64_t{1} << 32;
  EXPECT_NE(DecodeTable(formula, 30, settings).outputs, first.outputs);
}

// Output i of several is the same however many there are.
TEST(GenerateSampling, SeveralOutputsAreStreamsOfTheSeed) {
  SearchSettings settings{.max_new_tokens = 12, .do_sample = true, .eos_token_ids = {0}};
  settings.num_return_sequences = 6;
  const Found six = DecodeTable(WithSalt(4, 30), 30, settings);
  ASSERT_EQ(six.outputs.size(), 6u);
  for (size_t i = 1; i < 6; ++i) EXPECT_NE(six.outputs[i], six.outputs[0]);
  settings.num_return_sequences = 2;
  const Found two = DecodeTable(WithSalt(4, 30), 30, settings);
  EXPECT_EQ(two.outputs[0], six.outputs[0]);
  EXPECT_EQ(two.outputs[1], six.outputs[1]);
}

// Beams that are drawn without replacement: the first candidates of one step, over many seeds, have
// the probability of being among two drawn.
TEST(GenerateSampling, BeamsAreDrawnWithoutReplacement) {
  const std::vector<double> p = Softmax({0, 1, 2, -1, 1.5});
  std::vector<double> want(5), got(5);
  for (size_t a = 0; a < 5; ++a) {
    for (size_t b = 0; b < 5; ++b) {
      if (b == a) continue;
      for (size_t c = 0; c < 5; ++c) {
        for (size_t d = 0; d < 5; ++d) {
          if (c == a || c == b || d == a || d == b || d == c) continue;
          const double both =
              p[a] * p[b] / (1 - p[a]) * p[c] / (1 - p[a] - p[b]) * p[d] / (1 - p[a] - p[b] - p[c]);
          for (size_t drawn : {a, b, c, d}) want[drawn] += both;
        }
      }
    }
  }
  constexpr int kDraws = 4000;
  SearchSettings settings{.num_beams = 2, .num_return_sequences = 2, .max_new_tokens = 1};
  settings.do_sample = true;
  std::vector<double> first(5);
  for (int i = 0; i < kDraws; ++i) {
    settings.seed = static_cast<uint64_t>(i);
    const Found found = DecodeTable(Table({0, 1, 2, -1, 1.5f}, {}), 5, settings, {0});
    // Of the four drawn the two best are the outputs, so token 2 is missing if it was not drawn.
    ++first[static_cast<size_t>(found.outputs.at(0).at(0))];
    EXPECT_GT(found.scores[0], found.scores[1]);
  }
  EXPECT_NEAR(first[2] / kDraws, want[2], 4 * std::sqrt(want[2] * (1 - want[2]) / kDraws));
}

}  // namespace
}  // namespace attend::testing
