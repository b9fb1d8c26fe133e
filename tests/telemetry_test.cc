// Telemetry says where a run's time went: it adds up, it is the trace's own numbers, it is of this
// run alone, and it changes no bit.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "attend/attend.h"
#include "attend/batcher.h"
#include "attend/trace.h"
#include "tests/decoder_testing.h"
#include "tests/random_model.h"

namespace attend {
namespace {

constexpr int kTimedLayers = 3;

Model TimedModel() {
  ModelConfig config = testing::EncoderConfig(64, kTimedLayers, 4, 256);
  config.task = Task::kEmbedding;
  config.pooling = Pooling::kMean;
  const Result<Model> model = testing::RandomModel(config, 1);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return *model;
}

struct TimedBatch {
  explicit TimedBatch(int32_t tokens)
      : ids(static_cast<size_t>(tokens), 5), offsets{0, tokens / 3, tokens} {}
  TokenBatch view() const { return {.ids = ids, .offsets = offsets}; }
  std::vector<int32_t> ids, offsets;
};

WorkTimes SumOf(const std::vector<WorkTimes>& segments) {
  WorkTimes sum;
  for (const WorkTimes& segment : segments) {
    sum.embedding_ns += segment.embedding_ns;
    sum.attention_ns += segment.attention_ns;
    sum.linear_ns += segment.linear_ns;
    sum.pooling_ns += segment.pooling_ns;
    sum.other_ns += segment.other_ns;
  }
  return sum;
}

void ExpectEqual(const WorkTimes& a, const WorkTimes& b) {
  EXPECT_EQ(a.embedding_ns, b.embedding_ns);
  EXPECT_EQ(a.attention_ns, b.attention_ns);
  EXPECT_EQ(a.linear_ns, b.linear_ns);
  EXPECT_EQ(a.pooling_ns, b.pooling_ns);
  EXPECT_EQ(a.other_ns, b.other_ns);
}

std::vector<float> CopyOf(std::span<const float> values) { return {values.begin(), values.end()}; }

class TimedShares : public ::testing::TestWithParam<Share> {};

TEST_P(TimedShares, TimesAddUpAndBitsStay) {
  const Model model = TimedModel();
  const TimedBatch batch(400);
  for (const int threads : {1, 2}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    SessionOptions options = {.num_threads = threads, .max_tokens = 512, .share = GetParam()};
    Result<Session> plain = Session::Create(model, options);
    options.telemetry = true;
    Result<Session> timed = Session::Create(model, options);
    ASSERT_TRUE(plain.ok() && timed.ok());
    const Result<Output> want = plain->Run(batch.view());
    ASSERT_TRUE(want.ok());
    EXPECT_EQ(want->telemetry, nullptr);
    for (int run = 0; run < 3; ++run) {
      const Result<Output> output = timed->Run(batch.view());
      ASSERT_TRUE(output.ok());
      EXPECT_EQ(CopyOf(output->hidden), CopyOf(want->hidden));
      EXPECT_EQ(CopyOf(output->pooled), CopyOf(want->pooled));
      ASSERT_NE(output->telemetry, nullptr);
      const Telemetry& t = *output->telemetry;
      EXPECT_EQ(t.tokens, 400);
      EXPECT_EQ(t.sequences, 2);
      EXPECT_EQ(t.num_threads, threads);
      EXPECT_EQ(t.share, output->share);
      EXPECT_EQ(t.queue_ns, 0);
      EXPECT_GT(t.work.embedding_ns, 0);
      EXPECT_GT(t.work.attention_ns, 0);
      EXPECT_GT(t.work.linear_ns, 0);
      EXPECT_GT(t.work.pooling_ns, 0);
      EXPECT_GT(t.work.other_ns, 0);
      // All that threads did lies within the run; of one thread's run that is nearly everything.
      const int64_t all = t.work.total_ns() + t.wait_ns;
      EXPECT_LE(all, threads * t.run_ns);
      if (threads == 1) {
        EXPECT_GE(all, t.run_ns / 2);
      }
      ExpectEqual(SumOf(t.segments), t.work);
      // Embedding, layers, pooling.
      ASSERT_EQ(t.segments.size(), static_cast<size_t>(kTimedLayers + 2));
      EXPECT_EQ(t.segments[0].attention_ns, 0);
      EXPECT_GT(t.segments[0].embedding_ns, 0);
      for (size_t s = 1; s <= kTimedLayers; ++s) {
        EXPECT_GT(t.segments[s].attention_ns, 0);
        EXPECT_EQ(t.segments[s].embedding_ns, 0);
      }
      EXPECT_GT(t.segments.back().pooling_ns, 0);
      if (GetParam() == Share::kSequences) {
        EXPECT_EQ(t.wait_ns, 0);
      } else if (threads == 2) {
        EXPECT_GT(t.wait_ns, 0);
      }
    }
  }
}

// The trace and the telemetry of one run are one clock's.
TEST_P(TimedShares, TheTraceSaysTheSame) {
  const Model model = TimedModel();
  Result<Trace> trace = Trace::Create();
  Result<Session> session = Session::Create(model, {.num_threads = 2,
                                                    .max_tokens = 512,
                                                    .share = GetParam(),
                                                    .trace = &*trace,
                                                    .telemetry = true});
  ASSERT_TRUE(session.ok());
  const Result<Output> output = session->Run(TimedBatch(400).view());
  ASSERT_TRUE(output.ok());
  const Telemetry& t = *output->telemetry;
  WorkTimes work;
  int64_t waited = 0;
  const nlohmann::json all = nlohmann::json::parse(trace->ToJson());
  for (const nlohmann::json& event : all["traceEvents"]) {
    const std::string kind = event["cat"];
    const auto ns = std::llround(event["dur"].get<double>() * 1000);
    if (kind == "wait") waited += ns;
    if (kind == "embedding") work.embedding_ns += ns;
    if (kind == "attention") work.attention_ns += ns;
    if (kind == "linear" || kind == "qkv") work.linear_ns += ns;
    if (kind == "pool") work.pooling_ns += ns;
    if (kind == "+" || event["name"] == "layer norm") work.other_ns += ns;
  }
  EXPECT_EQ(waited, t.wait_ns);
  ExpectEqual(work, t.work);
}

INSTANTIATE_TEST_SUITE_P(All, TimedShares,
                         ::testing::Values(Share::kSequences, Share::kRows, Share::kColumns));

TEST(Telemetry, IsOfTheLastRunAlone) {
  Result<Session> session = Session::Create(TimedModel(), {.max_tokens = 512, .telemetry = true});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(session->Run(TimedBatch(512).view()).ok());
  const Result<Output> small = session->Run(TimedBatch(3).view());
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->telemetry->tokens, 3);
  EXPECT_LE(small->telemetry->work.total_ns(), small->telemetry->run_ns);
  const std::atomic<bool> cancel = true;
  EXPECT_EQ(session->Run(TimedBatch(100).view(), &cancel).status().code(), ErrorCode::kCancelled);
  const Result<Output> after = session->Run(TimedBatch(9).view());
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->telemetry->tokens, 9);
  EXPECT_LE(after->telemetry->work.total_ns(), after->telemetry->run_ns);
}

TEST(Telemetry, ItsMemoryIsCounted) {
  const Model model = TimedModel();
  const SessionOptions plain = {.num_threads = 2, .max_tokens = 64};
  SessionOptions timed = plain;
  timed.telemetry = true;
  const Result<Session> session = Session::Create(model, timed);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(*Session::PredictMemoryBytes(model, timed), session->memory_bytes());
  // Two times for each of two threads and eleven steps a layer at least.
  EXPECT_GT(session->memory_bytes(), *Session::PredictMemoryBytes(model, plain) + 2 * 2 * 8 * 33);
}

TEST(Telemetry, AnEncoderDecoderHasTheSegmentsOfBoth) {
  const Result<Model> model = testing::RandomModel(testing::EncoderDecoderConfig(), 3);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = Session::Create(*model, {.max_tokens = 64, .telemetry = true});
  ASSERT_TRUE(session.ok());
  const int32_t ids[] = {5, 6, 7}, offsets[] = {0, 3}, written[] = {1, 2}, written_at[] = {0, 2};
  const Result<Output> output = session->Run(TokenBatch{
      .ids = ids, .offsets = offsets, .decoder_ids = written, .decoder_offsets = written_at});
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  const Telemetry& t = *output->telemetry;
  EXPECT_EQ(t.tokens, 3);
  ExpectEqual(SumOf(t.segments), t.work);
  size_t described = 0;
  const std::string text = session->Describe();
  for (size_t at = text.find("\nsegment "); at != std::string::npos;
       at = text.find("\nsegment ", at + 1)) {
    ++described;
  }
  EXPECT_EQ(t.segments.size(), described);
  for (const WorkTimes& segment : t.segments) EXPECT_GT(segment.total_ns(), 0);
}

TEST(Telemetry, OfABatcher) {
  const Model model = TimedModel();
  for (const bool on : {false, true}) {
    Result<Batcher> batcher = Batcher::Create(
        model,
        {.session = {.max_tokens = 64, .telemetry = on}, .num_workers = 1, .start_threads = false});
    ASSERT_TRUE(batcher.ok());
    const std::vector<int32_t> ids(20, 3);
    std::vector<PendingAnswer> pending;
    for (int i = 0; i < 4; ++i) {
      Result<PendingAnswer> one = batcher->Submit({.ids = ids});
      ASSERT_TRUE(one.ok());
      pending.push_back(*std::move(one));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_TRUE(batcher->ServeWaiting().ok());
    for (PendingAnswer& one : pending) {
      const Result<BatchAnswer> answer = one.Wait();
      ASSERT_TRUE(answer.ok());
      ASSERT_EQ(answer->telemetry.has_value(), on);
      if (!on) continue;
      const Telemetry& t = *answer->telemetry;
      EXPECT_EQ(t.tokens, answer->batch_tokens);
      EXPECT_EQ(t.sequences, answer->batch_sequences);
      EXPECT_EQ(t.queue_ns, answer->queued_us * 1000);
      EXPECT_GE(t.queue_ns, 2'000'000);
      EXPECT_LE(t.run_ns, answer->run_us * 1000 + 1000);
      EXPECT_GT(t.run_ns, 0);
      ExpectEqual(SumOf(t.segments), t.work);
    }
  }
}

}  // namespace
}  // namespace attend
