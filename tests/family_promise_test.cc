// The promise for every part of the family: a sequence's bits do not depend on what else is in its
// batch, on the order, on the number of threads, or on how the rows are shared. Random models over
// all fields, on every ISA, a process each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/family_batch.h"
#include "tests/family_configs.h"
#include "tests/isa_child.h"
#include "tests/random_model.h"

namespace attend {
namespace {

using testing::FamilyBatch;
using testing::FamilySequence;

constexpr int kModels = 40;
constexpr int kRounds = 3;

struct Answer {
  std::vector<float> hidden, pooled, logits;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Answer AnswerOf(const Output& output, const FamilyBatch& batch, int64_t sequence, Task task) {
  const auto copy = [&](std::span<const float> all, bool by_token) {
    const std::span<const float> rows = testing::RowsOf(all, batch, sequence, by_token);
    return std::vector<float>(rows.begin(), rows.end());
  };
  return {copy(output.hidden, true), copy(output.pooled, false),
          copy(output.logits, task == Task::kTokens)};
}

struct Way {
  int threads;
  Share share;
  Session session;
};

std::vector<Way> Ways(const Model& model) {
  std::vector<Way> ways;
  for (const int threads : {1, 2, 3}) {
    for (const Share share : {Share::kSequences, Share::kRows, Share::kColumns}) {
      Result<Session> session =
          Session::Create(model, {.num_threads = threads, .max_tokens = 2048, .share = share});
      EXPECT_TRUE(session.ok()) << session.status().ToString();
      if (session.ok()) ways.push_back({threads, share, std::move(*session)});
    }
  }
  return ways;
}

class PromiseOfModel {
 public:
  PromiseOfModel(const ModelConfig& config, const Model& model, uint32_t seed)
      : config_(config), ways_(Ways(model)), random_(seed) {
    for (const int64_t length : {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 48, 64, 65, 100, 144}) {
      sequences_.push_back(testing::RandomSequence(config, length, seed * 100 + length));
    }
  }

  void Check() {
    Alone();
    if (answers_.size() != sequences_.size()) return;
    for (int round = 0; round < kRounds; ++round) Compare(round);
  }

  int64_t compared() const { return compared_; }
  int64_t different() const { return different_; }

 private:
  // Each sequence for itself, on one thread.
  void Alone() {
    for (const FamilySequence& sequence : sequences_) {
      FamilyBatch batch(config_);
      batch.Add(sequence);
      Result<Output> output = batch.Run(&ways_.front().session);
      ASSERT_TRUE(output.ok()) << output.status().ToString();
      answers_.push_back(AnswerOf(*output, batch, 0, config_.task));
    }
  }

  // A few sequences, or all of them, in a random order, the first one twice, in every way.
  void Compare(int round) {
    std::vector<size_t> order(sequences_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    if (round % 3 != 2) order.resize(1 + random_() % 5);
    order.push_back(order.front());
    FamilyBatch batch(config_);
    for (const size_t s : order) batch.Add(sequences_[s]);
    for (Way& way : ways_) {
      Result<Output> output = batch.Run(&way.session);
      ASSERT_TRUE(output.ok()) << output.status().ToString();
      for (size_t b = 0; b < order.size(); ++b) {
        const Answer got = AnswerOf(*output, batch, static_cast<int64_t>(b), config_.task);
        const Answer& want = answers_[order[b]];
        const bool same = SameBits(got.hidden, want.hidden) && SameBits(got.pooled, want.pooled) &&
                          SameBits(got.logits, want.logits);
        ++compared_;
        if (same) continue;
        ++different_;
        ADD_FAILURE() << way.threads << " threads, share " << static_cast<int>(way.share)
                      << ", length " << sequences_[order[b]].length << ", " << b << " of "
                      << order.size();
        if (different_ > 3) return;
      }
    }
  }

  const ModelConfig& config_;
  std::vector<Way> ways_;
  std::mt19937 random_;
  std::vector<FamilySequence> sequences_;
  std::vector<Answer> answers_;
  int64_t compared_ = 0, different_ = 0;
};

TEST(FamilyPromise, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by FamilyPromise.EveryIsa, a process per ISA";
  testing::FamilyConfigs configs(23);
  int64_t compared = 0, different = 0;
  for (uint32_t i = 0; i < kModels; ++i) {
    ModelConfig config = configs.Next();
    constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kBf16, Precision::kInt8};
    config.precision = kPrecisions[i % 3];
    SCOPED_TRACE(std::to_string(i) + ": " + Name(config.precision) + ", " +
                 testing::Describe(config));
    Result<Model> model = testing::RandomModel(config, i);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    PromiseOfModel promise(config, *model, i + 1);
    promise.Check();
    compared += promise.compared();
    different += promise.different();
  }
  std::printf("promise: %s, %d models of the family: %lld comparisons, %lld different\n", isa,
              kModels, static_cast<long long>(compared), static_cast<long long>(different));
  EXPECT_EQ(different, 0);
  EXPECT_GT(compared, 1000);
}

TEST(FamilyPromise, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) {
    testing::ExpectChildPasses(isa, "FamilyPromise.OneIsa");
  }
}

}  // namespace
}  // namespace attend
