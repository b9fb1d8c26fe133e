// Many callers of one model, from C: the answers are those of lone runs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/c_api_testing.h"

namespace attend::testing {
namespace {

using CBatcher = Handle<attend_batcher, attend_batcher_free>;
using CPending = Handle<attend_pending, attend_pending_free>;

CBatcher CreateBatcher(const CModel& model, const attend_batcher_options& options) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_batcher* batcher = nullptr;
  EXPECT_EQ(attend_batcher_create(model.get(), &options, &batcher, &error), ATTEND_OK)
      << TextOf(error);
  return CBatcher(batcher);
}

attend_request RequestOf(const std::vector<int32_t>& ids) {
  attend_request request = ATTEND_REQUEST_INIT;
  request.ids = ids.data();
  request.num_tokens = static_cast<int64_t>(ids.size());
  return request;
}

// The logits of a run of its own.
std::vector<float> AloneOf(const CModel& model, const std::vector<int32_t>& ids) {
  attend_session* made = nullptr;
  EXPECT_EQ(attend_session_create(model.get(), nullptr, &made, nullptr), ATTEND_OK);
  const Handle<attend_session, attend_session_free> session(made);
  const int32_t offsets[] = {0, static_cast<int32_t>(ids.size())};
  attend_batch batch = BatchOf(ids, offsets);
  attend_output output = ATTEND_OUTPUT_INIT;
  EXPECT_EQ(attend_session_run(session.get(), &batch, &output, nullptr), ATTEND_OK);
  return {output.logits, output.logits + output.num_logits};
}

TEST(CApiBatcher, AnswersAreThoseOfLoneRuns) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_batcher_options options = ATTEND_BATCHER_OPTIONS_INIT;
  options.num_workers = 2;
  const CBatcher batcher = CreateBatcher(model, options);
  attend_error error = ATTEND_ERROR_INIT;
  std::vector<std::vector<int32_t>> ids;
  std::vector<CPending> pending;
  for (int32_t i = 0; i < 20; ++i) {
    ids.push_back({1, 5 + i, 7, 9 + i});
    ids.back().resize(static_cast<size_t>(1 + i % 4));
    const attend_request request = RequestOf(ids.back());
    attend_pending* one = nullptr;
    ASSERT_EQ(attend_batcher_submit(batcher.get(), &request, &one, &error), ATTEND_OK)
        << TextOf(error);
    pending.emplace_back(one);
  }
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(attend_pending_wait_for(pending[i].get(), -1), 1);
    attend_answer answer = ATTEND_ANSWER_INIT;
    ASSERT_EQ(attend_pending_wait(pending[i].get(), &answer, &error), ATTEND_OK) << TextOf(error);
    const std::vector<float> want = AloneOf(model, ids[i]);
    ASSERT_EQ(static_cast<size_t>(answer.num_logits), want.size());
    EXPECT_EQ(std::memcmp(answer.logits, want.data(), want.size() * sizeof(float)), 0);
    EXPECT_GE(answer.batch_sequences, 1);
    EXPECT_EQ(attend_pending_wait(pending[i].get(), &answer, &error), ATTEND_INVALID_ARGUMENT);
  }
  ASSERT_EQ(attend_batcher_drain(batcher.get(), -1, &error), ATTEND_OK);
  attend_batcher_statistics statistics = ATTEND_BATCHER_STATISTICS_INIT;
  ASSERT_EQ(attend_batcher_get_statistics(batcher.get(), &statistics, &error), ATTEND_OK);
  EXPECT_EQ(statistics.answered, 20);
  const attend_request late = RequestOf(ids[0]);
  attend_pending* none = nullptr;
  EXPECT_EQ(attend_batcher_submit(batcher.get(), &late, &none, &error), ATTEND_CANCELLED);
  EXPECT_EQ(none, nullptr);
}

struct Collected {
  std::atomic<int> good{0}, cancelled{0}, other{0};
  static void Done(void* user, attend_status status, const attend_answer* answer,
                   const attend_error* error) {
    auto* collected = static_cast<Collected*>(user);
    EXPECT_EQ(answer != nullptr, status == ATTEND_OK);
    EXPECT_EQ(error->code, status);
    ++(status == ATTEND_OK          ? collected->good
       : status == ATTEND_CANCELLED ? collected->cancelled
                                    : collected->other);
    if (answer != nullptr) {
      EXPECT_GT(answer->num_tokens, 0);
      EXPECT_EQ(answer->offsets[1].begin, 0u);
      EXPECT_NE(answer->hidden, nullptr);
      EXPECT_EQ(answer->logits, nullptr);
    }
  }
};

// A batcher without threads of its own: nothing happens but by attend_batcher_serve_waiting.
TEST(CApiBatcher, TextsCallbacksAndServing) {
  attend_model* loaded = nullptr;
  ASSERT_EQ(attend_model_load(ATTEND_SOURCE_DIR "/models/pos-en.attend", &loaded, nullptr),
            ATTEND_OK);
  const CModel model(loaded);
  attend_batcher_options options = ATTEND_BATCHER_OPTIONS_INIT;
  options.no_threads = 1;
  options.num_workers = 1;
  options.max_queued_requests = 3;
  const CBatcher batcher = CreateBatcher(model, options);
  attend_error error = ATTEND_ERROR_INIT;
  Collected collected;
  const attend_text text = {"some text", 9};
  attend_request request = ATTEND_REQUEST_INIT;
  request.text = &text;
  request.want = ATTEND_WANT_HIDDEN;
  request.done = Collected::Done;
  request.user = &collected;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(attend_batcher_submit(batcher.get(), &request, nullptr, &error), ATTEND_OK)
        << TextOf(error);
  }
  EXPECT_EQ(attend_batcher_submit(batcher.get(), &request, nullptr, &error), ATTEND_BUSY);
  EXPECT_EQ(attend_batcher_drain(batcher.get(), 1000, &error), ATTEND_DEADLINE);
  EXPECT_EQ(collected.good, 0);
  int64_t answered = 0;
  ASSERT_EQ(attend_batcher_serve_waiting(batcher.get(), &answered, &error), ATTEND_OK);
  EXPECT_EQ(answered, 3);
  EXPECT_EQ(collected.good, 3);
}

TEST(CApiBatcher, CancellingAndDeadlines) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_batcher_options options = ATTEND_BATCHER_OPTIONS_INIT;
  options.no_threads = 1;
  options.num_workers = 1;
  CBatcher batcher = CreateBatcher(model, options);
  attend_error error = ATTEND_ERROR_INIT;
  const std::vector<int32_t> ids = {1, 2, 3};
  attend_request request = RequestOf(ids);
  attend_pending* made = nullptr;
  ASSERT_EQ(attend_batcher_submit(batcher.get(), &request, &made, &error), ATTEND_OK);
  const CPending cancelled(made);
  attend_pending_cancel(cancelled.get());
  attend_answer answer = ATTEND_ANSWER_INIT;
  EXPECT_EQ(attend_pending_wait(cancelled.get(), &answer, &error), ATTEND_CANCELLED);
  request.deadline_us = 5000;
  ASSERT_EQ(attend_batcher_submit(batcher.get(), &request, &made, &error), ATTEND_OK);
  const CPending late(made);
  EXPECT_EQ(attend_pending_wait(late.get(), &answer, &error), ATTEND_DEADLINE);
  request.deadline_us = 0;
  Collected collected;
  request.done = Collected::Done;
  request.user = &collected;
  ASSERT_EQ(attend_batcher_submit(batcher.get(), &request, nullptr, &error), ATTEND_OK);
  ASSERT_EQ(attend_batcher_cancel_all(batcher.get(), &error), ATTEND_OK);
  EXPECT_EQ(collected.cancelled, 1);
  ASSERT_EQ(attend_batcher_submit(batcher.get(), &request, nullptr, &error), ATTEND_OK);
  batcher.reset();  // which answers what is left
  EXPECT_EQ(collected.cancelled, 2);
}

TEST(CApiBatcher, BadRequestsAreNamed) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_batcher_options options = ATTEND_BATCHER_OPTIONS_INIT;
  options.num_workers = 1;
  const CBatcher batcher = CreateBatcher(model, options);
  attend_error error = ATTEND_ERROR_INIT;
  const std::vector<int32_t> ids = {1, 2, 300};
  attend_request request = RequestOf(ids);
  attend_pending* none = nullptr;
  EXPECT_EQ(attend_batcher_submit(batcher.get(), &request, &none, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_STREQ(error.where, "ids[2]");
  request = RequestOf(ids);
  request.num_tokens = -1;
  EXPECT_EQ(attend_batcher_submit(batcher.get(), &request, &none, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_batcher_submit(batcher.get(), &request, nullptr, &error),
            ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_batcher_submit(batcher.get(), nullptr, &none, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_batcher_submit(nullptr, &request, &none, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_batcher_serve(batcher.get(), &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_pending_wait_for(nullptr, 0), 0);
  attend_pending_cancel(nullptr);
  attend_pending_free(nullptr);
  attend_batcher_free(nullptr);
}

// From another thread, a long run is stopped; a cancel without a run does nothing.
TEST(CApiBatcher, SessionsCanBeStopped) {
  ModelConfig config = EncoderConfig(256, 24, 4, 1024);
  const Result<std::vector<std::byte>> bytes = RandomModelBytes(config, 3);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const CModel model = LoadTiny(*bytes);
  attend_error error = ATTEND_ERROR_INIT;
  attend_session* made = nullptr;
  ASSERT_EQ(attend_session_create(model.get(), nullptr, &made, &error), ATTEND_OK);
  const CSession session(made);
  std::vector<int32_t> ids(4096, 7), offsets;
  for (int32_t at = 0; at <= 4096; at += 512) offsets.push_back(at);
  attend_batch batch = BatchOf(ids, offsets);
  attend_output output = ATTEND_OUTPUT_INIT;
  std::atomic<bool> over = false;
  std::thread stopper([&] {
    while (!over) {  // again and again: one that comes before the run starts does nothing
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      attend_session_cancel(session.get());
    }
  });
  EXPECT_EQ(attend_session_run(session.get(), &batch, &output, &error), ATTEND_CANCELLED);
  over = true;
  stopper.join();
  batch.num_tokens = 512;
  batch.num_sequences = 1;
  EXPECT_EQ(attend_session_run(session.get(), &batch, &output, &error), ATTEND_OK) << TextOf(error);
  attend_session_cancel(nullptr);
}

}  // namespace
}  // namespace attend::testing
