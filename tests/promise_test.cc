// The promise: same text, same bits. A sequence's result does not depend on what else is in its
// batch, on the order, on the number of threads, or on how the rows are shared; in every precision,
// on every ISA, each in a process of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/isa_child.h"
#include "tests/random_model.h"

namespace attend {
namespace {

struct Answer {
  std::vector<float> hidden, pooled;
};

struct Batch {
  std::vector<int32_t> ids, offsets{0}, types;
  void Add(const std::vector<int32_t>& sequence) {
    for (size_t i = 0; i < sequence.size(); ++i) {
      ids.push_back(sequence[i]);
      types.push_back(static_cast<int32_t>(i % 2));
    }
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  TokenBatch view() const { return {.ids = ids, .offsets = offsets, .type_ids = types}; }
};

std::vector<std::vector<int32_t>> MakeSequences(int64_t vocab, int64_t longest) {
  std::mt19937 random(7);
  std::vector<std::vector<int32_t>> sequences;
  for (const int length : {1,  1,  2,  3,  4,  5,  7,   8,   11,  15,  16,  17,  24,  31,
                           32, 33, 48, 63, 64, 65, 100, 127, 129, 200, 255, 300, 511, 512}) {
    if (length > longest) continue;
    std::vector<int32_t>& sequence = sequences.emplace_back(length);
    for (int32_t& id : sequence) id = static_cast<int32_t>(random() % vocab);
  }
  return sequences;
}

std::vector<float> Slice(std::span<const float> all, int64_t begin, int64_t end, int64_t width) {
  return {all.begin() + begin * width, all.begin() + end * width};
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Compares every sequence of random batches with the same sequence run alone on one thread.
// Returns the number of comparisons; `different` counts those that failed.
int64_t ComparePromise(const Model& model, int rounds, int64_t longest, int64_t* different) {
  const int64_t width = model.info().hidden_size;
  const auto sequences = MakeSequences(model.info().vocab_size, longest);
  Result<Session> alone = Session::Create(model, {.num_threads = 1, .max_tokens = 512});
  EXPECT_TRUE(alone.ok()) << alone.status().ToString();
  if (!alone.ok()) return 0;
  std::vector<Answer> answers;
  for (const std::vector<int32_t>& sequence : sequences) {
    Batch batch;
    batch.Add(sequence);
    Result<Output> output = alone->Run(batch.view());
    EXPECT_TRUE(output.ok()) << output.status().ToString();
    answers.push_back({Slice(output->hidden, 0, output->hidden.size() / width, width),
                       {output->pooled.begin(), output->pooled.end()}});
  }
  struct Way {
    int threads;
    Share share;
    Session session;
  };
  std::vector<Way> ways;
  for (const int threads : {1, 2, 3, 4}) {
    for (const Share share : {Share::kSequences, Share::kRows, Share::kColumns, Share::kAuto}) {
      if (threads == 1 && share == Share::kAuto) continue;
      Result<Session> session = Session::Create(model, {.num_threads = threads, .share = share});
      EXPECT_TRUE(session.ok()) << session.status().ToString();
      if (!session.ok()) return 0;
      ways.push_back({threads, share, std::move(*session)});
    }
  }
  int64_t compared = 0;
  std::mt19937 random(11);
  for (int round = 0; round < rounds; ++round) {
    std::vector<size_t> order(sequences.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    // Some batches small, some with everything, some with a sequence twice.
    const size_t take = round % 3 == 0   ? 1 + random() % 2
                        : round % 3 == 1 ? 2 + random() % 6
                                         : order.size();
    order.resize(std::min(take, order.size()));
    order.push_back(order.front());
    Batch batch;
    for (const size_t s : order) batch.Add(sequences[s]);
    for (Way& way : ways) {
      Result<Output> output = way.session.Run(batch.view());
      EXPECT_TRUE(output.ok()) << output.status().ToString();
      for (size_t b = 0; b < order.size(); ++b) {
        const Answer& answer = answers[order[b]];
        bool same = SameBits(answer.hidden,
                             Slice(output->hidden, batch.offsets[b], batch.offsets[b + 1], width));
        if (!output->pooled.empty()) {
          const int64_t pooled_width = static_cast<int64_t>(output->pooled.size() / order.size());
          const int64_t at = static_cast<int64_t>(b);
          same &= SameBits(answer.pooled, Slice(output->pooled, at, at + 1, pooled_width));
        }
        if (!same && ++*different < 5) {
          std::printf("differs: %d threads, share %d, sequence %zu of %zu\n", way.threads,
                      static_cast<int>(way.share), b, order.size());
        }
        ++compared;
      }
    }
  }
  return compared;
}

// A MiniLM-wide model (where all is emulated, a narrower one), and one whose sizes fit nothing.
std::vector<ModelConfig> Configs(Precision precision, bool emulated) {
  ModelConfig wide =
      emulated ? testing::EncoderConfig(96, 2, 3, 160) : testing::EncoderConfig(384, 2, 12, 1536);
  wide.pooler = true;
  ModelConfig odd = testing::EncoderConfig(60, 2, 5, 100);
  odd.task = Task::kEmbedding;
  odd.pooling = Pooling::kMean;
  odd.normalize = true;
  wide.precision = odd.precision = precision;
  return {wide, odd};
}

void CheckPrecision(const std::string& isa, Precision precision, int rounds) {
  const bool emulated = isa == testing::Emulated();
  const int64_t longest = emulated ? 48 : 512;
  for (const ModelConfig& config : Configs(precision, emulated)) {
    Result<Model> model = testing::RandomModel(config, 3);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    int64_t different = 0;
    const int64_t compared = ComparePromise(*model, rounds, longest, &different);
    std::printf("promise: %s, %s, width %d: %lld comparisons, %lld different\n", isa.c_str(),
                Name(precision), static_cast<int>(config.hidden_size),
                static_cast<long long>(compared), static_cast<long long>(different));
#ifdef ATTEND_GEMM_FREE_ROWS
    if (config.hidden_size == 384) {
      EXPECT_GT(different, 0) << "the test did not see that the rule is off";
    }
#else
    EXPECT_EQ(different, 0);
#endif
    EXPECT_GT(compared, 100);
  }
}

// In a child process with ATTEND_TEST_ISA: compares, prints the count, fails if bits differ.
TEST(Promise, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by Promise.EveryIsa, a process per ISA";
  if (isa != testing::Emulated())
    CheckPrecision(isa, Precision::kF32, std::string(isa) == "sse4" ? 4 : 6);
#ifndef ATTEND_GEMM_FREE_ROWS  // which is of f32 alone
  // Three rounds have a batch of each kind.
  CheckPrecision(isa, Precision::kBf16, 3);
  CheckPrecision(isa, Precision::kInt8, 3);
#endif
}

TEST(Promise, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) {
#ifdef ATTEND_GEMM_FREE_ROWS
    if (isa != "avx2") continue;
#endif
    testing::ExpectChildPasses(isa, "Promise.OneIsa");
  }
#ifndef ATTEND_GEMM_FREE_ROWS
  const std::string emulated = testing::Emulated();
  if (!emulated.empty()) testing::ExpectChildPasses(emulated, "Promise.OneIsa");
#endif
}

}  // namespace
}  // namespace attend
