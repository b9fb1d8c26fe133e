// Batcher, one thing at a time: what comes in and what comes out, refusals, deadlines,
// cancellation, priorities, the end, and threads of the program's own.
#include "attend/batcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tests/batcher_testing.h"
#include "tests/decoder_testing.h"

namespace attend {
namespace {

using testing::ExpectError;
using testing::Lone;
using testing::MakeBatcher;
using testing::MakeModel;
using testing::Plug;
using testing::SinceUs;
using testing::SleepMs;

TEST(Batcher, OneBatchOfManyHasTheBitsOfLoneRuns) {
  const Model model = MakeModel(testing::ClassifierConfig());
  const auto sequences = testing::Sequences(30, 40, 3);
  const std::vector<Lone> expected = testing::RunAlone(model, sequences);
  Batcher batcher = MakeBatcher(model, {.session = {.max_tokens = 2048}, .num_workers = 1});
  std::vector<PendingAnswer> pending;
  {
    const Plug plug(&batcher);
    for (const auto& ids : sequences) {
      Result<PendingAnswer> one = batcher.Submit(testing::RequestOf(ids));
      ASSERT_TRUE(one.ok()) << one.status().ToString();
      EXPECT_FALSE(one->done());
      EXPECT_FALSE(one->WaitFor(0));
      pending.push_back(*std::move(one));
    }
    EXPECT_EQ(batcher.statistics().queued_requests, 30);
  }
  for (size_t i = 0; i < pending.size(); ++i) {
    Result<BatchAnswer> answer = pending[i].Wait();
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_TRUE(testing::LoneOf(*answer) == expected[i]) << i;
    EXPECT_EQ(answer->batch_sequences, 30);
    EXPECT_TRUE(answer->encoding.ids.empty());
    EXPECT_TRUE(pending[i].done());
    ExpectError(pending[i].Wait().status(), ErrorCode::kInvalidArgument, "taken before");
  }
  const BatcherStatistics s = batcher.statistics();
  EXPECT_EQ(s.batches, 2);
  EXPECT_EQ(s.batch_sequences, 31);
  EXPECT_EQ(s.answered, 31);
  EXPECT_EQ(s.bytes, 0);
}

TEST(Batcher, OnlyWhatIsWantedComes) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Batcher batcher = MakeBatcher(model, {.num_workers = 1});
  const std::vector<int32_t> ids = {5, 6, 7};
  BatchRequest request;
  request.ids = ids;
  request.want_pooled = false;
  const Result<BatchAnswer> answer = batcher.Submit(request)->Wait();
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->hidden.empty());
  EXPECT_TRUE(answer->pooled.empty());
  EXPECT_EQ(answer->logits.size(), 3u);
  // A model that has nothing but hidden states gives them unasked.
  const Model plain = MakeModel(testing::EncoderConfig(64, 1, 4, 128));
  Batcher other = MakeBatcher(plain, {.num_workers = 1});
  const Result<BatchAnswer> hidden = other.Submit(request)->Wait();
  ASSERT_TRUE(hidden.ok());
  EXPECT_EQ(hidden->hidden.size(), 3u * 64);
}

TEST(Batcher, TypeIdsOfSomeOnly) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Result<Session> session = Session::Create(model, {.max_tokens = 64});
  const std::vector<int32_t> ids = testing::Ids(9, 1), types = {0, 0, 0, 1, 1, 1, 1, 0, 1};
  const int32_t offsets[] = {0, 9};
  const Lone with =
      testing::RunAlone(&*session, TokenBatch{.ids = ids, .offsets = offsets, .type_ids = types});
  const Lone without = testing::RunAlone(&*session, TokenBatch{.ids = ids, .offsets = offsets});
  Batcher batcher = MakeBatcher(model, {.num_workers = 1});
  std::vector<PendingAnswer> pending;
  std::optional<Plug> plug(&batcher);
  for (int i = 0; i < 5; ++i) {
    BatchRequest request = testing::RequestOf(ids);
    if (i % 2 == 1) request.type_ids = types;
    pending.push_back(*batcher.Submit(request));
  }
  plug.reset();
  for (size_t i = 0; i < 5; ++i) {
    const Result<BatchAnswer> answer = pending[i].Wait();
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->batch_sequences, 5);
    EXPECT_TRUE(testing::LoneOf(*answer) == (i % 2 == 1 ? with : without)) << i;
  }
}

TEST(Batcher, VectorsAndGraphs) {
  ModelConfig config = testing::EncoderConfig(32, 2, 4, 64);
  config.vocab_size = 0;
  config.input_size = 12;
  config.type_vocab_size = 0;
  config.position = Position::kNone;
  config.max_positions = 0;
  config.edges = true;
  const Model model = MakeModel(config);
  Result<Session> session = Session::Create(model, {.max_tokens = 64});
  Batcher batcher = MakeBatcher(model, {.session = {.max_tokens = 256}, .num_workers = 1});
  std::vector<Lone> expected;
  std::vector<PendingAnswer> pending;
  std::vector<float> rows(12, 1.0f);
  BatchRequest lonely;
  lonely.rows = rows;
  ExpectError(batcher.Submit(lonely).status(), ErrorCode::kInvalidArgument, "needs the edges");
  lonely.edges = std::span<const Edge>();  // an empty list
  EXPECT_TRUE(batcher.Submit(lonely)->Wait().ok());
  testing::Random random(4);
  for (int i = 0; i < 20; ++i) {
    const int32_t length = static_cast<int32_t>(1 + random.Below(20));
    rows = testing::NormalVector(length * 12, random.Next());
    std::vector<Edge> edges;
    for (int k = 0; k < 3 * length; ++k) {
      edges.push_back(
          {static_cast<int32_t>(random.Below(length)), static_cast<int32_t>(random.Below(length))});
    }
    const int32_t offsets[] = {0, length}, edge_offsets[] = {0, 3 * length};
    expected.push_back(testing::RunAlone(
        &*session,
        VectorBatch{
            .rows = rows, .offsets = offsets, .edges = edges, .edge_offsets = edge_offsets}));
    BatchRequest request;
    request.rows = rows;
    request.edges = edges;
    pending.push_back(*batcher.Submit(request));
  }
  for (size_t i = 0; i < pending.size(); ++i) {
    const Result<BatchAnswer> answer = pending[i].Wait();
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_TRUE(testing::LoneOf(*answer) == expected[i]) << i;
  }
  rows[3] = std::nanf("");
  lonely.rows = rows;
  lonely.edges = std::span<const Edge>();
  ExpectError(batcher.Submit(lonely).status(), ErrorCode::kInvalidArgument, "NaN");
}

TEST(Batcher, EncoderAndDecoder) {
  const Model model = MakeModel(testing::EncoderDecoderConfig());
  Result<Session> session = Session::Create(model, {.max_tokens = 64});
  Batcher batcher = MakeBatcher(model, {.session = {.max_tokens = 128}, .num_workers = 2});
  std::vector<Lone> expected;
  std::vector<PendingAnswer> pending;
  testing::Random random(5);
  for (int i = 0; i < 20; ++i) {
    std::vector<int32_t> ids(static_cast<size_t>(1 + random.Below(12)));
    std::vector<int32_t> decoder_ids(static_cast<size_t>(1 + random.Below(12)));
    for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(97));
    for (int32_t& id : decoder_ids) id = static_cast<int32_t>(random.Below(97));
    const int32_t offsets[] = {0, static_cast<int32_t>(ids.size())};
    const int32_t decoder_offsets[] = {0, static_cast<int32_t>(decoder_ids.size())};
    expected.push_back(
        testing::RunAlone(&*session, TokenBatch{.ids = ids,
                                                .offsets = offsets,
                                                .decoder_ids = decoder_ids,
                                                .decoder_offsets = decoder_offsets}));
    BatchRequest request = testing::RequestOf(ids);
    request.decoder_ids = decoder_ids;
    request.want_encoder_hidden = true;
    pending.push_back(*batcher.Submit(request));
  }
  for (size_t i = 0; i < pending.size(); ++i) {
    const Result<BatchAnswer> answer = pending[i].Wait();
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_TRUE(testing::LoneOf(*answer) == expected[i]) << i;
  }
  const std::vector<int32_t> ids = {3};
  ExpectError(batcher.Submit(testing::RequestOf(ids)).status(), ErrorCode::kInvalidArgument,
              "decoder");
}

TEST(Batcher, TextsComeWithWhatTheModelRead) {
  const Result<Model> model = Model::Load(ATTEND_SOURCE_DIR "/models/sentiment-en.attend");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Classifier> classifier = Classifier::Create(*model);
  const Result<Tokenizer> tokenizer = Tokenizer::FromModel(*model);
  Batcher batcher = MakeBatcher(*model, {.num_workers = 2});
  for (const char* text : {"", "I loved it.", "What a waste of time, and of money too!"}) {
    BatchRequest request;
    request.text = text;
    const Result<BatchAnswer> answer = batcher.Submit(request)->Wait();
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    const Result<Encoding> encoding = tokenizer->Encode(text);
    EXPECT_EQ(answer->encoding.ids, encoding->ids);
    EXPECT_EQ(answer->encoding.offsets, encoding->offsets);
    const Result<Classification> alone = classifier->Classify(text);
    ASSERT_EQ(answer->logits.size(), alone->scores.size());
    const size_t best = static_cast<size_t>(
        std::max_element(answer->logits.begin(), answer->logits.end()) - answer->logits.begin());
    EXPECT_EQ(model->info().labels[best], alone->label);
  }
  BatchRequest bad;
  bad.text = "\xff";
  ExpectError(batcher.Submit(bad).status(), ErrorCode::kInvalidArgument, "UTF-8");
  std::string words;
  for (int i = 0; i < 3000; ++i) words += "word ";
  bad.text = words;
  ExpectError(batcher.Submit(bad).status(), ErrorCode::kCapacity, "the model takes at most");
  Batcher cutting = MakeBatcher(*model, {.num_workers = 1, .truncate = true});
  const Result<BatchAnswer> cut = cutting.Submit(bad)->Wait();
  ASSERT_TRUE(cut.ok()) << cut.status().ToString();
  EXPECT_TRUE(cut->encoding.truncated);
}

TEST(Batcher, BadRequestsAreRefusedAndHarmNoOther) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Batcher batcher = MakeBatcher(model, {.session = {.max_tokens = 64}, .num_workers = 1});
  const std::vector<int32_t> good = {1, 2, 3}, outside = {1, 1000}, lengthy(65, 1);
  const std::vector<float> rows = {1.0f};
  const Edge edge = {0, 0};
  const auto refuse = [&](const BatchRequest& request, ErrorCode code, const char* part) {
    ExpectError(batcher.Submit(request).status(), code, part);
  };
  refuse({}, ErrorCode::kInvalidArgument, "0 of text, ids and rows");
  refuse({.text = "a", .ids = good}, ErrorCode::kInvalidArgument, "2 of text, ids and rows");
  refuse({.text = "a"}, ErrorCode::kUnsupported, "no tokenizer");
  refuse({.ids = outside}, ErrorCode::kInvalidArgument, "ids[1]");
  refuse({.ids = lengthy}, ErrorCode::kCapacity, "65 tokens");
  refuse({.rows = rows}, ErrorCode::kInvalidArgument, "token ids");
  refuse({.ids = good, .pair = "b"}, ErrorCode::kInvalidArgument, "pair");
  refuse({.ids = good, .type_ids = outside}, ErrorCode::kInvalidArgument, "type_ids");
  refuse({.ids = good, .decoder_ids = good}, ErrorCode::kInvalidArgument, "decoder");
  refuse({.ids = good, .edges = std::span(&edge, 1)}, ErrorCode::kInvalidArgument, "edges");
  EXPECT_TRUE(batcher.Submit({.ids = good})->Wait().ok());
  EXPECT_EQ(batcher.statistics().failed, 10);
}

TEST(Batcher, OptionsOutOfRange) {
  const Model model = MakeModel(testing::ClassifierConfig());
  const auto expect = [&](const BatcherOptions& options, const char* part) {
    ExpectError(Batcher::Create(model, options).status(), ErrorCode::kInvalidArgument, part);
  };
  expect({.num_workers = -1}, "num_workers is -1");
  expect({.max_queued_requests = 0}, "max_queued_requests is 0");
  expect({.max_queued_tokens = 511}, "at least session.max_tokens, 512");
  expect({.max_bytes = 0}, "max_bytes is 0");
  expect({.linger_us = -1}, "linger_us is -1");
  expect({.session = {.max_tokens = 0}}, "max_tokens is 0");
}

TEST(Batcher, AFullQueueRefusesOrBlocks) {
  const Model model = MakeModel(testing::ClassifierConfig());
  const std::vector<int32_t> ids = testing::Ids(10, 1);
  struct Case {
    BatcherOptions options;
    int64_t fit;
  };
  for (const Case& c :
       {Case{{.num_workers = 1, .max_queued_requests = 5}, 5},
        Case{{.session = {.max_tokens = 30}, .num_workers = 1, .max_queued_tokens = 47}, 4},
        Case{{.num_workers = 1, .max_bytes = 10000}, -1}}) {
    Batcher batcher = MakeBatcher(model, c.options);
    std::vector<PendingAnswer> pending;
    std::optional<Plug> plug(&batcher);
    Result<PendingAnswer> refused = Status();
    for (int i = 0; i < 100; ++i) {
      Result<PendingAnswer> one = batcher.Submit({.ids = ids});
      if (!one.ok()) {
        refused = one.status();
        break;
      }
      pending.push_back(*std::move(one));
    }
    ExpectError(refused.status(), ErrorCode::kBusy, "the queue is full");
    if (c.fit >= 0) {
      EXPECT_EQ(static_cast<int64_t>(pending.size()), c.fit);
    }
    EXPECT_LE(batcher.statistics().bytes, c.options.max_bytes);
    // To block ends with the time given, or with the deadline.
    const auto begin = std::chrono::steady_clock::now();
    ExpectError(batcher.Submit({.ids = ids, .block_us = 20000}).status(), ErrorCode::kBusy, "full");
    EXPECT_GE(SinceUs(begin), 20000);
    ExpectError(batcher.Submit({.ids = ids, .deadline_us = 20000, .block_us = 60'000'000}).status(),
                ErrorCode::kDeadline, "deadline");
    // Or when there is room.
    std::thread opener([&] {
      SleepMs(20);
      plug->Open();
    });
    Result<PendingAnswer> late = batcher.Submit({.ids = ids, .block_us = 60'000'000});
    ASSERT_TRUE(late.ok()) << late.status().ToString();
    EXPECT_TRUE(late->Wait().ok());
    opener.join();
    for (PendingAnswer& one : pending) EXPECT_TRUE(one.Wait().ok());
    EXPECT_EQ(batcher.statistics().refused, 2);
  }
}

TEST(Batcher, TheHighestPriorityFirstAndThenInOrder) {
  const Model model = MakeModel(testing::ClassifierConfig());
  // One at a time, so that the order of answers is the order of starts.
  Batcher batcher =
      MakeBatcher(model, {.session = {.max_tokens = 16, .max_sequences = 1}, .num_workers = 1});
  const std::vector<int32_t> ids = {1};
  std::vector<int> order;
  {
    const Plug plug(&batcher);
    for (int i = 0; i < 30; ++i) {
      BatchRequest request{.ids = ids, .priority = i % 3 - 1};
      request.done = [&order, i](Result<BatchAnswer>) { order.push_back(i); };
      ASSERT_TRUE(batcher.Submit(std::move(request)).ok());
    }
  }
  ASSERT_TRUE(batcher.Drain());
  ASSERT_EQ(order.size(), 30u);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(order[i], static_cast<int>(i % 10) * 3 + 2 - static_cast<int>(i / 10)) << i;
  }
}

TEST(Batcher, LingerFillsABatchButMissesNoDeadline) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Batcher batcher = MakeBatcher(model, {.session = {.max_tokens = 64, .max_sequences = 4},
                                        .num_workers = 1,
                                        .linger_us = 60'000'000});
  const std::vector<int32_t> ids = {1, 2};
  std::vector<PendingAnswer> pending;
  for (int i = 0; i < 4; ++i) pending.push_back(*batcher.Submit({.ids = ids}));
  for (PendingAnswer& one : pending) {
    const Result<BatchAnswer> answer = one.Wait();
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->batch_sequences, 4);
  }
  EXPECT_TRUE(batcher.Submit({.ids = ids, .deadline_us = 30'000'000})->Wait().ok());
  PendingAnswer last = *batcher.Submit({.ids = ids});
  EXPECT_FALSE(last.WaitFor(20000));
  EXPECT_TRUE(batcher.Drain());  // does not linger
  EXPECT_TRUE(last.Wait().ok());
}

TEST(Batcher, CloseDrainAndCancelAll) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Batcher batcher = MakeBatcher(model, {.num_workers = 1});
  const std::vector<int32_t> ids = {1, 2};
  std::vector<PendingAnswer> pending;
  {
    const Plug plug(&batcher);
    for (int i = 0; i < 10; ++i) pending.push_back(*batcher.Submit({.ids = ids}));
    batcher.CancelAll();
    for (PendingAnswer& one : pending) {
      ExpectError(one.Wait().status(), ErrorCode::kCancelled, "cancelled");
    }
    pending.clear();
    for (int i = 0; i < 10; ++i) pending.push_back(*batcher.Submit({.ids = ids}));
    batcher.Close();
    ExpectError(batcher.Submit({.ids = ids}).status(), ErrorCode::kCancelled, "closed");
    EXPECT_FALSE(batcher.Drain(1000));
  }
  EXPECT_TRUE(batcher.Drain());
  for (PendingAnswer& one : pending) EXPECT_TRUE(one.Wait().ok());
  EXPECT_TRUE(batcher.Drain());
}

TEST(Batcher, MovedFrom) {
  const Model model = MakeModel(testing::ClassifierConfig());
  Batcher batcher = MakeBatcher(model, {.num_workers = 1});
  Batcher other = std::move(batcher);
  const std::vector<int32_t> ids = {1, 2};
  ExpectError(batcher.Submit({.ids = ids}).status(), ErrorCode::kInvalidArgument, "moved");
  ExpectError(batcher.Serve(), ErrorCode::kInvalidArgument, "moved");
  EXPECT_FALSE(batcher.Drain());
  batcher.Close();
  PendingAnswer pending = *other.Submit({.ids = ids});
  PendingAnswer taken = std::move(pending);
  ExpectError(pending.Wait().status(), ErrorCode::kInvalidArgument, "moved");
  EXPECT_TRUE(taken.Wait().ok());
  ExpectError(other.Serve(), ErrorCode::kInvalidArgument, "threads of its own");
}

TEST(Batcher, WithoutThreadsOfItsOwn) {
  const Model model = MakeModel(testing::ClassifierConfig());
  const int threads = testing::ThreadsOfProcess();
  Batcher batcher = MakeBatcher(model, {.num_workers = 2, .start_threads = false});
  EXPECT_EQ(batcher.num_workers(), 2);
  const auto sequences = testing::Sequences(10, 20, 3);
  const std::vector<Lone> expected = testing::RunAlone(model, sequences);
  std::vector<PendingAnswer> pending;
  for (const auto& ids : sequences) pending.push_back(*batcher.Submit(testing::RequestOf(ids)));
  EXPECT_FALSE(pending[0].done());
  const Result<int64_t> served = batcher.ServeWaiting();
  ASSERT_TRUE(served.ok());
  EXPECT_EQ(*served, 10);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(testing::LoneOf(*pending[i].Wait()) == expected[i]);
  }
  EXPECT_EQ(*batcher.ServeWaiting(), 0);
  EXPECT_EQ(testing::ThreadsOfProcess(), threads);
  // Two threads of ours, and no room for a third.
  std::vector<std::thread> ours;
  for (int i = 0; i < 2; ++i) {
    ours.emplace_back([&] { EXPECT_TRUE(batcher.Serve().ok()); });
  }
  while (batcher.statistics().idle_workers < 2) std::this_thread::yield();
  ExpectError(batcher.ServeWaiting().status(), ErrorCode::kBusy, "all 2 workers");
  EXPECT_TRUE(batcher.Submit({.ids = sequences[0]})->Wait().ok());
  EXPECT_TRUE(batcher.Drain());
  for (std::thread& thread : ours) thread.join();
}

TEST(Batcher, MemoryIsWhatItSays) {
  const Model model = MakeModel(testing::ClassifierConfig());
  const BatcherOptions options = {.num_workers = 3, .max_bytes = 1 << 20};
  const Batcher batcher = MakeBatcher(model, options);
  Result<Session> session = Session::Create(model, options.session);
  EXPECT_GT(batcher.memory_bytes(), 3 * session->memory_bytes() + (1 << 20));
  EXPECT_LT(batcher.memory_bytes(), 3 * session->memory_bytes() + (2 << 20));
  EXPECT_EQ(&batcher.model().data(), &model.data());
}

}  // namespace
}  // namespace attend
