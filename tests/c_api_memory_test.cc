// The C interface with its first, second, ... allocation failing: every one of loading, creating
// and the first run is an error, nothing is leaked, and the next try works.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/c_api_testing.h"
#include "tests/child.h"
#include "tests/failing_memory.h"

namespace attend::testing {
namespace {

// Fails each allocation of `call` in turn until one run comes to its end without. Whatever `call`
// makes it frees.
void FailEach(const char* name, const std::function<attend_status(attend_error*)>& call) {
  attend_error error = ATTEND_ERROR_INIT;
  // What is made once, the memory of exceptions too, before anything is counted.
  for (const int64_t k : {0, 1, -1}) {
    allocations_left = k;
    const attend_status status = call(&error);
    allocations_left = -1;
    ASSERT_EQ(status, k < 0 ? ATTEND_OK : ATTEND_CAPACITY) << name << ": " << TextOf(error);
  }
  const size_t in_use = BytesInUse();
  int64_t errors = 0, done_without = 0;
  for (int64_t k = 0;; ++k) {
    error = ATTEND_ERROR_INIT;
    allocations_left = k;
    const attend_status status = call(&error);
    const bool reached = allocations_left.exchange(-1) < 0;
    // Any piece that is lost is larger than what libc puts aside for itself.
    ASSERT_LT(BytesInUse(), in_use + kLeastBytes)
        << name << " leaks when allocation " << k << " fails";
    if (!reached) {
      EXPECT_EQ(status, ATTEND_OK) << name << " with " << k << " allocations";
      break;
    }
    (status == ATTEND_OK ? done_without : errors) += 1;
    if (status != ATTEND_OK) {
      ASSERT_EQ(status, ATTEND_CAPACITY) << name << ", allocation " << k << ": " << TextOf(error);
      ASSERT_EQ(error.code, ATTEND_CAPACITY);
      ASSERT_NE(std::string(error.message), "");
    }
    ASSERT_EQ(call(&error), ATTEND_OK)
        << name << ", after a failure of allocation " << k << ": " << TextOf(error);
    ASSERT_LT(BytesInUse(), in_use + kLeastBytes)
        << name << ", after a failure of allocation " << k;
  }
  EXPECT_GT(errors, 0) << name << " does not allocate: nothing was tested";
  // What can be done without, a request for huge pages or a hint in an error, is rare.
  EXPECT_LE(done_without, errors / 20) << name;
  std::printf("%s: %d allocations failed, %d were done without\n", name, static_cast<int>(errors),
              static_cast<int>(done_without));
}

class CApiMemory : public ::testing::Test {
 protected:
  // attend's own GEMM: what oneDNN does without memory is not attend's to promise.
  static void SetUpTestSuite() {
    const std::vector<std::string> isas = AvailableIsas();
    const bool avx2 = std::find(isas.begin(), isas.end(), "avx2") != isas.end();
    ASSERT_EQ(attend_limit_isa(avx2 ? "avx2" : "sse4", nullptr), ATTEND_OK);
  }
};

TEST_F(CApiMemory, LoadCreateAndFirstRun) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  TemporaryFolder folder;
  const std::string path =
      folder.Write("model.attend", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const int32_t ids[] = {1, 5, 7, 9, 2}, offsets[] = {0, 3, 5};
  attend_batch batch = BatchOf(ids, offsets);
  attend_logger logger = ATTEND_LOGGER_INIT;
  logger.log = [](void*, int32_t, int32_t, const char*, size_t) {};
  attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
  options.max_tokens = 64;
  options.telemetry = 1;
  options.logger = &logger;
  float first = 0;
  for (const int32_t mode : {ATTEND_LOAD_MAP, ATTEND_LOAD_READ}) {
    attend_load_options load = ATTEND_LOAD_OPTIONS_INIT;
    load.mode = mode;
    load.logger = &logger;
    FailEach(mode == ATTEND_LOAD_MAP ? "mapped" : "read", [&](attend_error* error) {
      attend_model* model = nullptr;
      attend_session* session = nullptr;
      attend_output output = ATTEND_OUTPUT_INIT;
      attend_status status = attend_model_load_with(path.c_str(), &load, &model, error);
      if (status == ATTEND_OK) status = attend_session_create(model, &options, &session, error);
      if (status == ATTEND_OK) status = attend_session_run(session, &batch, &output, error);
      if (status == ATTEND_OK) {
        if (first == 0) first = output.logits[0];
        EXPECT_EQ(output.logits[0], first);
      } else {
        EXPECT_EQ(output.logits, nullptr);
      }
      attend_session_free(session);
      attend_model_free(model);
      return status;
    });
  }
}

TEST_F(CApiMemory, Taggers) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 64;
  session.telemetry = 1;
  attend_pipeline_options options = ATTEND_PIPELINE_OPTIONS_INIT;
  options.session = &session;
  FailEach("tagger", [&](attend_error* error) {
    attend_model* model = nullptr;
    attend_tagger* tagger = nullptr;
    attend_tags tags = ATTEND_TAGS_INIT;
    attend_status status = attend_model_from_bytes(bytes.data(), bytes.size(), &model, error);
    if (status == ATTEND_OK) status = attend_tagger_create(model, &options, &tagger, error);
    if (status == ATTEND_OK) status = attend_tag(tagger, "I saw a saw", 11, &tags, error);
    EXPECT_EQ(tags.num_words, status == ATTEND_OK ? 4 : 0);
    attend_tagger_free(tagger);
    attend_model_free(model);
    return status;
  });
}

TEST_F(CApiMemory, ClassifiersEmbeddersRerankers) {
  const CModel classes = LoadTiny(TinyModelBytes(Task::kSequence));
  const CModel vectors = LoadTiny(TinyModelBytes(Task::kEmbedding));
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 64;
  attend_pipeline_options options = ATTEND_PIPELINE_OPTIONS_INIT;
  options.session = &session;
  const attend_text texts[] = {{"one", 3}, {"and two", 7}};
  FailEach("classifier", [&](attend_error* error) {
    attend_classifier* classifier = nullptr;
    attend_classes out = ATTEND_CLASSES_INIT;
    attend_status status = attend_classifier_create(classes.get(), &options, &classifier, error);
    if (status == ATTEND_OK) {
      status = attend_classify_batch(classifier, texts, texts, 2, &out, error);
    }
    attend_classifier_free(classifier);
    return status;
  });
  FailEach("embedder", [&](attend_error* error) {
    attend_embedder* embedder = nullptr;
    attend_embeddings out = ATTEND_EMBEDDINGS_INIT;
    attend_status status = attend_embedder_create(vectors.get(), &options, &embedder, error);
    if (status == ATTEND_OK) status = attend_embed_batch(embedder, texts, 2, &out, error);
    attend_embedder_free(embedder);
    return status;
  });
  FailEach("reranker", [&](attend_error* error) {
    attend_reranker* reranker = nullptr;
    attend_ranking out = ATTEND_RANKING_INIT;
    attend_status status = attend_reranker_create(vectors.get(), &options, &reranker, error);
    if (status == ATTEND_OK) status = attend_rank(reranker, texts, texts, 2, &out, error);
    attend_reranker_free(reranker);
    return status;
  });
}

TEST_F(CApiMemory, Generators) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kGenerate));
  const int32_t ends[] = {7};
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 128;
  session.max_sequences = 1;
  attend_generation_settings settings = ATTEND_GENERATION_SETTINGS_INIT;
  settings.num_beams = 2;
  settings.max_new_tokens = 3;
  settings.eos_token_id = {ends, 1};
  attend_generator_options options = ATTEND_GENERATOR_OPTIONS_INIT;
  options.session = &session;
  options.settings = &settings;
  options.max_text_tokens = 16;
  FailEach("generator", [&](attend_error* error) {
    attend_generator* generator = nullptr;
    attend_generations out = ATTEND_GENERATIONS_INIT;
    attend_generation_settings used = ATTEND_GENERATION_SETTINGS_INIT;
    attend_status status = attend_generator_create(model.get(), &options, &generator, error);
    if (status == ATTEND_OK) status = attend_generate(generator, "some text", 9, &out, error);
    if (status == ATTEND_OK) status = attend_generator_get(generator, &used, error);
    attend_generator_free(generator);
    return status;
  });
}

// Served by this thread, so that the allocations are the same each time.
TEST_F(CApiMemory, Batchers) {
  const CModel model = LoadTiny(TinyModelBytes(Task::kTokens));
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 64;
  attend_batcher_options options = ATTEND_BATCHER_OPTIONS_INIT;
  options.session = &session;
  options.num_workers = 1;
  options.no_threads = 1;
  const int32_t ids[] = {1, 5, 7};
  attend_request request = ATTEND_REQUEST_INIT;
  request.ids = ids;
  request.num_tokens = 3;
  FailEach("batcher", [&](attend_error* error) {
    attend_batcher* batcher = nullptr;
    attend_pending* pending = nullptr;
    attend_answer answer = ATTEND_ANSWER_INIT;
    attend_status status = attend_batcher_create(model.get(), &options, &batcher, error);
    if (status == ATTEND_OK) status = attend_batcher_submit(batcher, &request, &pending, error);
    if (status == ATTEND_OK) status = attend_batcher_serve_waiting(batcher, nullptr, error);
    if (status == ATTEND_OK) status = attend_pending_wait(pending, &answer, error);
    attend_pending_free(pending);
    attend_batcher_free(batcher);
    return status;
  });
}

TEST_F(CApiMemory, TokenizersAndMachine) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  FailEach("tokenizer", [&](attend_error* error) {
    attend_tokenizer* tokenizer = nullptr;
    attend_buffer* buffer = nullptr;
    attend_tokens tokens = ATTEND_TOKENS_INIT;
    attend_text decoded = {nullptr, 0};
    const attend_text text = {"Na\xc3\xafve saws, unbelievably", 25};
    const attend_text pair = {"and more", 8};
    attend_status status =
        attend_tokenizer_from_bytes(bytes.data(), bytes.size(), &tokenizer, error);
    if (status == ATTEND_OK) status = attend_buffer_create(&buffer, error);
    for (const attend_text* second : {static_cast<const attend_text*>(nullptr), &pair}) {
      if (status != ATTEND_OK) break;
      status = attend_tokenizer_encode(tokenizer, &text, second, nullptr, buffer, &tokens, error);
    }
    if (status == ATTEND_OK) {
      status = attend_tokenizer_decode(tokenizer, tokens.ids, tokens.num_tokens, 1, buffer,
                                       &decoded, error);
    }
    attend_buffer_free(buffer);
    attend_tokenizer_free(tokenizer);
    return status;
  });
  FailEach("machine", [&](attend_error* error) {
    attend_buffer* buffer = nullptr;
    attend_machine machine = ATTEND_MACHINE_INIT;
    attend_status status = attend_buffer_create(&buffer, error);
    if (status == ATTEND_OK) status = attend_machine_get(buffer, &machine, error);
    attend_buffer_free(buffer);
    return status;
  });
}

}  // namespace
}  // namespace attend::testing
