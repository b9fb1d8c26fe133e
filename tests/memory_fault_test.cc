// Every call of the library with its first, second, ... allocation failing: it must say kCapacity,
// or do without, and work when there is memory again. Nothing may throw or die.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "attend/attention.h"
#include "attend/batcher.h"
#include "attend/text.h"
#include "tests/child.h"
#include "tests/decoder_testing.h"
#include "tests/failing_memory.h"
#include "tests/random_model.h"
#include "tests/tiny_text_model.h"
#include "tools/convert.h"
#include "tools/tokenizer_json.h"

namespace attend::testing {
namespace {

template <typename T>
ErrorCode CodeOf(const Result<T>& result) {
  return result.status().code();
}

// Fails each allocation of `call` in turn (past the first twenty, ever fewer of them) until
// one run comes to its end without. `usual` is what the call gives with memory enough.
void FailEach(const char* name, const std::function<ErrorCode()>& call,
              ErrorCode usual = ErrorCode::kOk) {
  int64_t failed = 0;
  for (int64_t k = 0;; k += 1 + k / 20) {
    ErrorCode code{};
    allocations_left = k;
    try {
      code = call();
    } catch (const std::exception& error) {
      allocations_left = -1;
      FAIL() << name << ", allocation " << k << ": threw " << error.what();
    }
    const bool reached = allocations_left.exchange(-1) < 0;
    if (!reached) {
      EXPECT_EQ(code, usual) << name << " with " << k << " allocations";
      break;
    }
    failed += code == ErrorCode::kCapacity ? 1 : 0;
    EXPECT_TRUE(code == ErrorCode::kCapacity || code == usual)
        << name << ", allocation " << k << ": " << ErrorCodeName(code);
    ASSERT_EQ(call(), usual) << name << ", after a failure of allocation " << k;
  }
  EXPECT_GT(failed, 0) << name << " does not allocate: nothing was tested";
}

Model ModelFor(Task task) { return *Model::FromBytes(TinyModelBytes(task)); }

class MemoryFault : public ::testing::Test {
 protected:
  // attend's own GEMM: what oneDNN does without memory is not attend's to promise.
  static void SetUpTestSuite() {
    const std::vector<std::string> isas = AvailableIsas();
    const bool avx2 = std::find(isas.begin(), isas.end(), "avx2") != isas.end();
    ASSERT_TRUE(LimitIsa(avx2 ? "avx2" : "sse4").ok());
  }
};

TEST_F(MemoryFault, ModelAndSession) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  FailEach("FromBytes", [&] { return CodeOf(Model::FromBytes(bytes)); });
  // Not packed yet: a Model of its own each time.
  FailEach("Create", [&] {
    Result<Model> model = Model::FromBytes(bytes);
    if (!model.ok()) return model.status().code();
    return CodeOf(Session::Create(*model, {.num_threads = 2, .max_tokens = 64}));
  });
  const Model model = ModelFor(Task::kTokens);
  Result<Session> session = Session::Create(model, {.max_tokens = 64});
  ASSERT_TRUE(session.ok());
  const int32_t ids[] = {1, 300}, offsets[] = {0, 2};
  FailEach(
      "a bad batch",
      [&] { return CodeOf(session->Run(TokenBatch{.ids = ids, .offsets = offsets})); },
      ErrorCode::kInvalidArgument);
}

TEST_F(MemoryFault, Tokenizer) {
  const Model model = ModelFor(Task::kTokens);
  FailEach("FromModel", [&] { return CodeOf(Tokenizer::FromModel(model)); });
  Result<Tokenizer> tokenizer = Tokenizer::FromModel(model);
  ASSERT_TRUE(tokenizer.ok());
  FailEach("Encode", [&] { return CodeOf(tokenizer->Encode("Na\xc3\xafve saws, unbelievably")); });
  FailEach("EncodePair", [&] { return CodeOf(tokenizer->EncodePair("one [MASK]", "and two")); });
  FailEach("EncodeInto", [&] {
    Encoding encoding;
    return tokenizer->EncodeInto("I saw a saw", {}, &encoding).code();
  });
  const std::vector<int32_t> ids(60, 100);
  FailEach("Decode", [&] { return CodeOf(tokenizer->Decode(ids)); });
  FailEach(
      "invalid text", [&] { return CodeOf(tokenizer->Encode("\xff")); },
      ErrorCode::kInvalidArgument);
}

TEST_F(MemoryFault, Pipelines) {
  const PipelineOptions options{.session = {.max_tokens = 64}};
  const Model labels = ModelFor(Task::kTokens);
  FailEach("Tagger::Create", [&] { return CodeOf(Tagger::Create(labels, options)); });
  Result<Tagger> tagger = Tagger::Create(labels, options);
  ASSERT_TRUE(tagger.ok());
  std::string text;
  for (int i = 0; i < 100; ++i) text += "I don't ";
  FailEach("Tag", [&] { return CodeOf(tagger->Tag(text)); });
  const std::vector<std::string_view> words = {"I", "saw", "", "unbelievably"};
  FailEach("TagWords", [&] { return CodeOf(tagger->TagWords(words)); });
  Result<Classifier> classifier = Classifier::Create(ModelFor(Task::kSequence), options);
  ASSERT_TRUE(classifier.ok());
  FailEach("Classify", [&] { return CodeOf(classifier->Classify("some text")); });
  FailEach("ClassifyPair", [&] { return CodeOf(classifier->ClassifyPair("some", "text")); });
  Result<Embedder> embedder = Embedder::Create(ModelFor(Task::kEmbedding), options);
  ASSERT_TRUE(embedder.ok());
  FailEach("Embed", [&] { return CodeOf(embedder->Embed("some text")); });
  Result<Reranker> reranker = Reranker::Create(ModelFor(Task::kEmbedding), options);
  ASSERT_TRUE(reranker.ok());
  FailEach("Rank", [&] { return CodeOf(reranker->Rank("query", words)); });
}

TEST_F(MemoryFault, Generator) {
  const Model model = ModelFor(Task::kGenerate);
  const GeneratorOptions options{
      .session = {.max_tokens = 256, .max_sequences = 2},
      .settings = {.num_beams = 2, .max_new_tokens = 4, .eos_token_id = {{7}}},
      .max_text_tokens = 16};
  FailEach("Generator::Create", [&] { return CodeOf(Generator::Create(model, options)); });
  Result<Generator> generator = Generator::Create(model, options);
  ASSERT_TRUE(generator.ok()) << generator.status().ToString();
  // More texts than places, so that rows end and begin between allocations.
  const std::vector<std::string_view> texts = {"some text", "I saw", "a saw", "and more"};
  FailEach("GenerateBatch", [&] { return CodeOf(generator->GenerateBatch(texts)); });
  int beams = 2;
  FailEach("Set", [&] {
    const ErrorCode code = generator->Set({.num_beams = ++beams}).code();
    const int64_t left = allocations_left.exchange(-1);
    // Whether or not there was memory for more beams, what is set works.
    EXPECT_TRUE(generator->Generate("some text").ok());
    allocations_left = left;
    return code;
  });
}

TEST_F(MemoryFault, AttentionMap) {
  const Model model = ModelFor(Task::kTokens);
  FailEach("AttentionMap::Create",
           [&] { return CodeOf(AttentionMap::Create(model, {.max_tokens = 64})); });
}

TEST_F(MemoryFault, Batcher) {
  const Model model = ModelFor(Task::kSequence);
  const BatcherOptions options{.session = {.max_tokens = 64}, .num_workers = 2};
  FailEach("Batcher", [&] { return CodeOf(Batcher::Create(model, options)); });
  // On this thread, so that every allocation counts: of Submit, the worker and the answer.
  BatcherOptions served = options;
  served.start_threads = false;
  Result<Batcher> batcher = Batcher::Create(model, served);
  ASSERT_TRUE(batcher.ok());
  int64_t called = 0, accepted = 0;
  FailEach("a request", [&] {
    BatchRequest request;
    request.text = "a saw, and two more";
    Result<PendingAnswer> pending = batcher->Submit(request);
    if (!pending.ok()) return CodeOf(pending);
    EXPECT_TRUE(batcher->ServeWaiting().ok());
    return CodeOf(pending->Wait());
  });
  FailEach("a request with a function", [&] {
    ErrorCode code = ErrorCode::kInternal;
    BatchRequest request;
    request.text = "a saw";
    request.done = [&](Result<BatchAnswer> answer) { code = CodeOf(answer), ++called; };
    const Result<PendingAnswer> pending = batcher->Submit(std::move(request));
    if (!pending.ok()) return CodeOf(pending);
    ++accepted;
    EXPECT_TRUE(batcher->ServeWaiting().ok());
    return code;
  });
  EXPECT_EQ(called, accepted);
  FailEach(
      "a late request",
      [&] {
        BatchRequest request;
        request.text = "a saw";
        request.deadline_us = 1;
        Result<PendingAnswer> pending = batcher->Submit(request);
        return pending.ok() ? CodeOf(pending->Wait()) : CodeOf(pending);
      },
      ErrorCode::kDeadline);
}

TEST_F(MemoryFault, Convert) {
  TemporaryFolder folder;
  ConvertOptions options;
  options.folder = ATTEND_TEST_DATA "/hf/bert_token_classification";
  options.output = folder / "model.attend";
  FailEach("ConvertFolder", [&] {
    ConvertReport report;
    const ErrorCode code = ConvertFolder(options, &report).code();
    const int64_t left = allocations_left.exchange(-1);  // what follows is the test's
    const bool there = std::filesystem::exists(options.output);
    // Whole or not there, and nothing beside it.
    EXPECT_EQ(there, code == ErrorCode::kOk);
    if (there) std::filesystem::remove(options.output);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    allocations_left = left;
    return code;
  });
}

// What was moved from says so.
TEST_F(MemoryFault, MovedFrom) {
  Model model = ModelFor(Task::kTokens);
  const Model copy = std::move(model);
  EXPECT_EQ(model.info().source, copy.info().source);
  Result<Session> session = Session::Create(model, {.max_tokens = 64});
  ASSERT_TRUE(session.ok());
  Session moved = *std::move(session);
  const int32_t ids[] = {1, 2}, offsets[] = {0, 2};
  const TokenBatch batch{.ids = ids, .offsets = offsets};
  EXPECT_EQ(CodeOf(session->Run(batch)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(session->Run(VectorBatch{})), ErrorCode::kInvalidArgument);
  *session = std::move(moved);
  EXPECT_TRUE(session->Run(batch).ok());
  const PipelineOptions options{.session = {.max_tokens = 64}};
  Result<Tagger> tagger = Tagger::Create(model, options);
  const Tagger tagger_there = *std::move(tagger);
  EXPECT_EQ(CodeOf(tagger->Tag("x")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(tagger->TagWords({})), ErrorCode::kInvalidArgument);
  Result<Classifier> classifier = Classifier::Create(ModelFor(Task::kSequence), options);
  const Classifier classifier_there = *std::move(classifier);
  EXPECT_EQ(CodeOf(classifier->Classify("x")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(classifier->ClassifyPair("x", "y")), ErrorCode::kInvalidArgument);
  Result<Embedder> embedder = Embedder::Create(ModelFor(Task::kEmbedding), options);
  const Embedder embedder_there = *std::move(embedder);
  EXPECT_EQ(CodeOf(embedder->Embed("x")), ErrorCode::kInvalidArgument);
  Result<Reranker> reranker = Reranker::Create(ModelFor(Task::kEmbedding), options);
  const Reranker reranker_there = *std::move(reranker);
  EXPECT_EQ(CodeOf(reranker->Rank("x", {})), ErrorCode::kInvalidArgument);
  Result<Generator> generator = Generator::Create(ModelFor(Task::kGenerate));
  ASSERT_TRUE(generator.ok()) << generator.status().ToString();
  const Generator generator_there = *std::move(generator);
  EXPECT_EQ(CodeOf(generator->Generate("x")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(generator->GenerateIds({})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(generator->Set({}).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace attend::testing
