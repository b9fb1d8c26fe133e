// Telemetry says where a run's time went: it adds up, it is the trace's own numbers, it is of this
// run alone, and it changes no bit.
#include "engine/telemetry.h"

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
#include "attend/text.h"
#include "attend/trace.h"
#include "tests/decoder_testing.h"
#include "tests/random_model.h"
#include "tests/tiny_text_model.h"

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
      EXPECT_EQ(t.runs, 1);
      EXPECT_EQ(t.tokens, 400);
      EXPECT_EQ(t.decoder_tokens, 0);
      EXPECT_EQ(t.sequences, 2);
      EXPECT_EQ(t.num_threads, threads);
      EXPECT_EQ(t.share, output->share);
      EXPECT_EQ(t.encode_ns, 0);
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
  EXPECT_EQ(t.runs, 1);
  EXPECT_EQ(t.tokens, 3);
  EXPECT_EQ(t.decoder_tokens, 2);
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

TEST(Telemetry, OfATextThatABatcherEncoded) {
  const Result<Model> model = Model::FromBytes(testing::TinyModelBytes(Task::kTokens));
  ASSERT_TRUE(model.ok());
  Result<Batcher> batcher = Batcher::Create(
      *model,
      {.session = {.max_tokens = 64, .telemetry = true}, .num_workers = 1, .start_threads = false});
  ASSERT_TRUE(batcher.ok());
  const int32_t ids[] = {1, 2, 3};
  Result<PendingAnswer> text = batcher->Submit({.text = "I saw a saw"});
  Result<PendingAnswer> tokens = batcher->Submit({.ids = ids});
  ASSERT_TRUE(text.ok() && tokens.ok());
  ASSERT_TRUE(batcher->ServeWaiting().ok());
  const Result<BatchAnswer> of_text = text->Wait(), of_tokens = tokens->Wait();
  ASSERT_TRUE(of_text.ok() && of_tokens.ok());
  EXPECT_GT(of_text->telemetry->encode_ns, 0);
  EXPECT_EQ(of_tokens->telemetry->encode_ns, 0);
}

TEST(Telemetry, RunsOfACallAreAddedUp) {
  const Telemetry one = {.runs = 1,
                         .tokens = 3,
                         .decoder_tokens = 4,
                         .sequences = 2,
                         .num_threads = 2,
                         .share = Share::kRows,
                         .run_ns = 100,
                         .wait_ns = 10,
                         .work = {.embedding_ns = 1, .attention_ns = 2, .linear_ns = 3},
                         .segments = {{.embedding_ns = 1}, {.attention_ns = 2, .linear_ns = 3}}};
  Telemetry sum;
  AddRun(one, &sum);
  AddRun(one, &sum);
  EXPECT_EQ(sum.runs, 2);
  EXPECT_EQ(sum.tokens, 6);
  EXPECT_EQ(sum.decoder_tokens, 8);
  EXPECT_EQ(sum.sequences, 4);
  EXPECT_EQ(sum.num_threads, 2);
  EXPECT_EQ(sum.share, Share::kRows);
  EXPECT_EQ(sum.run_ns, 200);
  EXPECT_EQ(sum.wait_ns, 20);
  EXPECT_EQ(sum.work.total_ns(), 12);
  ASSERT_EQ(sum.segments.size(), 2u);
  EXPECT_EQ(sum.segments[1].linear_ns, 6);
  Telemetry other = one;
  other.share = Share::kSequences;
  other.num_threads = 1;
  AddRun(other, &sum);
  AddRun(other, &sum);
  EXPECT_EQ(sum.share, Share::kAuto);
  EXPECT_EQ(sum.num_threads, 2);
}

const std::vector<std::string_view> kTexts = {"I saw a saw", "a", "a saw saw a saw",
                                              "saw a saw I saw", "I"};

// Of a call of kTexts, two at a time, and then of one of the first alone.
void ExpectOfTexts(const Telemetry* t, int64_t tokens, int64_t sequences) {
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->runs, (sequences + 1) / 2);
  EXPECT_EQ(t->tokens, tokens);
  EXPECT_EQ(t->sequences, sequences);
  EXPECT_EQ(t->share, Share::kSequences);
  EXPECT_GT(t->encode_ns, 0);
  EXPECT_EQ(t->queue_ns, 0);
  EXPECT_GT(t->work.attention_ns, 0);
  EXPECT_GT(t->work.linear_ns, 0);
  EXPECT_LE(t->work.total_ns() + t->wait_ns, t->num_threads * t->run_ns);
  ExpectEqual(SumOf(t->segments), t->work);
  EXPECT_GE(t->segments.size(), 2u);
}

int64_t TokensOf(const Model& model, std::span<const std::string_view> texts) {
  const Result<Tokenizer> tokenizer = Tokenizer::FromModel(model);
  EXPECT_TRUE(tokenizer.ok());
  int64_t tokens = 0;
  for (const std::string_view text : texts) {
    tokens += static_cast<int64_t>(tokenizer->Encode(text)->ids.size());
  }
  return tokens;
}

// `call` gives texts to a pipeline, and returns what can be compared of its answers; nothing after
// an error.
template <typename Pipeline, typename Call>
void ExpectTelemetryOf(Task task, const Call& call, int64_t more_sequences = 0) {
  const Result<Model> model = Model::FromBytes(testing::TinyModelBytes(task));
  ASSERT_TRUE(model.ok());
  PipelineOptions options = {
      .session = {.max_tokens = 64, .max_sequences = 2, .share = Share::kSequences}};
  Result<Pipeline> plain = Pipeline::Create(*model, options);
  options.session.telemetry = true;
  Result<Pipeline> timed = Pipeline::Create(*model, options);
  ASSERT_TRUE(plain.ok() && timed.ok());
  ASSERT_NE(timed->telemetry(), nullptr);
  EXPECT_EQ(timed->telemetry()->runs, 0);
  for (const size_t count : {kTexts.size(), size_t{1}}) {  // the second of itself alone
    SCOPED_TRACE(std::to_string(count) + " texts");
    const auto texts = std::span(kTexts).first(count);
    const auto want = call(*plain, texts);
    EXPECT_EQ(call(*timed, texts), want);
    EXPECT_EQ(plain->telemetry(), nullptr);
    const auto sequences = static_cast<int64_t>(count) + more_sequences;
    ExpectOfTexts(timed->telemetry(),
                  TokensOf(*model, texts) + more_sequences * TokensOf(*model, {{kTexts[0]}}),
                  sequences);
  }
  Pipeline moved = *std::move(timed);
  ASSERT_NE(moved.telemetry(), nullptr);
  EXPECT_EQ(moved.telemetry()->runs, (1 + more_sequences + 1) / 2);
  const std::string_view bad[] = {"\xff"};
  EXPECT_TRUE(call(moved, bad).empty());
  EXPECT_EQ(moved.telemetry()->runs, 0);
  EXPECT_EQ(moved.telemetry()->tokens, 0);
}

using Texts = std::span<const std::string_view>;
using Numbers = std::vector<std::vector<float>>;

TEST(Telemetry, OfATagger) {
  ExpectTelemetryOf<Tagger>(Task::kTokens, [](Tagger& tagger, Texts texts) {
    Numbers scores;
    const Result<std::vector<Tags>> answers = tagger.TagBatch(texts);
    if (!answers.ok()) return scores;
    for (const Tags& tags : *answers) {
      scores.emplace_back();
      for (const TaggedWord& word : tags.words) scores.back().push_back(word.score);
    }
    return scores;
  });
}

TEST(Telemetry, OfAClassifier) {
  ExpectTelemetryOf<Classifier>(Task::kSequence, [](Classifier& classifier, Texts texts) {
    Numbers scores;
    const Result<std::vector<Classification>> answers = classifier.ClassifyBatch(texts);
    if (!answers.ok()) return scores;
    for (const Classification& answer : *answers) scores.push_back(answer.scores);
    return scores;
  });
}

TEST(Telemetry, OfAnEmbedder) {
  ExpectTelemetryOf<Embedder>(Task::kEmbedding, [](Embedder& embedder, Texts texts) {
    Numbers vectors;
    const Result<std::vector<Embedding>> answers = embedder.EmbedBatch(texts);
    if (!answers.ok()) return vectors;
    for (const Embedding& answer : *answers) vectors.push_back(answer.values);
    return vectors;
  });
}

TEST(Telemetry, OfAReranker) {
  const auto call = [](Reranker& reranker, Texts texts) {
    Numbers scores;
    const Result<std::vector<Ranked>> answers = reranker.Rank(kTexts[0], texts);
    if (!answers.ok()) return scores;
    for (const Ranked& answer : *answers) scores.push_back({answer.score});
    return scores;
  };
  ExpectTelemetryOf<Reranker>(Task::kEmbedding, call, /*more_sequences=*/1);  // the query
}

// What the runs of a generation were, and that they are of the call alone.
void ExpectOfGeneration(const Telemetry* t, int64_t tokens, int64_t sequences, int64_t runs,
                        int64_t decoder_tokens) {
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->runs, runs);
  EXPECT_EQ(t->tokens, tokens);
  EXPECT_EQ(t->decoder_tokens, decoder_tokens);
  EXPECT_EQ(t->sequences, sequences);
  EXPECT_GT(t->work.attention_ns, 0);
  EXPECT_LE(t->work.total_ns() + t->wait_ns, t->num_threads * t->run_ns);
  ExpectEqual(SumOf(t->segments), t->work);
  for (const WorkTimes& segment : t->segments) EXPECT_GT(segment.total_ns(), 0);
}

TEST(Telemetry, OfAGenerator) {
  const Result<Model> model = Model::FromBytes(testing::TinyModelBytes(Task::kGenerate));
  ASSERT_TRUE(model.ok());
  GeneratorOptions options;
  options.max_text_tokens = 16;
  options.settings = {.max_new_tokens = 4, .min_new_tokens = 4};
  Result<Generator> plain = Generator::Create(*model, options);
  options.session.telemetry = true;
  Result<Generator> timed = Generator::Create(*model, options);
  ASSERT_TRUE(plain.ok() && timed.ok());
  EXPECT_GT(timed->memory_bytes(), plain->memory_bytes());
  for (const size_t count : {size_t{3}, size_t{1}}) {
    const auto texts = std::span(kTexts).first(count);
    const Result<std::vector<Generation>> want = plain->GenerateBatch(texts);
    const Result<std::vector<Generation>> got = timed->GenerateBatch(texts);
    ASSERT_TRUE(want.ok() && got.ok()) << got.status().ToString();
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ((*got)[i].outputs[0].ids, (*want)[i].outputs[0].ids);
      EXPECT_EQ((*got)[i].outputs[0].score, (*want)[i].outputs[0].score);
    }
    EXPECT_EQ(plain->telemetry(), nullptr);
    // The prompts, and then three steps: nothing follows the fourth token.
    const int64_t tokens = TokensOf(*model, texts), all = static_cast<int64_t>(count);
    ExpectOfGeneration(timed->telemetry(), tokens, all, 1 + 3, tokens + 3 * all);
    EXPECT_GT(timed->telemetry()->encode_ns, 0);
  }
  // More memory, and so another decoder.
  ASSERT_TRUE(timed->Set({.num_beams = 3}).ok());
  ASSERT_TRUE(timed->Generate(kTexts[0]).ok());
  const int64_t tokens = TokensOf(*model, {{kTexts[0]}});
  ExpectOfGeneration(timed->telemetry(), tokens, 1, 1 + 3, tokens + 3 * 3);
  EXPECT_EQ(timed->Generate("\xff").status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(timed->telemetry()->runs, 0);
}

TEST(Telemetry, OfAGeneratorWithAnEncoder) {
  const Result<Model> model = testing::RandomModel(testing::EncoderDecoderConfig(), 3);
  ASSERT_TRUE(model.ok());
  GeneratorOptions options;
  options.session.telemetry = true;
  options.max_text_tokens = 16;
  options.settings = {.max_new_tokens = 5, .min_new_tokens = 5, .decoder_start_token_id = 1};
  Result<Generator> generator = Generator::Create(*model, options);
  ASSERT_TRUE(generator.ok()) << generator.status().ToString();
  const int32_t ids[] = {5, 6, 7};
  const GenerationInput inputs[] = {{.ids = ids}, {.ids = std::span(ids).first(2)}};
  for (int call = 0; call < 2; ++call) {
    ASSERT_TRUE(generator->GenerateIds(inputs).ok());
    ExpectOfGeneration(generator->telemetry(), 5, 2, 1 + 4, 2 + 4 * 2);
    EXPECT_EQ(generator->telemetry()->encode_ns, 0);
  }
}

}  // namespace
}  // namespace attend
