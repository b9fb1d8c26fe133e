// What the tests of Batcher have in common: a small model with all outputs, sequences, and what a
// Session alone makes of them.
#ifndef ATTEND_TESTS_BATCHER_TESTING_H_
#define ATTEND_TESTS_BATCHER_TESTING_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/batcher.h"
#include "tests/random_model.h"
#include "tests/testing.h"

namespace attend::testing {

// A classifier, so that there are hidden states, a pooled row and logits.
inline ModelConfig ClassifierConfig(int64_t layers = 2) {
  ModelConfig config = EncoderConfig(64, layers, 4, 128);
  config.task = Task::kSequence;
  config.pooling = Pooling::kMean;
  config.labels = {"a", "b", "c"};
  config.num_labels = 3;
  return config;
}

inline Model MakeModel(const ModelConfig& config, uint32_t seed = 7) {
  const Result<Model> model = RandomModel(config, seed);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return *model;
}

inline std::vector<int32_t> Ids(size_t length, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ids(length);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(1000));
  return ids;
}

// Sequences of 1 to `longest` tokens.
inline std::vector<std::vector<int32_t>> Sequences(int count, int longest, uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<int32_t>> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(Ids(static_cast<size_t>(1 + random.Below(longest)), random.Next()));
  }
  return all;
}

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// A lone run.
struct Lone {
  std::vector<float> hidden, pooled, logits, encoder_hidden;
  bool operator==(const Lone& other) const {
    return SameBits(hidden, other.hidden) && SameBits(pooled, other.pooled) &&
           SameBits(logits, other.logits) && SameBits(encoder_hidden, other.encoder_hidden);
  }
};

template <typename Batch>
Lone RunAlone(Session* session, const Batch& batch) {
  const Result<Output> output = session->Run(batch);
  EXPECT_TRUE(output.ok()) << output.status().ToString();
  if (!output.ok()) return {};
  const auto copy = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  return {copy(output->hidden), copy(output->pooled), copy(output->logits),
          copy(output->encoder_hidden)};
}

inline std::vector<Lone> RunAlone(const Model& model,
                                  const std::vector<std::vector<int32_t>>& sequences) {
  Result<Session> session = Session::Create(model, {.max_tokens = 512, .max_sequences = 1});
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  std::vector<Lone> all;
  for (const std::vector<int32_t>& ids : sequences) {
    const int32_t offsets[] = {0, static_cast<int32_t>(ids.size())};
    all.push_back(RunAlone(&*session, TokenBatch{.ids = ids, .offsets = offsets}));
  }
  return all;
}

inline Lone LoneOf(const BatchAnswer& answer) {
  return {answer.hidden, answer.pooled, answer.logits, answer.encoder_hidden};
}

inline BatchRequest RequestOf(std::span<const int32_t> ids) {
  BatchRequest request;
  request.ids = ids;
  request.want_hidden = true;
  return request;
}

inline Batcher MakeBatcher(const Model& model, const BatcherOptions& options) {
  Result<Batcher> batcher = Batcher::Create(model, options);
  if (!batcher.ok()) {
    ADD_FAILURE() << batcher.status().ToString();
    std::abort();
  }
  return *std::move(batcher);
}

inline void ExpectError(const Status& status, ErrorCode code, const char* part) {
  EXPECT_STREQ(ErrorCodeName(status.code()), ErrorCodeName(code)) << status.ToString();
  EXPECT_NE(status.ToString().find(part), std::string::npos)
      << "\"" << part << "\" is not in: " << status.ToString();
}

inline void SleepMs(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

inline int64_t SinceUs(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                               begin)
      .count();
}

// A request that keeps the worker that answers it busy until Open is called.
class Plug {
 public:
  // Returns when a worker is stuck.
  explicit Plug(Batcher* batcher) {
    BatchRequest request;
    request.ids = ids_;
    request.priority = 1000;
    request.done = [this](Result<BatchAnswer>) {
      stuck_ = true;
      stuck_.notify_all();
      open_.wait(false);
      gone_ = true;
      gone_.notify_all();
    };
    EXPECT_TRUE(batcher->Submit(std::move(request)).ok());
    stuck_.wait(false);
  }
  ~Plug() {
    Open();
    gone_.wait(false);
  }
  Plug(const Plug&) = delete;
  Plug& operator=(const Plug&) = delete;
  void Open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::vector<int32_t> ids_ = {1, 2, 3};
  std::atomic<bool> stuck_{false}, open_{false}, gone_{false};
};

inline int ThreadsOfProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_BATCHER_TESTING_H_
