// The C interface is the C++ one: the same bits, the same errors, in structs that may be smaller or
// larger than this header's. Here: errors, structs, models, sessions, attention.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "attend/attention.h"
#include "tests/c_api_testing.h"
#include "tests/family_batch.h"

namespace attend::testing {
namespace {

// What is written to `out` is what `values` has, and not a byte more.
template <typename T>
bool SameValues(const T* data, int64_t count, std::span<const T> values) {
  return static_cast<size_t>(count) == values.size() &&
         (values.empty() ? data == nullptr
                         : std::memcmp(data, values.data(), values.size_bytes()) == 0);
}

CSession CreateSession(const CModel& model, const attend_session_options* options = nullptr) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_session* session = nullptr;
  EXPECT_EQ(attend_session_create(model.get(), options, &session, &error), ATTEND_OK)
      << TextOf(error);
  return CSession(session);
}

TEST(CApi, NumbersOfStatusesAreThoseOfCpp) {
  for (int code = 0; code <= 10; ++code) {
    EXPECT_STREQ(attend_status_name(static_cast<attend_status>(code)),
                 ErrorCodeName(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(ATTEND_INTERNAL, static_cast<int>(ErrorCode::kInternal));
  EXPECT_STREQ(attend_version(), Version());
}

TEST(CApi, FreeingNullDoesNothing) {
  attend_buffer_free(nullptr);
  attend_model_free(nullptr);
  attend_session_free(nullptr);
  attend_tokenizer_free(nullptr);
  attend_tagger_free(nullptr);
  attend_classifier_free(nullptr);
  attend_embedder_free(nullptr);
  attend_reranker_free(nullptr);
  attend_generator_free(nullptr);
  attend_attention_map_free(nullptr);
}

TEST(CApi, ErrorsSayWhatCppSays) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_model* model = nullptr;
  EXPECT_EQ(attend_model_load("/nowhere/x.attend", &model, &error), ATTEND_NOT_FOUND);
  EXPECT_EQ(model, nullptr);
  const Status want = Model::Load("/nowhere/x.attend").status();
  EXPECT_EQ(error.code, ATTEND_NOT_FOUND);
  EXPECT_EQ(error.message, want.what());
  EXPECT_EQ(error.where, want.where());
  EXPECT_EQ(error.hint, want.hint());
  EXPECT_EQ(attend_model_load("/nowhere/x.attend", &model, nullptr), ATTEND_NOT_FOUND);
  // A success empties it.
  const CModel tiny = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_model_info info = ATTEND_MODEL_INFO_INIT;
  EXPECT_EQ(attend_model_get_info(tiny.get(), &info, &error), ATTEND_OK);
  EXPECT_EQ(error.code, ATTEND_OK);
  EXPECT_STREQ(error.message, "");
}

TEST(CApi, LongTextsOfErrorsAreCutBetweenCharacters) {
  // Two bytes a character, at both parities.
  for (const char* start : {"/", "/x"}) {
    std::string path = start;
    while (path.size() < 400) path += "\xc3\xa9";
    attend_error error = ATTEND_ERROR_INIT;
    attend_model* model = nullptr;
    EXPECT_NE(attend_model_load(path.c_str(), &model, &error), ATTEND_OK);
    const std::string where = error.where;
    EXPECT_LT(where.size(), sizeof(error.where));
    EXPECT_GE(where.size(), sizeof(error.where) - 3);
    ASSERT_EQ(where.substr(where.size() - 3), "...");
    EXPECT_EQ(path.compare(0, where.size() - 3, where, 0, where.size() - 3), 0);
    EXPECT_EQ(where[where.size() - 4], '\xa9');  // the second byte of its character
  }
}

// Errors of an older, smaller header: what is behind struct_size is not touched.
TEST(CApi, ErrorsFillNoMoreThanTheirSize) {
  for (const size_t size : {size_t{0}, size_t{4}, sizeof(size_t), offsetof(attend_error, message),
                            offsetof(attend_error, where) - 1, offsetof(attend_error, where),
                            offsetof(attend_error, hint), sizeof(attend_error),
                            sizeof(attend_error) + 8, std::numeric_limits<size_t>::max()}) {
    struct {
      attend_error error;
      char behind[16];
    } guarded;
    std::memset(static_cast<void*>(&guarded), 0x5A, sizeof(guarded));
    guarded.error.struct_size = size;
    attend_model* model = nullptr;
    EXPECT_EQ(attend_model_load("/nowhere/x.attend", &model, &guarded.error), ATTEND_NOT_FOUND);
    EXPECT_EQ(guarded.error.struct_size, size);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&guarded);
    const size_t known = size > sizeof(attend_error) + 8 ? sizeof(size_t) : size;
    for (size_t i = std::max(known, sizeof(size_t)); i < sizeof(guarded); ++i) {
      if (bytes[i] != 0x5A) {
        EXPECT_LT(i, known) << "byte " << i << " with struct_size " << size;
        break;
      }
    }
    if (size >= offsetof(attend_error, where) && size <= sizeof(attend_error) + 8) {
      EXPECT_EQ(guarded.error.code, ATTEND_NOT_FOUND);
      EXPECT_NE(std::string(guarded.error.message).find("No such file"), std::string::npos);
    }
  }
}

TEST(CApi, SmallerOptionsTakeDefaultsForTheRest) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_error error = ATTEND_ERROR_INIT;
  // Only num_threads is there; what lies behind is nonsense.
  attend_session_options options;
  std::memset(static_cast<void*>(&options), 0x5A, sizeof(options));
  options.struct_size = offsetof(attend_session_options, max_tokens);
  options.num_threads = 2;
  const CSession session = CreateSession(model, &options);
  ASSERT_NE(session, nullptr);
  attend_session_info info = ATTEND_SESSION_INFO_INIT;
  ASSERT_EQ(attend_session_get_info(session.get(), &info, &error), ATTEND_OK);
  EXPECT_EQ(info.num_threads, 2);
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_NE(std::string(info.description).find("attention"), std::string::npos);
}

TEST(CApi, LargerOptionsMustBeZeroBeyondWhatIsKnown) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  struct {
    attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
    int64_t later = 0;
  } newer;
  newer.options.struct_size = sizeof(newer);
  newer.options.max_tokens = 64;
  EXPECT_NE(CreateSession(model, &newer.options), nullptr);
  newer.later = 1;
  attend_error error = ATTEND_ERROR_INIT;
  attend_session* session = nullptr;
  EXPECT_EQ(attend_session_create(model.get(), &newer.options, &session, &error),
            ATTEND_UNSUPPORTED);
  EXPECT_EQ(session, nullptr);
  EXPECT_STREQ(error.where, "attend_session_options");
  // Sizes that were never set.
  for (const size_t size : {size_t{0}, sizeof(size_t) - 1, std::numeric_limits<size_t>::max()}) {
    newer.options.struct_size = size;
    EXPECT_EQ(attend_session_create(model.get(), &newer.options, &session, &error),
              ATTEND_INVALID_ARGUMENT)
        << size;
  }
}

TEST(CApi, ResultsFillNoMoreThanTheirSize) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_error error = ATTEND_ERROR_INIT;
  attend_model_info whole = ATTEND_MODEL_INFO_INIT;
  ASSERT_EQ(attend_model_get_info(model.get(), &whole, &error), ATTEND_OK);
  for (size_t size = sizeof(size_t); size <= sizeof(whole) + 24; size += 8) {
    std::vector<unsigned char> memory(sizeof(whole) + 32, 0x5A);
    auto* info = reinterpret_cast<attend_model_info*>(memory.data());
    info->struct_size = size;
    ASSERT_EQ(attend_model_get_info(model.get(), info, &error), ATTEND_OK) << size;
    EXPECT_EQ(info->struct_size, size);
    const size_t filled = std::min(size, sizeof(whole));
    EXPECT_EQ(
        std::memcmp(memory.data() + 8, reinterpret_cast<unsigned char*>(&whole) + 8, filled - 8),
        0);
    for (size_t i = filled; i < memory.size(); ++i) {
      EXPECT_EQ(memory[i], i < size ? 0 : 0x5A) << "byte " << i << " of " << size;
    }
  }
}

TEST(CApi, ModelInfo) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  const CModel model = LoadTiny(bytes);
  attend_error error = ATTEND_ERROR_INIT;
  attend_model_info info = ATTEND_MODEL_INFO_INIT;
  ASSERT_EQ(attend_model_get_info(model.get(), &info, &error), ATTEND_OK);
  const Result<Model> same = Model::FromBytes(bytes);
  const ModelInfo& want = same->info();
  EXPECT_EQ(info.architecture, want.architecture);
  EXPECT_EQ(info.source, want.source);
  EXPECT_EQ(info.tokenizer, want.tokenizer);
  EXPECT_EQ(info.pooling, want.pooling);
  ASSERT_EQ(info.num_labels, 3);
  EXPECT_STREQ(info.labels[2], "c");
  EXPECT_EQ(info.task, ATTEND_TASK_TOKENS);
  EXPECT_EQ(info.hidden_size, 32);
  EXPECT_EQ(info.vocab_size, 300);
  EXPECT_EQ(info.max_length, 64);
  EXPECT_EQ(info.num_parameters, want.num_parameters);
  EXPECT_EQ(info.file_bytes, bytes.size());
}

TEST(CApi, SessionsGiveTheBitsOfCpp) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  CModel model = LoadTiny(bytes);
  attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
  options.max_tokens = 64;
  const CSession session = CreateSession(model, &options);
  model.reset();  // the session keeps what it needs
  const std::vector<int32_t> ids = {1, 5, 7, 9, 2, 4, 8}, offsets = {0, 4, 7};
  const std::vector<int32_t> types = {0, 0, 1, 1, 0, 1, 1};
  attend_batch batch = BatchOf(ids, offsets);
  batch.type_ids = types.data();
  attend_error error = ATTEND_ERROR_INIT;
  attend_output output = ATTEND_OUTPUT_INIT;
  ASSERT_EQ(attend_session_run(session.get(), &batch, &output, &error), ATTEND_OK) << TextOf(error);
  const Result<Model> same = Model::FromBytes(bytes);
  Result<Session> twin = Session::Create(*same, {.max_tokens = 64});
  const Result<Output> want =
      twin->Run(TokenBatch{.ids = ids, .offsets = offsets, .type_ids = types});
  ASSERT_TRUE(want.ok());
  EXPECT_TRUE(SameValues(output.hidden, output.num_hidden, want->hidden));
  EXPECT_TRUE(SameValues(output.logits, output.num_logits, want->logits));
  EXPECT_TRUE(SameValues(output.pooled, output.num_pooled, want->pooled));
  EXPECT_EQ(output.share, static_cast<int32_t>(want->share));
  size_t predicted = 0;
  const CModel again = LoadTiny(bytes);
  ASSERT_EQ(attend_session_predict_memory(again.get(), &options, &predicted, &error), ATTEND_OK);
  EXPECT_EQ(predicted, *Session::PredictMemoryBytes(*Model::FromBytes(bytes), {.max_tokens = 64}));
}

TEST(CApi, BadBatchesAreNamed) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  const CSession session = CreateSession(model);
  const std::vector<int32_t> ids = {1, 2, 300}, offsets = {0, 3};
  const float rows[] = {1, 2, 3};
  attend_error error = ATTEND_ERROR_INIT;
  attend_output output = ATTEND_OUTPUT_INIT;
  const auto run = [&](const attend_batch& batch) {
    return attend_session_run(session.get(), &batch, &output, &error);
  };
  attend_batch batch = BatchOf(ids, offsets);
  EXPECT_EQ(run(batch), ATTEND_INVALID_ARGUMENT);
  EXPECT_STREQ(error.where, "ids[2]");
  batch.num_tokens = -1;
  EXPECT_EQ(run(batch), ATTEND_INVALID_ARGUMENT);
  EXPECT_STREQ(error.where, "ids");
  batch = BatchOf(ids, offsets);
  batch.rows = rows;
  EXPECT_EQ(run(batch), ATTEND_INVALID_ARGUMENT);
  batch.ids = nullptr;  // vectors, which this model does not take
  EXPECT_EQ(run(batch), ATTEND_INVALID_ARGUMENT);
  batch = BatchOf(ids, offsets);
  batch.offsets = nullptr;
  EXPECT_EQ(run(batch), ATTEND_INVALID_ARGUMENT);
  EXPECT_STREQ(error.where, "offsets");
  batch = BatchOf(ids, offsets);
  batch.num_sequences = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(run(batch), ATTEND_CAPACITY);
  batch = ATTEND_BATCH_INIT;
  EXPECT_EQ(run(batch), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_session_run(session.get(), nullptr, &output, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_session_run(session.get(), &batch, nullptr, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_session_run(nullptr, &batch, &output, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_STREQ(error.where, "session");
  // And it still works.
  const std::vector<int32_t> good = {1, 2, 3};
  EXPECT_EQ(run(BatchOf(good, offsets)), ATTEND_OK);
  // Options out of their range, with the number that was given.
  attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
  options.num_threads = int64_t{1} << 40;
  attend_session* none = nullptr;
  EXPECT_EQ(attend_session_create(model.get(), &options, &none, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("1099511627776"), std::string::npos) << error.message;
  options = ATTEND_SESSION_OPTIONS_INIT;
  options.backend = 4;
  EXPECT_EQ(attend_session_create(model.get(), &options, &none, &error), ATTEND_INVALID_ARGUMENT);
}

TEST(CApi, VectorsAndEdges) {
  ModelConfig config = EncoderConfig(32, 1, 2, 64);
  config.vocab_size = 0;
  config.type_vocab_size = 0;
  config.input_size = 5;
  config.edges = true;
  config.position = Position::kNone;
  config.max_positions = 0;
  const Result<std::vector<std::byte>> bytes = RandomModelBytes(config, 3);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const CModel model = LoadTiny(*bytes);
  const CSession session = CreateSession(model);
  const FamilySequence sequence = RandomSequence(config, 6, 1);
  const std::vector<int32_t> offsets = {0, 6};
  const std::vector<int32_t> edge_offsets = {0, static_cast<int32_t>(sequence.edges.size())};
  std::vector<attend_edge> edges;
  for (const Edge& edge : sequence.edges) edges.push_back({edge.i, edge.j});
  attend_batch batch = ATTEND_BATCH_INIT;
  batch.rows = sequence.rows.data();
  batch.num_tokens = 6;
  batch.offsets = offsets.data();
  batch.num_sequences = 1;
  batch.edges = edges.data();
  batch.num_edges = static_cast<int64_t>(edges.size());
  batch.edge_offsets = edge_offsets.data();
  attend_error error = ATTEND_ERROR_INIT;
  attend_output output = ATTEND_OUTPUT_INIT;
  ASSERT_EQ(attend_session_run(session.get(), &batch, &output, &error), ATTEND_OK) << TextOf(error);
  Result<Session> twin = Session::Create(*Model::FromBytes(*bytes));
  const Result<Output> want = twin->Run(VectorBatch{.rows = sequence.rows,
                                                    .offsets = offsets,
                                                    .edges = sequence.edges,
                                                    .edge_offsets = edge_offsets});
  ASSERT_TRUE(want.ok()) << want.status().ToString();
  EXPECT_TRUE(SameValues(output.hidden, output.num_hidden, want->hidden));
  batch.edge_offsets = nullptr;
  EXPECT_EQ(attend_session_run(session.get(), &batch, &output, &error), ATTEND_INVALID_ARGUMENT);
}

TEST(CApi, DecoderIds) {
  ModelConfig config = DecoderConfig();
  const Result<std::vector<std::byte>> bytes = RandomModelBytes(config, 5);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const CModel model = LoadTiny(*bytes);
  attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
  options.max_tokens = 32;
  const CSession session = CreateSession(model, &options);
  const std::vector<int32_t> ids = {3, 1, 4}, offsets = {0, 3};
  const attend_batch batch = BatchOf(ids, offsets);
  attend_error error = ATTEND_ERROR_INIT;
  attend_output output = ATTEND_OUTPUT_INIT;
  ASSERT_EQ(attend_session_run(session.get(), &batch, &output, &error), ATTEND_OK) << TextOf(error);
  Result<Session> twin = Session::Create(*Model::FromBytes(*bytes), {.max_tokens = 32});
  const Result<Output> want = twin->Run(TokenBatch{.ids = ids, .offsets = offsets});
  ASSERT_TRUE(want.ok());
  EXPECT_TRUE(SameValues(output.logits, output.num_logits, want->logits));
}

// Threads of C: each task on one of its own; how many ran is counted.
struct ThreadsOfC {
  std::atomic<int> tasks{0};
  static void Run(void* user, int n, void (*task)(void* argument, int index), void* argument) {
    std::vector<std::thread> threads;
    for (int i = 0; i < n; ++i) threads.emplace_back(task, argument, i);
    for (std::thread& thread : threads) thread.join();
    static_cast<ThreadsOfC*>(user)->tasks += n;
  }
  static int Concurrency(void*) { return 3; }
};

TEST(CApi, ExecutorCallbacks) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  const CModel model = LoadTiny(bytes);
  ThreadsOfC threads;
  const std::vector<int32_t> ids(60, 9), offsets = {0, 20, 40, 60};
  CSession session;
  {
    attend_executor executor = ATTEND_EXECUTOR_INIT;  // copied: it ends here
    executor.user = &threads;
    executor.run = ThreadsOfC::Run;
    executor.concurrency = ThreadsOfC::Concurrency;
    attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
    options.num_threads = 3;
    options.share = ATTEND_SHARE_SEQUENCES;
    options.executor = &executor;
    session = CreateSession(model, &options);
    executor.run = nullptr;
    attend_session* none = nullptr;
    EXPECT_EQ(attend_session_create(model.get(), &options, &none, nullptr),
              ATTEND_INVALID_ARGUMENT);
  }
  const attend_batch batch = BatchOf(ids, offsets);
  attend_error error = ATTEND_ERROR_INIT;
  attend_output output = ATTEND_OUTPUT_INIT;
  ASSERT_EQ(attend_session_run(session.get(), &batch, &output, &error), ATTEND_OK) << TextOf(error);
  EXPECT_EQ(threads.tasks, 3);
  const CSession alone = CreateSession(model);
  attend_output want = ATTEND_OUTPUT_INIT;
  ASSERT_EQ(attend_session_run(alone.get(), &batch, &want, &error), ATTEND_OK);
  EXPECT_TRUE(SameValues(output.logits, output.num_logits,
                         std::span(want.logits, static_cast<size_t>(want.num_logits))));
}

TEST(CApi, AttentionWeights) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  const CModel model = LoadTiny(bytes);
  attend_error error = ATTEND_ERROR_INIT;
  attend_attention_map* made = nullptr;
  ASSERT_EQ(attend_attention_map_create(model.get(), nullptr, &made, &error), ATTEND_OK);
  const CAttentionMap map(made);
  const std::vector<int32_t> ids = {1, 5, 7}, offsets = {0, 3};
  const attend_batch batch = BatchOf(ids, offsets);
  attend_attention attention = ATTEND_ATTENTION_INIT;
  ASSERT_EQ(attend_attention_map_run(map.get(), &batch, &attention, &error), ATTEND_OK);
  EXPECT_EQ(attention.self.layers, 1);
  EXPECT_EQ(attention.self.heads, 2);
  EXPECT_EQ(attention.self.queries, 3);
  EXPECT_EQ(attention.self.keys, 3);
  EXPECT_EQ(attention.cross.values, nullptr);
  Result<AttentionMap> twin = AttentionMap::Create(*Model::FromBytes(bytes));
  const Result<AttentionRun> want = twin->Run(TokenBatch{.ids = ids, .offsets = offsets});
  ASSERT_TRUE(want.ok());
  EXPECT_TRUE(SameValues(attention.self.values, 18, want->self.values));
}

TEST(CApi, Machine) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_buffer* made = nullptr;
  ASSERT_EQ(attend_buffer_create(&made, &error), ATTEND_OK);
  const CBuffer buffer(made);
  attend_machine machine = ATTEND_MACHINE_INIT;
  ASSERT_EQ(attend_machine_get(buffer.get(), &machine, &error), ATTEND_OK);
  ASSERT_EQ(static_cast<size_t>(machine.num_isas), AvailableIsas().size());
  EXPECT_STREQ(machine.isas[0], "sse4");
  EXPECT_EQ(machine.isa, CurrentIsa());
  EXPECT_EQ(machine.num_threads, AdviseThreads().num_threads);
  EXPECT_EQ(machine.threads_rule, AdviseThreads().reason);
  EXPECT_EQ(machine.libraries, LibraryVersions());
  EXPECT_EQ(attend_limit_isa("sse9", &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_limit_isa(nullptr, &error), ATTEND_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace attend::testing
