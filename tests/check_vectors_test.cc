// What Session refuses of input vectors and of edges: one thing wrong, each with its code and a
// message that names the entry, what it is and what is allowed; and that a refusal leaves the
// Session as it was.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/random_model.h"
#include "tests/testing.h"

namespace attend {
namespace {

constexpr int32_t kWidth = 3;
constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument, kFull = ErrorCode::kCapacity;

ModelConfig VectorConfig() {
  ModelConfig config = testing::EncoderConfig(16, 1, 2, 24);
  config.vocab_size = 0;
  config.type_vocab_size = 0;
  config.input_size = kWidth;
  config.max_positions = config.max_length = 10;
  return config;
}

ModelConfig GraphConfig() {
  ModelConfig config = VectorConfig();
  config.edges = true;
  return config;
}

// Three sequences of 2, 1 and 4 vectors; with a graph where the model takes one.
struct OwnedVectors {
  std::vector<float> rows = testing::NormalVector(7 * kWidth, 1);
  std::vector<int32_t> offsets = {0, 2, 3, 7};
  std::vector<Edge> edges;
  std::vector<int32_t> edge_offsets;

  VectorBatch view() const {
    return {.rows = rows, .offsets = offsets, .edges = edges, .edge_offsets = edge_offsets};
  }
};

OwnedVectors GraphBatch() {
  OwnedVectors batch;
  batch.edges = {{1, 0}, {0, 0}, {3, 3}, {0, 3}, {3, 0}};
  batch.edge_offsets = {0, 2, 2, 5};
  return batch;
}

std::vector<float> Hidden(Session& session, const VectorBatch& batch) {
  Result<Output> output = session.Run(batch);
  EXPECT_TRUE(output.ok()) << output.status().ToString();
  if (!output.ok()) return {};
  return {output->hidden.begin(), output->hidden.end()};
}

Session MakeSession(const ModelConfig& config, SessionOptions options = {}) {
  Result<Model> model = testing::RandomModel(config, 5);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  if (options.max_tokens > 20) options.max_tokens = 20;
  if (options.max_sequences > 3) options.max_sequences = 3;
  Result<Session> session = Session::Create(*model, options);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  return std::move(*session);
}

struct Bad {
  const char* name;
  std::function<void(OwnedVectors&)> damage;
  ErrorCode code;
  std::vector<std::string> parts;
};

void ExpectRefused(Session& session, const OwnedVectors& good, const std::vector<Bad>& cases) {
  const std::vector<float> before = Hidden(session, good.view());
  for (const Bad& bad : cases) {
    SCOPED_TRACE(bad.name);
    OwnedVectors batch = good;
    bad.damage(batch);
    const Result<Output> refused = session.Run(batch.view());
    ASSERT_FALSE(refused.ok());
    testing::ExpectError(refused.status(), bad.code, bad.parts);
    testing::ExpectSameBits(Hidden(session, good.view()), before, bad.name);
  }
}

TEST(CheckVectors, WhatIsRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Session session = MakeSession(VectorConfig());
  ExpectRefused(session, OwnedVectors(),
                {
                    {"nan",
                     [](OwnedVectors& b) { b.rows[5 * kWidth + 2] = kNan; },
                     kInvalid,
                     {"rows[5]", "NaN", "column 2", "position 2 of sequence 2"}},
                    {"negative_nan",
                     [](OwnedVectors& b) { b.rows[0] = -kNan; },
                     kInvalid,
                     {"rows[0]", "NaN", "column 0", "position 0 of sequence 0"}},
                    {"infinity",
                     [](OwnedVectors& b) { b.rows[2 * kWidth] = kInf; },
                     kInvalid,
                     {"rows[2]", "has infinity", "position 0 of sequence 1"}},
                    {"negative_infinity",
                     [](OwnedVectors& b) { b.rows.back() = -kInf; },
                     kInvalid,
                     {"rows[6]", "-infinity", "column 2"}},
                    {"width",
                     [](OwnedVectors& b) { b.rows.pop_back(); },
                     kInvalid,
                     {"rows", "20", "multiple of input_size, 3"}},
                    {"a_row_less",
                     [](OwnedVectors& b) { b.rows.resize(6 * kWidth); },
                     kInvalid,
                     {"offsets[3]", "7", "6, the number of rows"}},
                    {"nothing",
                     [](OwnedVectors& b) {
                       b.rows.clear();
                       b.offsets = {0};
                     },
                     kInvalid,
                     {"offsets", "at least 2"}},
                    {"empty_sequence",
                     [](OwnedVectors& b) { b.offsets[1] = 3; },
                     kInvalid,
                     {"sequence 1", "at least one vector"}},
                    {"decreasing",
                     [](OwnedVectors& b) { b.offsets[1] = 4; },
                     kInvalid,
                     {"offsets[2]", "3", "4"}},
                    {"longer_than_the_positions",
                     [](OwnedVectors& b) {
                       b.rows.resize(11 * kWidth);
                       b.offsets = {0, 11};
                     },
                     kFull,
                     {"sequence 0", "11 vectors", "takes 10"}},
                    {"too_many",
                     [](OwnedVectors& b) {
                       b.rows.resize(21 * kWidth);
                       b.offsets = {0, 10, 20, 21};
                     },
                     kFull,
                     {"rows", "21 vectors", "20", "max_tokens"}},
                    {"too_many_sequences",
                     [](OwnedVectors& b) {
                       b.offsets = {0, 1, 2, 3, 7};
                     },
                     kFull,
                     {"offsets", "4", "3", "max_sequences"}},
                    {"edges",
                     [](OwnedVectors& b) {
                       b.edges = {{0, 0}};
                       b.edge_offsets = {0, 1, 1, 1};
                     },
                     kInvalid,
                     {"edges", "takes none"}},
                    {"empty_edges",
                     [](OwnedVectors& b) {
                       b.edge_offsets = {0, 0, 0, 0};
                     },
                     kInvalid,
                     {"edges", "takes none"}},
                });
  const int32_t ids[] = {1, 2}, offsets[] = {0, 2};
  testing::ExpectError(session.Run(TokenBatch{.ids = ids, .offsets = offsets}).status(), kInvalid,
                       {"TokenBatch", "vectors of 3 numbers", "not token ids"});
}

// A row far into a long batch: the search goes in blocks.
TEST(CheckVectors, TheRowIsNamedWhereverItIs) {
  ModelConfig config = VectorConfig();
  config.position = Position::kNone;
  config.max_length = 0;
  Result<Model> model = testing::RandomModel(config, 5);
  ASSERT_TRUE(model.ok());
  Result<Session> session = Session::Create(*model, {.max_tokens = 4000});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  std::vector<float> rows(4000 * kWidth, 0.5f);
  const int32_t offsets[] = {0, 1000, 4000};
  for (const size_t row : {0u, 341u, 342u, 999u, 1000u, 3999u}) {
    rows[row * kWidth + 1] = std::numeric_limits<float>::quiet_NaN();
    testing::ExpectError(session->Run(VectorBatch{.rows = rows, .offsets = offsets}).status(),
                         kInvalid,
                         {"rows[" + std::to_string(row) + "]", "column 1",
                          row < 1000 ? "sequence 0" : "sequence 1"});
    rows[row * kWidth + 1] = 0.5f;
  }
  EXPECT_TRUE(session->Run(VectorBatch{.rows = rows, .offsets = offsets}).ok());
}

TEST(CheckEdges, WhatIsRefused) {
  Session session = MakeSession(GraphConfig(), {.max_edges = 6});
  ExpectRefused(session, GraphBatch(),
                {
                    {"none",
                     [](OwnedVectors& b) {
                       b.edges.clear();
                       b.edge_offsets.clear();
                     },
                     kInvalid,
                     {"edge_offsets", "needs the edges", "all 0"}},
                    {"no_offsets",
                     [](OwnedVectors& b) { b.edge_offsets.clear(); },
                     kInvalid,
                     {"edge_offsets", "0 entries", "4"}},
                    {"few_offsets",
                     [](OwnedVectors& b) {
                       b.edge_offsets = {0, 2, 5};
                     },
                     kInvalid,
                     {"edge_offsets", "3 entries", "4"}},
                    {"first",
                     [](OwnedVectors& b) { b.edge_offsets[0] = 1; },
                     kInvalid,
                     {"edge_offsets[0]", "1", "0"}},
                    {"decreasing",
                     [](OwnedVectors& b) { b.edge_offsets[2] = 1; },
                     kInvalid,
                     {"edge_offsets[2]", "1", "2"}},
                    {"last",
                     [](OwnedVectors& b) { b.edge_offsets[3] = 4; },
                     kInvalid,
                     {"edge_offsets[3]", "4", "5, the number of edges"}},
                    {"i_outside",
                     [](OwnedVectors& b) { b.edges[2].i = 4; },
                     kInvalid,
                     {"edges[2]", "(4, 3)", "0 to 3", "sequence 2"}},
                    {"j_outside",
                     [](OwnedVectors& b) { b.edges[0].j = 2; },
                     kInvalid,
                     {"edges[0]", "(1, 2)", "0 to 1", "sequence 0"}},
                    {"negative",
                     [](OwnedVectors& b) { b.edges[4].j = -1; },
                     kInvalid,
                     {"edges[4]", "(3, -1)", "0 to 3"}},
                    {"of_the_batch",
                     [](OwnedVectors& b) {
                       b.edges[3] = {5, 5};
                     },
                     kInvalid,
                     {"edges[3]", "(5, 5)", "start of their own sequence"}},
                    {"too_many",
                     [](OwnedVectors& b) {
                       b.edges.resize(7, {0, 0});
                       b.edge_offsets[3] = 7;
                     },
                     kFull,
                     {"edges", "7", "6", "max_edges"}},
                });
}

TEST(CheckEdges, EmptyListsAreLists) {
  Session session = MakeSession(GraphConfig());
  OwnedVectors batch;
  batch.edge_offsets = {0, 0, 0, 0};
  EXPECT_EQ(Hidden(session, batch.view()).size(), 7u * 16u);
}

TEST(CheckEdges, OrderAndRepetitionChangeNothing) {
  Session session = MakeSession(GraphConfig());
  const OwnedVectors batch = GraphBatch();
  const std::vector<float> plain = Hidden(session, batch.view());
  OwnedVectors other = batch;
  other.edges = {{0, 0}, {1, 0}, {1, 0}, {0, 0}, {3, 0}, {0, 3}, {3, 3}, {0, 3}};
  other.edge_offsets = {0, 4, 4, 8};
  testing::ExpectSameBits(Hidden(session, other.view()), plain, "another order");
  other.edges[6] = {3, 1};
  EXPECT_NE(Hidden(session, other.view()), plain) << "an edge was not seen";
}

TEST(CheckEdges, ByDefaultEveryPairHasRoom) {
  Session session = MakeSession(GraphConfig());
  OwnedVectors batch;
  for (int32_t i = 0; i < 10; ++i) {
    for (int32_t j = 0; j < 10; ++j) batch.edges.push_back({i, j});
  }
  batch.rows = testing::NormalVector(10 * kWidth, 2);
  batch.offsets = {0, 10};
  batch.edge_offsets = {0, 100};
  ModelConfig whole = VectorConfig();
  // The same weights without a graph: everybody sees everybody.
  Session without = MakeSession(whole);
  OwnedVectors plain = batch;
  plain.edges.clear();
  plain.edge_offsets.clear();
  testing::ExpectNear(Hidden(session, batch.view()),
                      testing::ToDouble(Hidden(without, plain.view())), 1e-5, 1e-5, "all pairs");
}

TEST(CheckEdges, OptionOutOfRange) {
  Result<Model> model = testing::RandomModel(GraphConfig(), 5);
  ASSERT_TRUE(model.ok());
  testing::ExpectError(Session::Create(*model, {.max_edges = -1}).status(), kInvalid,
                       {"max_edges", "-1", "0 to 2147483647"});
  // Memory follows the option.
  Result<Session> few = Session::Create(*model, {.max_edges = 1000});
  Result<Session> many = Session::Create(*model, {.max_edges = 101000});
  ASSERT_TRUE(few.ok() && many.ok());
  EXPECT_EQ(many->memory_bytes() - few->memory_bytes(), 400000u);
}

}  // namespace
}  // namespace attend
