// What is seen inside, from C: loggers, traces and telemetry say what those of C++ say.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/trace.h"
#include "tests/c_api_testing.h"
#include "tests/child.h"
#include "tests/log_testing.h"

namespace attend::testing {
namespace {

using CTrace = Handle<attend_trace, attend_trace_free>;

struct CKept {
  std::vector<KeptEntry> entries;
  static void Log(void* user, int32_t level, int32_t code, const char* message, size_t size) {
    EXPECT_EQ(std::strlen(message), size);
    static_cast<CKept*>(user)->entries.push_back(
        {static_cast<LogLevel>(level), static_cast<LogCode>(code), {message, size}});
  }
  attend_logger logger() {
    attend_logger made = ATTEND_LOGGER_INIT;
    made.user = this;
    made.log = &CKept::Log;
    return made;
  }
};

void ExpectSameEntries(const std::vector<KeptEntry>& got, const std::vector<KeptEntry>& want) {
  ASSERT_EQ(CodesOf(got), CodesOf(want));
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].level, want[i].level);
    EXPECT_EQ(got[i].message, want[i].message);
  }
}

CTrace CreateTrace(int64_t max_events = 0) {
  attend_trace* made = nullptr;
  EXPECT_EQ(attend_trace_create(max_events, &made, nullptr), ATTEND_OK);
  return CTrace(made);
}

attend_output RunThree(attend_session* session) {
  static const int32_t kIds[] = {1, 5, 7, 9, 4}, kOffsets[] = {0, 2, 5};
  attend_batch batch = BatchOf(kIds, kOffsets);
  attend_error error = ATTEND_ERROR_INIT;
  attend_output output = ATTEND_OUTPUT_INIT;
  EXPECT_EQ(attend_session_run(session, &batch, &output, &error), ATTEND_OK) << TextOf(error);
  return output;
}

TEST(CApiTrace, LoggersSayWhatCppSays) {
  EXPECT_EQ(ATTEND_LOG_DEBUG, static_cast<int>(LogLevel::kDebug));
  EXPECT_EQ(ATTEND_LOG_WARNING, static_cast<int>(LogLevel::kWarning));
  EXPECT_EQ(ATTEND_LOG_MODEL_LOADED, static_cast<int>(LogCode::kModelLoaded));
  EXPECT_EQ(ATTEND_LOG_FEW_THREADS, static_cast<int>(LogCode::kFewThreads));
  EXPECT_EQ(ATTEND_LOG_EXPIRED, static_cast<int>(LogCode::kExpired));
  const std::string path = ATTEND_SOURCE_DIR "/models/pos-en.attend";
  CKept kept;
  attend_error error = ATTEND_ERROR_INIT;
  attend_session* made = nullptr;
  {
    const attend_logger logger = kept.logger();  // copied: it may go
    attend_load_options load = ATTEND_LOAD_OPTIONS_INIT;
    load.logger = &logger;
    attend_model* loaded = nullptr;
    ASSERT_EQ(attend_model_load_with(path.c_str(), &load, &loaded, &error), ATTEND_OK)
        << TextOf(error);
    const CModel model(loaded);
    attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
    options.max_tokens = 64;
    options.num_threads = 3;
    options.backend = ATTEND_THREADS_NONE;
    options.logger = &logger;
    ASSERT_EQ(attend_session_create(model.get(), &options, &made, &error), ATTEND_OK);
  }
  const CSession session(made);
  RunThree(session.get());
  KeepingLogger logger;
  const Result<Model> model = Model::Load(path, {.logger = &logger});
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(Session::Create(*model, {.num_threads = 3,
                                       .max_tokens = 64,
                                       .backend = ThreadBackend::kSerial,
                                       .logger = &logger})
                  .ok());
  const std::vector<KeptEntry> want = logger.Take();
  EXPECT_EQ(EntryOf(want, LogCode::kFewThreads).level, LogLevel::kWarning);
  ExpectSameEntries(kept.entries, want);
}

TEST(CApiTrace, LoggersOfWhatIsLoaded) {
  CKept kept;
  const attend_logger logger = kept.logger();
  attend_load_options load = ATTEND_LOAD_OPTIONS_INIT;
  load.logger = &logger;
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  attend_model* model = nullptr;
  attend_tokenizer *from_bytes = nullptr, *from_file = nullptr;
  attend_error error = ATTEND_ERROR_INIT;
  ASSERT_EQ(attend_model_from_bytes_with(bytes.data(), bytes.size(), &load, &model, &error),
            ATTEND_OK)
      << TextOf(error);
  const CModel free_model(model);
  ASSERT_EQ(
      attend_tokenizer_from_bytes_with(bytes.data(), bytes.size(), &load, &from_bytes, &error),
      ATTEND_OK)
      << TextOf(error);
  const CTokenizer free_from_bytes(from_bytes);
  const std::string path = ATTEND_SOURCE_DIR "/models/pos-en.attend";
  ASSERT_EQ(attend_tokenizer_load_with(path.c_str(), &load, &from_file, &error), ATTEND_OK)
      << TextOf(error);
  const CTokenizer free_from_file(from_file);
  KeepingLogger same;
  ASSERT_TRUE(Model::FromBytes(bytes, {.logger = &same}).ok());
  const std::string size = std::to_string(bytes.size());
  std::vector<KeptEntry> want = same.Take();
  want.push_back({LogLevel::kInfo, LogCode::kModelLoaded,
                  size + " bytes in memory, copied; wordpiece tokenizer of 300 tokens"});
  ASSERT_TRUE(Tokenizer::Load(path, {.logger = &same}).ok());
  want.push_back(same.Take().front());
  ExpectSameEntries(kept.entries, want);
  load.reserved = 1;
  EXPECT_EQ(attend_tokenizer_load_with(path.c_str(), &load, &from_file, &error),
            ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(
      attend_tokenizer_from_bytes_with(bytes.data(), bytes.size(), &load, &from_bytes, &error),
      ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_model_from_bytes_with(bytes.data(), bytes.size(), &load, &model, &error),
            ATTEND_INVALID_ARGUMENT);
}

TEST(CApiTrace, LoggersOfEveryObject) {
  CKept kept;
  attend_logger logger = kept.logger();
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 64;
  session.logger = &logger;
  attend_pipeline_options options = ATTEND_PIPELINE_OPTIONS_INIT;
  options.session = &session;
  const auto expect_told = [&](const char* what) {
    EXPECT_GE(kept.entries.size(), 4u) << what;
    kept.entries.clear();
  };
  const CModel tagging = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_tagger* tagger = nullptr;
  ASSERT_EQ(attend_tagger_create(tagging.get(), &options, &tagger, nullptr), ATTEND_OK);
  const CTagger free_tagger(tagger);
  expect_told("tagger");
  attend_attention_options looking = ATTEND_ATTENTION_OPTIONS_INIT;
  looking.logger = &logger;
  attend_attention_map* map = nullptr;
  ASSERT_EQ(attend_attention_map_create(tagging.get(), &looking, &map, nullptr), ATTEND_OK);
  const CAttentionMap free_map(map);
  expect_told("attention map");
  const CModel writing = LoadTiny(TinyModelBytes(Task::kGenerate));
  attend_generator_options writes = ATTEND_GENERATOR_OPTIONS_INIT;
  writes.session = &session;
  attend_generator* generator = nullptr;
  ASSERT_EQ(attend_generator_create(writing.get(), &writes, &generator, nullptr), ATTEND_OK);
  const CGenerator free_generator(generator);
  expect_told("generator");
  // And what is wrong with one is said.
  attend_error error = ATTEND_ERROR_INIT;
  attend_session* none = nullptr;
  const auto refuses = [&](const char* part) {
    EXPECT_EQ(attend_session_create(tagging.get(), &session, &none, &error),
              ATTEND_INVALID_ARGUMENT);
    EXPECT_TRUE(Has(error.message, part)) << error.message;
  };
  logger.log = nullptr;
  refuses("log is NULL");
  logger = kept.logger();
  logger.least = 2;
  refuses("least is 2");
  session.logger = nullptr;
  session.telemetry = 2;
  refuses("telemetry is 2");
  EXPECT_TRUE(kept.entries.empty());
}

TEST(CApiTrace, ATraceOfASession) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  const CTrace trace = CreateTrace();
  attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
  options.max_tokens = 64;
  options.trace = trace.get();
  attend_session* made = nullptr;
  ASSERT_EQ(attend_session_create(model.get(), &options, &made, nullptr), ATTEND_OK);
  const CSession session(made);
  RunThree(session.get());
  attend_trace_info info = ATTEND_TRACE_INFO_INIT;
  ASSERT_EQ(attend_trace_get_info(trace.get(), &info, nullptr), ATTEND_OK);
  EXPECT_GT(info.num_events, 10);
  EXPECT_EQ(info.num_dropped, 0);
  attend_buffer* buffer = nullptr;
  ASSERT_EQ(attend_buffer_create(&buffer, nullptr), ATTEND_OK);
  const CBuffer free_buffer(buffer);
  attend_text text = {nullptr, 0};
  ASSERT_EQ(attend_trace_write_json(trace.get(), buffer, &text, nullptr), ATTEND_OK);
  EXPECT_EQ(text.data[text.size], '\0');
  const nlohmann::json all = nlohmann::json::parse(std::string(text.data, text.size));
  EXPECT_EQ(static_cast<int64_t>(all["traceEvents"].size()), info.num_events);
  attend_trace_clear(trace.get());
  ASSERT_EQ(attend_trace_get_info(trace.get(), &info, nullptr), ATTEND_OK);
  EXPECT_EQ(info.num_events, 0);

  const CTrace small = CreateTrace(3);
  attend_attention_options looking = ATTEND_ATTENTION_OPTIONS_INIT;
  looking.trace = small.get();
  attend_attention_map* map = nullptr;
  ASSERT_EQ(attend_attention_map_create(model.get(), &looking, &map, nullptr), ATTEND_OK);
  const CAttentionMap free_map(map);
  const int32_t ids[] = {1, 2}, offsets[] = {0, 2};
  attend_batch batch = BatchOf(ids, offsets);
  attend_attention attention = ATTEND_ATTENTION_INIT;
  ASSERT_EQ(attend_attention_map_run(map, &batch, &attention, nullptr), ATTEND_OK);
  ASSERT_EQ(attend_trace_get_info(small.get(), &info, nullptr), ATTEND_OK);
  EXPECT_EQ(info.num_events, 3);
  EXPECT_GT(info.num_dropped, 0);
}

TEST(CApiTrace, BadCallsAreErrors) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_trace* none = nullptr;
  EXPECT_EQ(attend_trace_create(-1, &none, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(error.message, Trace::Create(-1).status().what());
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(attend_trace_create(1, nullptr, &error), ATTEND_INVALID_ARGUMENT);
  attend_trace_info info = ATTEND_TRACE_INFO_INIT;
  attend_text text;
  EXPECT_EQ(attend_trace_get_info(nullptr, &info, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_trace_write_json(nullptr, nullptr, &text, &error), ATTEND_INVALID_ARGUMENT);
  attend_trace_clear(nullptr);
  attend_trace_free(nullptr);
}

TEST(CApiTrace, TelemetryOfASession) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  for (const int32_t on : {0, 1}) {
    attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
    options.max_tokens = 64;
    options.num_threads = 2;
    options.share = ATTEND_SHARE_ROWS;
    options.telemetry = on;
    attend_session* made = nullptr;
    ASSERT_EQ(attend_session_create(model.get(), &options, &made, nullptr), ATTEND_OK);
    const CSession session(made);
    const attend_output output = RunThree(session.get());
    ASSERT_EQ(output.telemetry != nullptr, on == 1);
    if (on == 0) continue;
    const attend_telemetry& t = *output.telemetry;
    EXPECT_EQ(t.struct_size, sizeof(attend_telemetry));
    EXPECT_EQ(t.num_tokens, 5);
    EXPECT_EQ(t.num_sequences, 2);
    EXPECT_EQ(t.num_threads, 2);
    EXPECT_EQ(t.share, ATTEND_SHARE_ROWS);
    EXPECT_EQ(t.queue_ns, 0);
    EXPECT_GT(t.work.linear_ns, 0);
    EXPECT_GT(t.work.attention_ns, 0);
    EXPECT_GT(t.work.embedding_ns, 0);
    EXPECT_GT(t.wait_ns, 0);
    EXPECT_LE(t.work.linear_ns + t.work.attention_ns + t.wait_ns, 2 * t.run_ns);
    ASSERT_EQ(t.num_segments, 2);
    EXPECT_EQ(t.segments[0].linear_ns + t.segments[1].linear_ns, t.work.linear_ns);
    EXPECT_EQ(t.segments[1].attention_ns, t.work.attention_ns);
  }
}

struct CWatched {
  int64_t tokens = -1, queue_ns = -1;
  static void Done(void* user, attend_status, const attend_answer* answer, const attend_error*) {
    ASSERT_NE(answer, nullptr);
    ASSERT_NE(answer->telemetry, nullptr);
    auto* watched = static_cast<CWatched*>(user);
    watched->tokens = answer->telemetry->num_tokens;
    watched->queue_ns = answer->telemetry->queue_ns;
  }
};

TEST(CApiTrace, TelemetryOfABatcher) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.telemetry = 1;
  attend_batcher_options options = ATTEND_BATCHER_OPTIONS_INIT;
  options.session = &session;
  options.no_threads = 1;
  attend_batcher* made = nullptr;
  ASSERT_EQ(attend_batcher_create(model.get(), &options, &made, nullptr), ATTEND_OK);
  const Handle<attend_batcher, attend_batcher_free> batcher(made);
  const int32_t ids[] = {1, 2, 3};
  attend_request request = ATTEND_REQUEST_INIT;
  request.ids = ids;
  request.num_tokens = 3;
  attend_pending* pending = nullptr;
  ASSERT_EQ(attend_batcher_submit(batcher.get(), &request, &pending, nullptr), ATTEND_OK);
  const Handle<attend_pending, attend_pending_free> free_pending(pending);
  CWatched watched;
  request.done = &CWatched::Done;
  request.user = &watched;
  ASSERT_EQ(attend_batcher_submit(batcher.get(), &request, nullptr, nullptr), ATTEND_OK);
  ASSERT_EQ(attend_batcher_serve_waiting(batcher.get(), nullptr, nullptr), ATTEND_OK);
  attend_answer answer = ATTEND_ANSWER_INIT;
  ASSERT_EQ(attend_pending_wait(pending, &answer, nullptr), ATTEND_OK);
  ASSERT_NE(answer.telemetry, nullptr);
  EXPECT_EQ(answer.telemetry->num_tokens, answer.batch_tokens);
  EXPECT_EQ(answer.telemetry->queue_ns, answer.queued_us * 1000);
  EXPECT_GT(answer.telemetry->work.linear_ns, 0);
  EXPECT_EQ(watched.tokens, answer.batch_tokens);
  EXPECT_GE(watched.queue_ns, 0);
}

// A pipeline or generator of a tiny model whose session takes its times, if `on`.
template <typename Handle, typename Options, typename Create>
Handle MakeTimed(Task task, int32_t on, Options options, const Create& create) {
  const CModel model = LoadTiny(TinyModelBytes(task));
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 64;
  session.telemetry = on;
  options.session = &session;
  typename Handle::pointer made = nullptr;
  attend_error error = ATTEND_ERROR_INIT;
  EXPECT_EQ(create(model.get(), &options, &made, &error), ATTEND_OK) << TextOf(error);
  return Handle(made);
}

void ExpectOfTwoTexts(const attend_telemetry* t, int32_t on, int64_t sequences = 2) {
  ASSERT_EQ(t != nullptr, on == 1);
  if (on == 0) return;
  EXPECT_EQ(t->struct_size, sizeof(attend_telemetry));
  EXPECT_GE(t->num_runs, 1);
  EXPECT_GT(t->num_tokens, 2);
  EXPECT_EQ(t->num_sequences, sequences);
  EXPECT_GT(t->encode_ns, 0);
  EXPECT_GT(t->run_ns, 0);
  EXPECT_GT(t->work.linear_ns, 0);
  ASSERT_GE(t->num_segments, 2);
  int64_t linear_ns = 0;
  for (int64_t s = 0; s < t->num_segments; ++s) linear_ns += t->segments[s].linear_ns;
  EXPECT_EQ(linear_ns, t->work.linear_ns);
}

TEST(CApiTrace, TelemetryOfPipelines) {
  const attend_text texts[] = {{"I saw", 5}, {"a saw", 5}};
  const attend_pipeline_options options = ATTEND_PIPELINE_OPTIONS_INIT;
  for (const int32_t on : {0, 1}) {
    const auto tagger = MakeTimed<CTagger>(Task::kTokens, on, options, attend_tagger_create);
    attend_tags tags = ATTEND_TAGS_INIT;
    ASSERT_EQ(attend_tag_batch(tagger.get(), texts, 2, &tags, nullptr), ATTEND_OK);
    ExpectOfTwoTexts(tags.telemetry, on);
    // A program of the header before the field.
    std::memset(static_cast<void*>(&tags.telemetry), 0x5A, sizeof(tags.telemetry));
    tags.struct_size = offsetof(attend_tags, telemetry);
    ASSERT_EQ(attend_tag_batch(tagger.get(), texts, 2, &tags, nullptr), ATTEND_OK);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&tags.telemetry);
    for (size_t i = 0; i < sizeof(tags.telemetry); ++i) EXPECT_EQ(bytes[i], 0x5A);

    const auto classifier =
        MakeTimed<CClassifier>(Task::kSequence, on, options, attend_classifier_create);
    attend_classes classes = ATTEND_CLASSES_INIT;
    ASSERT_EQ(attend_classify_batch(classifier.get(), texts, nullptr, 2, &classes, nullptr),
              ATTEND_OK);
    ExpectOfTwoTexts(classes.telemetry, on);

    const auto embedder =
        MakeTimed<CEmbedder>(Task::kEmbedding, on, options, attend_embedder_create);
    attend_embeddings embeddings = ATTEND_EMBEDDINGS_INIT;
    ASSERT_EQ(attend_embed_batch(embedder.get(), texts, 2, &embeddings, nullptr), ATTEND_OK);
    ExpectOfTwoTexts(embeddings.telemetry, on);

    const auto reranker =
        MakeTimed<CReranker>(Task::kEmbedding, on, options, attend_reranker_create);
    attend_ranking ranking = ATTEND_RANKING_INIT;
    ASSERT_EQ(attend_rank(reranker.get(), texts, texts, 2, &ranking, nullptr), ATTEND_OK);
    ExpectOfTwoTexts(ranking.telemetry, on, 3);
  }
}

TEST(CApiTrace, TelemetryOfAGenerator) {
  const attend_text texts[] = {{"I saw", 5}, {"a saw", 5}};
  attend_generation_settings settings = ATTEND_GENERATION_SETTINGS_INIT;
  settings.max_new_tokens = settings.min_new_tokens = 3;
  attend_generator_options options = ATTEND_GENERATOR_OPTIONS_INIT;
  options.settings = &settings;
  options.max_text_tokens = 16;
  for (const int32_t on : {0, 1}) {
    const auto generator =
        MakeTimed<CGenerator>(Task::kGenerate, on, options, attend_generator_create);
    attend_generations generations = ATTEND_GENERATIONS_INIT;
    ASSERT_EQ(attend_generate_batch(generator.get(), texts, 2, &generations, nullptr), ATTEND_OK);
    ExpectOfTwoTexts(generations.telemetry, on);
    if (on == 0) continue;
    EXPECT_EQ(generations.telemetry->num_runs % 3, 0);
    EXPECT_EQ(generations.telemetry->num_decoder_tokens, generations.telemetry->num_tokens + 2 * 2);
  }
}

// Programs of the header before these fields: what lies behind is nonsense, and nobody looks.
TEST(CApiTrace, StructsOfOlderHeaders) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_session_options options;
  std::memset(static_cast<void*>(&options), 0x5A, sizeof(options));
  const attend_session_options defaults = ATTEND_SESSION_OPTIONS_INIT;
  const size_t before = offsetof(attend_session_options, logger);
  std::memcpy(static_cast<void*>(&options), &defaults, before);
  options.struct_size = before;
  attend_session* made = nullptr;
  ASSERT_EQ(attend_session_create(model.get(), &options, &made, nullptr), ATTEND_OK);
  const CSession session(made);
  attend_output output;
  std::memset(static_cast<void*>(&output), 0x5A, sizeof(output));
  output.struct_size = offsetof(attend_output, telemetry);
  const int32_t ids[] = {1, 2}, offsets[] = {0, 2};
  attend_batch batch = BatchOf(ids, offsets);
  ASSERT_EQ(attend_session_run(session.get(), &batch, &output, nullptr), ATTEND_OK);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&output.telemetry);
  for (size_t i = 0; i < sizeof(output.telemetry); ++i) EXPECT_EQ(bytes[i], 0x5A);
}

}  // namespace
}  // namespace attend::testing
