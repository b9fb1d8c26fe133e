// What Session refuses: batches with one thing wrong, each with its code and a message that names
// the entry, what it is and what is allowed; and that a refusal leaves the Session as it was.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/random_model.h"
#include "tests/testing.h"

namespace attend {
namespace {

constexpr int32_t kMaxLength = 16;
constexpr SessionOptions kOptions = {.num_threads = 1, .max_tokens = 40, .max_sequences = 4};

ModelConfig SmallConfig() {
  ModelConfig config = testing::EncoderConfig(32, 1, 2, 64);
  config.vocab_size = 50;
  config.max_positions = kMaxLength;
  config.max_length = kMaxLength;
  return config;
}

Model MakeModel(const ModelConfig& config) {
  Result<Model> model = testing::RandomModel(config, 5);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return *model;
}

struct OwnedBatch {
  std::vector<int32_t> ids, offsets, types;
  TokenBatch view() const { return {.ids = ids, .offsets = offsets, .type_ids = types}; }
};

OwnedBatch GoodBatch() {
  return {.ids = {3, 49, 0, 7, 7, 12, 31, 8}, .offsets = {0, 3, 4, 8}, .types = {}};
}

std::vector<float> Hidden(Session& session, const TokenBatch& batch) {
  Result<Output> output = session.Run(batch);
  EXPECT_TRUE(output.ok()) << output.status().ToString();
  if (!output.ok()) return {};
  return {output->hidden.begin(), output->hidden.end()};
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

struct BadBatch {
  std::string name;
  OwnedBatch batch;
  ErrorCode code;
  std::vector<std::string> parts;  // of the message: entry, got, allowed
};

void PrintTo(const BadBatch& bad, std::ostream* out) { *out << bad.name; }

std::vector<BadBatch> BadBatches() {
  const auto with = [](auto change) {
    OwnedBatch batch = GoodBatch();
    change(batch);
    return batch;
  };
  const auto dense = [](int32_t sequences, int32_t length) {
    OwnedBatch batch;
    batch.ids.assign(static_cast<size_t>(sequences * length), 1);
    for (int32_t b = 0; b <= sequences; ++b) batch.offsets.push_back(b * length);
    return batch;
  };
  using B = OwnedBatch;
  constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument, kFull = ErrorCode::kCapacity;
  return {
      {"NegativeId", with([](B& b) { b.ids[2] = -1; }), kInvalid, {"ids[2]", "-1", "0 to 49"}},
      {"LeastId", with([](B& b) { b.ids[0] = INT32_MIN; }), kInvalid, {"ids[0]", "-2147483648"}},
      {"IdOfVocabSize", with([](B& b) { b.ids[7] = 50; }), kInvalid, {"ids[7]", "50", "0 to 49"}},
      {"FirstOffset", with([](B& b) { b.offsets[0] = 1; }), kInvalid, {"offsets[0]", "1", "0"}},
      {"NegativeOffset", with([](B& b) { b.offsets[0] = -3; }), kInvalid, {"offsets[0]", "-3"}},
      {"Decreasing", with([](B& b) { b.offsets[2] = 2; }), kInvalid, {"offsets[2]", "2", "3"}},
      {"LastTooSmall", with([](B& b) { b.offsets[3] = 7; }), kInvalid, {"offsets[3]", "7", "8"}},
      {"LastTooLarge", with([](B& b) { b.offsets[3] = 9; }), kInvalid, {"offsets[3]", "9", "8"}},
      {"NoOffsets", with([](B& b) { b.offsets.clear(); }), kInvalid, {"offsets", "0", "2"}},
      {"OneOffset", with([](B& b) { b.offsets = {0}; }), kInvalid, {"offsets", "1", "2"}},
      {"NothingAtAll", B{}, kInvalid, {"offsets", "0", "2"}},
      {"OnlyAnEmptySequence",
       B{.ids = {}, .offsets = {0, 0}, .types = {}},
       kInvalid,
       {"sequence 0", "empty", "one token"}},
      {"EmptySequence", with([](B& b) { b.offsets[2] = 3; }), kInvalid, {"sequence 1", "empty"}},
      {"EmptyLast", with([](B& b) { b.offsets.push_back(8); }), kInvalid, {"sequence 3", "empty"}},
      {"TooManyTokens", dense(4, 11), kFull, {"ids", "44", "40", "max_tokens"}},
      {"TooManySequences", dense(5, 2), kFull, {"offsets", "5", "4", "max_sequences"}},
      {"TooLong", dense(2, kMaxLength + 1), kFull, {"sequence 0", "17", "16"}},
      {"FewTypes",
       with([](B& b) {
         b.types = {0, 1, 0};
       }),
       kInvalid,
       {"type_ids", "3", "8"}},
      {"ManyTypes", with([](B& b) { b.types.resize(9); }), kInvalid, {"type_ids", "9", "8"}},
      {"NegativeType",
       with([](B& b) { b.types = {0, 0, 0, 0, -1, 0, 0, 0}; }),
       kInvalid,
       {"type_ids[4]", "-1", "0 to 1"}},
      {"TypeOfVocabSize",
       with([](B& b) { b.types = {0, 0, 0, 0, 0, 0, 0, 2}; }),
       kInvalid,
       {"type_ids[7]", "2", "0 to 1"}},
  };
}

class BadBatchTest : public ::testing::TestWithParam<BadBatch> {};

TEST_P(BadBatchTest, IsRefusedAndChangesNothing) {
  const Model model = MakeModel(SmallConfig());
  Result<Session> session = Session::Create(model, kOptions);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const OwnedBatch good = GoodBatch();
  const std::vector<float> before = Hidden(*session, good.view());
  const Result<Output> refused = session->Run(GetParam().batch.view());
  ASSERT_FALSE(refused.ok());
  testing::ExpectError(refused.status(), GetParam().code, GetParam().parts);
  ExpectSameBits(Hidden(*session, good.view()), before);
}

INSTANTIATE_TEST_SUITE_P(All, BadBatchTest, ::testing::ValuesIn(BadBatches()),
                         [](const auto& bad) { return bad.param.name; });

TEST(CheckBatch, TheLargestBatchIsTaken) {
  const Model model = MakeModel(SmallConfig());
  Result<Session> session = Session::Create(model, kOptions);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  OwnedBatch batch{.ids = std::vector<int32_t>(40, 49),
                   .offsets = {0, 16, 32, 39, 40},
                   .types = std::vector<int32_t>(40, 1)};
  EXPECT_EQ(Hidden(*session, batch.view()).size(), 40u * 32u);
}

TEST(CheckBatch, EdgesAreRefused) {
  const Model model = MakeModel(SmallConfig());
  Result<Session> session = Session::Create(model, kOptions);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const OwnedBatch good = GoodBatch();
  const std::vector<float> before = Hidden(*session, good.view());
  const Edge edges[] = {{0, 1}};
  const int32_t edge_offsets[] = {0, 1, 1, 1};
  TokenBatch batch = good.view();
  batch.edges = edges;
  batch.edge_offsets = edge_offsets;
  testing::ExpectError(session->Run(batch).status(), ErrorCode::kInvalidArgument, {"edges"});
  batch.edges = {};  // offsets alone say that there are edges, none of them
  testing::ExpectError(session->Run(batch).status(), ErrorCode::kInvalidArgument, {"edges"});
  ExpectSameBits(Hidden(*session, good.view()), before);
}

TEST(CheckBatch, VectorsToATokenModelAreRefused) {
  const Model model = MakeModel(SmallConfig());
  Result<Session> session = Session::Create(model, kOptions);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const OwnedBatch good = GoodBatch();
  const std::vector<float> before = Hidden(*session, good.view());
  const std::vector<float> rows(2 * 32, 0.5f);
  const int32_t offsets[] = {0, 2};
  testing::ExpectError(session->Run(VectorBatch{.rows = rows, .offsets = offsets}).status(),
                       ErrorCode::kInvalidArgument,
                       {"VectorBatch", "token ids", "50", "not vectors"});
  ExpectSameBits(Hidden(*session, good.view()), before);
}

TEST(CheckBatch, AModelWithoutTypesTakesTypeZeroOnly) {
  ModelConfig config = SmallConfig();
  config.type_vocab_size = 0;
  const Model model = MakeModel(config);
  Result<Session> session = Session::Create(model, kOptions);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  OwnedBatch batch = GoodBatch();
  const std::vector<float> before = Hidden(*session, batch.view());
  batch.types.assign(8, 0);
  ExpectSameBits(Hidden(*session, batch.view()), before);
  batch.types[5] = 1;
  testing::ExpectError(session->Run(batch.view()).status(), ErrorCode::kInvalidArgument,
                       {"type_ids[5]", "1", "0 to 0"});
  batch.types.resize(5);
  testing::ExpectError(session->Run(batch.view()).status(), ErrorCode::kInvalidArgument,
                       {"type_ids", "5", "8"});
}

TEST(CheckOptions, OutOfRange) {
  const Model model = MakeModel(SmallConfig());
  const auto expect = [&](const SessionOptions& options, const std::vector<std::string>& parts) {
    testing::ExpectError(Session::Create(model, options).status(), ErrorCode::kInvalidArgument,
                         parts);
    testing::ExpectError(Session::PredictMemoryBytes(model, options).status(),
                         ErrorCode::kInvalidArgument, parts);
  };
  expect({.num_threads = -1}, {"num_threads", "-1", "0 to 1024"});
  expect({.num_threads = 1025}, {"num_threads", "1025", "0 to 1024"});
  expect({.max_tokens = 0}, {"max_tokens", "0", "1 to 4194304"});
  expect({.max_tokens = (1 << 22) + 1}, {"max_tokens", "4194305", "1 to 4194304"});
  expect({.max_sequences = -7}, {"max_sequences", "-7", "1 to 1048576"});
  expect({.max_sequences = (1 << 20) + 1}, {"max_sequences", "1048577", "1 to 1048576"});
  expect({.precision = static_cast<Precision>(4)}, {"precision", "4", "0 to 3"});
  expect({.backend = static_cast<ThreadBackend>(-1)}, {"backend", "-1", "0 to 3"});
  expect({.share = static_cast<Share>(4)}, {"share", "4", "0 to 3"});
}

TEST(CheckOptions, EveryPrecisionIsRun) {
  const Model model = MakeModel(SmallConfig());
  for (const Precision precision :
       {Precision::kFile, Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    EXPECT_TRUE(Session::Create(model, {.precision = precision}).ok());
  }
}

TEST(CheckOptions, EveryShareAndBackendGivesTheSameBits) {
  const Model model = MakeModel(SmallConfig());
  const OwnedBatch batch = GoodBatch();
  Result<Session> plain = Session::Create(model, kOptions);
  ASSERT_TRUE(plain.ok()) << plain.status().ToString();
  const std::vector<float> expected = Hidden(*plain, batch.view());
  const bool has_openmp = plain->Describe().find("by OpenMP") != std::string::npos;
  for (const Share share : {Share::kAuto, Share::kSequences, Share::kRows, Share::kColumns}) {
    for (const ThreadBackend backend : {ThreadBackend::kDefault, ThreadBackend::kOpenMp,
                                        ThreadBackend::kThread, ThreadBackend::kSerial}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(share)) + " " +
                   std::to_string(static_cast<int>(backend)));
      Result<Session> session =
          Session::Create(model, {.num_threads = 2, .backend = backend, .share = share});
      if (backend == ThreadBackend::kOpenMp && !has_openmp) {
        testing::ExpectError(session.status(), ErrorCode::kUnsupported, {"OpenMP"});
        continue;
      }
      ASSERT_TRUE(session.ok()) << session.status().ToString();
      ExpectSameBits(Hidden(*session, batch.view()), expected);
    }
  }
}

TEST(CheckOptions, ZeroThreadsMeansTheAdvice) {
  const Model model = MakeModel(SmallConfig());
  Result<Session> session = Session::Create(model, {.num_threads = 0});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  EXPECT_EQ(session->num_threads(), AdviseThreads().num_threads);
}

}  // namespace
}  // namespace attend
