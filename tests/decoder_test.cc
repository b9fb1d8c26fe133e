// Decoding: whatever rows do beside each other, each gives the bits of its own tokens; nothing is
// allocated; the work of a step grows with what is cached and no faster; errors change nothing.
#include "engine/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/decoder_testing.h"
#include "tests/isa_child.h"

namespace attend {
namespace {

using testing::RandomIds;
using testing::TeacherForced;

struct Row {
  std::vector<int32_t> source, ids;
};

// Rows that start, fork, move and end at random; the logits of every row after every step are
// compared with those of a Session that is given its tokens alone.
class RandomDecoding {
 public:
  RandomDecoding(const Model& model, const DecodeOptions& options, uint32_t seed)
      : model_(model),
        teacher_(model),
        session_(DecodeSession::Create(model, options)),
        max_rows_(options.max_rows),
        random_(seed) {
    EXPECT_TRUE(session_.ok()) << session_.status().ToString();
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      if (rows_.empty() || (Free() > 0 && random_() % 6 == 0)) {
        Start();
      } else {
        Step();
      }
    }
  }
  int64_t compared() const { return compared_; }

 private:
  size_t Free() const { return static_cast<size_t>(max_rows_) - rows_.size(); }

  void Start() {
    std::vector<int32_t> names, ids, offsets{0}, sources, source_offsets{0};
    for (int32_t row = 0; row < max_rows_ && names.size() < 3; ++row) {
      if (rows_.contains(row) || random_() % 2 == 0) continue;
      names.push_back(row);
      Row& one = rows_[row];
      const int64_t vocab = model_.info().vocab_size;
      one.ids = RandomIds(random_, 1 + random_() % 40, vocab);
      if (session_->has_encoder()) one.source = RandomIds(random_, 1 + random_() % 50, vocab);
      ids.insert(ids.end(), one.ids.begin(), one.ids.end());
      offsets.push_back(static_cast<int32_t>(ids.size()));
      sources.insert(sources.end(), one.source.begin(), one.source.end());
      source_offsets.push_back(static_cast<int32_t>(sources.size()));
    }
    DecodeStart start{.rows = names, .ids = ids, .offsets = offsets};
    if (session_->has_encoder()) {
      start.source_ids = sources;
      start.source_offsets = source_offsets;
    }
    Compare(session_->Start(start), names);
  }

  void Step() {
    std::vector<int32_t> alive, names(static_cast<size_t>(max_rows_)), parents, ids;
    for (const auto& [row, one] : rows_) {
      if (one.ids.size() < 70) alive.push_back(row);
    }
    std::iota(names.begin(), names.end(), 0);
    std::shuffle(names.begin(), names.end(), random_);
    names.resize(alive.empty() ? 0 : random_() % (names.size() + 1));
    std::map<int32_t, Row> after;
    for (const int32_t row : names) {
      parents.push_back(alive[random_() % alive.size()]);
      ids.push_back(RandomIds(random_, 1, model_.info().vocab_size)[0]);
      after[row] = rows_[parents.back()];
      after[row].ids.push_back(ids.back());
    }
    rows_ = std::move(after);
    Compare(session_->Step(names, parents, ids), names);
  }

  void Compare(const Result<std::span<const float>>& got, const std::vector<int32_t>& names) {
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    const auto vocab = static_cast<size_t>(session_->vocab_size());
    ASSERT_EQ(got->size(), names.size() * vocab);
    for (size_t i = 0; i < names.size(); ++i) {
      const Row& row = rows_.at(names[i]);
      ASSERT_TRUE(
          testing::SameFloats(got->subspan(i * vocab, vocab), teacher_.Last(row.source, row.ids)))
          << "row " << names[i] << " of " << row.ids.size() << " tokens";
      ++compared_;
    }
  }

  const Model& model_;
  TeacherForced teacher_;
  Result<DecodeSession> session_;
  int32_t max_rows_;
  std::mt19937 random_;
  std::map<int32_t, Row> rows_;
  int64_t compared_ = 0;
};

std::vector<ModelConfig> Configs() {
  ModelConfig learned = testing::DecoderConfig();
  learned.position = Position::kLearned;
  learned.max_positions = 210;
  learned.position_offset = 3;
  learned.qk_norm = false;
  learned.num_kv_heads = learned.num_heads;
  learned.norm = NormPlace::kPost;
  learned.norm_type = NormType::kLayerNorm;
  learned.activation = Activation::kGelu;
  ModelConfig halves = testing::EncoderDecoderConfig();
  halves.position = Position::kSinusoidalHalves;
  halves.max_length = 200;
  halves.score = Score::kScaledDot;
  halves.score_bias = ScoreBias::kNone;
  halves.norm = NormPlace::kPost;
  halves.embedding_scale = 7.7;
  halves.tied_head = true;
  return {testing::DecoderConfig(), testing::EncoderDecoderConfig(), learned, halves};
}

// Heads that fill tiles, of both architectures.
std::vector<ModelConfig> TileConfigs() {
  ModelConfig decoder = testing::DecoderConfig();
  decoder.head_dim = 32;
  ModelConfig both = testing::EncoderDecoderConfig();
  both.head_dim = both.decoder_head_dim = 32;
  return {decoder, both};
}

TEST(Decoding, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by Decoding.EveryIsa, a process per ISA";
  const bool emulated = isa == testing::Emulated();
  int64_t compared = 0;
  uint32_t seed = 1;
  for (ModelConfig config : emulated ? TileConfigs() : Configs()) {
    // The precision goes with the number of threads: each model meets each.
    constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kBf16, Precision::kInt8};
    for (const int threads : {1, 2, 3}) {
      config.precision = kPrecisions[(seed + threads) % 3];
      Result<Model> model = testing::RandomModel(config, 3);
      ASSERT_TRUE(model.ok()) << model.status().ToString();
      for (const Share share : {Share::kAuto, Share::kSequences, Share::kRows, Share::kColumns}) {
        RandomDecoding decoding(*model,
                                {.num_threads = threads,
                                 .max_rows = 6,
                                 .max_length = 71,
                                 .max_source_tokens = 50,
                                 .share = share},
                                seed++);
        decoding.Run(emulated ? 4 : 25);
        compared += decoding.compared();
        ASSERT_FALSE(HasFailure())
            << config.architecture << ", " << Name(config.precision) << ", threads " << threads
            << ", share " << static_cast<int>(share);
      }
    }
  }
  std::printf("%s: %lld rows compared with the pass over their own tokens, 0 different\n", isa,
              static_cast<long long>(compared));
  EXPECT_GT(compared, emulated ? 50 : 500);
}

TEST(Decoding, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) {
    testing::ExpectChildPasses(isa, "Decoding.OneIsa");
  }
  const std::string emulated = testing::Emulated();
  if (!emulated.empty()) testing::ExpectChildPasses(emulated, "Decoding.OneIsa");
}

// A prompt longer than a pass comes in pieces, with the same bits.
TEST(Decoding, LongPrompts) {
  ModelConfig config = testing::DecoderConfig();
  config.max_length = 1200;
  Result<Model> model = testing::RandomModel(config, 4);
  ASSERT_TRUE(model.ok());
  std::mt19937 random(9);
  const std::vector<int32_t> a = RandomIds(random, 700, 101), b = RandomIds(random, 900, 101);
  std::vector<int32_t> both = a;
  both.insert(both.end(), b.begin(), b.end());
  Result<DecodeSession> together =
      DecodeSession::Create(*model, {.num_threads = 2, .max_rows = 2, .max_length = 1100});
  ASSERT_TRUE(together.ok()) << together.status().ToString();
  const std::vector<int32_t> rows = {1, 0}, offsets = {0, 700, 1600};
  auto got = together->Start({.rows = rows, .ids = both, .offsets = offsets});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  Result<Session> session = Session::Create(*model, {.max_tokens = 1600});
  ASSERT_TRUE(session.ok());
  Result<Output> want = session->Run({.ids = both, .offsets = offsets});
  ASSERT_TRUE(want.ok()) << want.status().ToString();
  EXPECT_TRUE(testing::SameFloats(got->subspan(0, 101), want->logits.subspan(699 * 101, 101)));
  EXPECT_TRUE(testing::SameFloats(got->subspan(101, 101), want->logits.subspan(1599 * 101, 101)));
}

// What a step does is counted, not timed: a query meets what is cached once, and nothing is redone.
TEST(Decoding, WorkIsLinearInWhatIsCached) {
  Result<Model> model = testing::RandomModel(testing::EncoderDecoderConfig(), 4);
  ASSERT_TRUE(model.ok());
  Result<DecodeSession> session = DecodeSession::Create(*model, {.max_rows = 4});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<int32_t> source(30, 7), offsets = {0, 30}, one = {0}, ids = {1}, begin = {0, 1};
  ASSERT_TRUE(session
                  ->Start({.rows = one,
                           .source_ids = source,
                           .source_offsets = offsets,
                           .ids = ids,
                           .offsets = begin})
                  .ok());
  const std::vector<int32_t> rows = {0, 1, 2, 3}, tokens = {5, 6, 7, 8};
  std::vector<int32_t> parents = {0, 0, 0, 0};
  for (int64_t length = 1; length < 300; ++length) {
    const DecodeWork before = session->work();
    ASSERT_TRUE(session->Step(rows, parents, tokens).ok());
    const DecodeWork& after = session->work();
    EXPECT_EQ(after.rows - before.rows, 4);
    EXPECT_EQ(after.cached_pairs - before.cached_pairs, 4 * (length + 1));
    EXPECT_EQ(after.source_pairs - before.source_pairs, 4 * 30);
    EXPECT_LE(after.copied_blocks - before.copied_blocks, 3);
    parents = length % 2 == 0 ? std::vector<int32_t>{3, 3, 0, 1} : rows;
  }
}

class DecodingErrors : public ::testing::Test {
 protected:
  void Make(const ModelConfig& config, const DecodeOptions& options) {
    Result<Model> model = testing::RandomModel(config, 4);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    model_.emplace(*model);
    Result<DecodeSession> session = DecodeSession::Create(*model_, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_.emplace(*std::move(session));
  }
  Status Start(std::vector<int32_t> rows, std::vector<int32_t> ids, std::vector<int32_t> offsets,
               std::vector<int32_t> source = {}, std::vector<int32_t> source_offsets = {}) {
    return session_
        ->Start({.rows = rows,
                 .source_ids = source,
                 .source_offsets = source_offsets,
                 .ids = ids,
                 .offsets = offsets})
        .status();
  }
  Status Step(std::vector<int32_t> rows, std::vector<int32_t> parents, std::vector<int32_t> ids) {
    return session_->Step(rows, parents, ids).status();
  }
  static void Expect(const Status& status, ErrorCode code, const std::string& where,
                     const std::string& what) {
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_EQ(status.where(), where) << status.ToString();
    EXPECT_NE(status.what().find(what), std::string::npos) << status.ToString();
  }

  std::optional<Model> model_;
  std::optional<DecodeSession> session_;
};

TEST_F(DecodingErrors, OfStart) {
  Make(testing::DecoderConfig(), {.max_rows = 3, .max_length = 20});
  const auto invalid = ErrorCode::kInvalidArgument, capacity = ErrorCode::kCapacity;
  Expect(Start({3}, {1}, {0, 1}), invalid, "rows[0]", "the row is 3, allowed are 0 to 2");
  Expect(Start({-1}, {1}, {0, 1}), invalid, "rows[0]", "-1");
  Expect(Start({1, 1}, {1, 2}, {0, 1, 2}), invalid, "rows[1]", "row 1 is named twice");
  Expect(Start({1}, {1}, {0, 1, 1}), invalid, "offsets", "3 entries, expected 2");
  Expect(Start({1}, {1, 2}, {0, 1}), invalid, "offsets", "0 to 1, expected 0 to 2");
  Expect(Start({0, 1}, {1}, {0, 1, 1}), invalid, "offsets[2]", "0 tokens");
  Expect(Start({1}, {1, 101}, {0, 2}), invalid, "ids[1]", "the id is 101, allowed are 0 to 100");
  Expect(Start({1}, std::vector<int32_t>(21, 5), {0, 21}), capacity, "offsets[1]",
         "21 tokens, the session takes 20");
  Expect(Start({1}, {1}, {0, 1}, {4}, {0, 1}), invalid, "source_ids", "no encoder");
  EXPECT_FALSE(session_->alive(1));
  EXPECT_TRUE(Start({1}, {1}, {0, 1}).ok());
  Expect(Start({1}, {1}, {0, 1}), invalid, "rows[0]", "row 1 is in use");
}

TEST_F(DecodingErrors, OfStep) {
  Make(testing::DecoderConfig(), {.max_rows = 3, .max_length = 4});
  const auto invalid = ErrorCode::kInvalidArgument;
  ASSERT_TRUE(Start({1}, {1, 2}, {0, 2}).ok());
  Expect(Step({1}, {1}, {}), invalid, "Step", "1 rows, 1 parents and 0 ids");
  Expect(Step({0}, {0}, {5}), invalid, "parents[0]", "row 0 is not alive");
  Expect(Step({3}, {1}, {5}), invalid, "rows[0]", "the row is 3");
  Expect(Step({0, 0}, {1, 1}, {5, 5}), invalid, "rows[1]", "named twice");
  Expect(Step({0}, {1}, {-5}), invalid, "ids[0]", "the id is -5");
  EXPECT_EQ(session_->length(1), 2);
  ASSERT_TRUE(Step({0, 1}, {1, 1}, {5, 6}).ok());
  ASSERT_TRUE(Step({0, 1}, {1, 1}, {5, 6}).ok());
  Expect(Step({0}, {1}, {5}), ErrorCode::kCapacity, "parents[0]", "row 1 has 4 tokens");
  const std::vector<int32_t> both = {0, 1}, none = {2};
  Expect(session_->Release(none), invalid, "rows[0]", "row 2 is not alive");
  EXPECT_TRUE(session_->Release(both).ok());
  EXPECT_FALSE(session_->alive(0));
}

TEST_F(DecodingErrors, OfSources) {
  Make(testing::EncoderDecoderConfig(),
       {.max_rows = 3, .max_length = 20, .max_sources = 1, .max_source_tokens = 6});
  const auto invalid = ErrorCode::kInvalidArgument, capacity = ErrorCode::kCapacity;
  Expect(Start({0}, {1}, {0, 1}), invalid, "source_offsets", "0 entries, expected 2");
  Expect(Start({0}, {1}, {0, 1}, {97}, {0, 1}), invalid, "source_ids[0]", "97");
  Expect(Start({0}, {1}, {0, 1}, std::vector<int32_t>(7, 1), {0, 7}), capacity, "source_offsets[1]",
         "7 tokens, the session takes 6");
  Expect(Start({0, 1}, {1, 1}, {0, 1, 2}, {1, 2}, {0, 1, 2}), capacity, "rows",
         "room for 1 more sources");
  ASSERT_TRUE(Start({0}, {1}, {0, 1}, {1, 2}, {0, 2}).ok());
  Expect(Start({1}, {1}, {0, 1}, {1, 2}, {0, 2}), capacity, "rows", "room for 0 more sources");
  // A source is free again when its last row is gone.
  ASSERT_TRUE(Step({1, 2}, {0, 0}, {3, 4}).ok());
  ASSERT_TRUE(Step({}, {}, {}).ok());
  EXPECT_TRUE(Start({1}, {1}, {0, 1}, {1, 2}, {0, 2}).ok());
}

TEST(DecodeSession, RefusesWhatDoesNotFit) {
  Result<Model> encoder = testing::RandomModel(testing::EncoderConfig(48, 1, 4, 60), 1);
  ASSERT_TRUE(encoder.ok());
  const Status task = DecodeSession::Create(*encoder, {}).status();
  EXPECT_EQ(task.code(), ErrorCode::kUnsupported);
  EXPECT_NE(task.what().find("its task is hidden"), std::string::npos) << task.ToString();
  Result<Model> decoder = testing::RandomModel(testing::DecoderConfig(), 1);
  ASSERT_TRUE(decoder.ok());
  const auto refused = [&](const DecodeOptions& options, const std::string& what) {
    const Status status = DecodeSession::Create(*decoder, options).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << status.ToString();
    EXPECT_NE(status.what().find(what), std::string::npos) << status.ToString();
  };
  refused({.max_rows = 0}, "max_rows is 0");
  refused({.max_length = 201}, "max_length is 201, allowed are 0 to 200, what the model's");
  refused({.num_threads = -1}, "num_threads is -1");
  EXPECT_EQ(DecodeSession::Create(*decoder, {})->options().max_length, 200);
  // T5's positions have no end; the books of the cache have.
  Result<Model> pair = testing::RandomModel(testing::EncoderDecoderConfig(), 1);
  ASSERT_TRUE(pair.ok());
  const Status blocks =
      DecodeSession::Create(*pair, {.max_rows = 65536, .max_length = 1 << 20}).status();
  EXPECT_EQ(blocks.code(), ErrorCode::kCapacity) << blocks.ToString();
  EXPECT_NE(blocks.what().find("4294967296 blocks"), std::string::npos) << blocks.ToString();
  EXPECT_EQ(DecodeSession::Create(*pair, {})->options().max_length, 512);
}

}  // namespace
}  // namespace attend
