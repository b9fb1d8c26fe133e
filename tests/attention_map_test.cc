// The weights that AttentionMap gives are those of the fast path: sum_j w_ij v_j is what a Session
// computes, for every score, bias, structure and normaliser, on every ISA.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "attend/attention.h"
#include "tests/isa_child.h"
#include "tests/random_model.h"
#include "tests/reference.h"
#include "tools/convert.h"

namespace attend {
namespace {

using testing::RandomModel;

constexpr int64_t kWidth = 24, kHeads = 4, kHeadDim = 6;

// Attention and nothing else: the output of a layer is that of its heads.
ModelConfig Bare(int64_t layers) {
  ModelConfig config = testing::EncoderConfig(kWidth, layers, kHeads, 0);
  config.vocab_size = 0;
  config.input_size = kWidth;
  config.type_vocab_size = 0;
  config.position = Position::kNone;
  config.max_length = 0;
  config.norm = NormPlace::kNone;
  config.residual = false;
  config.output_projection = false;
  return config;
}

// Whether position i sees j at all.
using Sees = std::function<bool(int64_t i, int64_t j)>;

struct Point {
  const char* name;
  std::function<void(ModelConfig&)> change;
  Sees sees = nullptr;    // null: everybody
  double row_sum = 0;     // 1: rows sum to 1; 0: nothing is known
  double row_below = -1;  // rows sum to less than this
};

bool Near(int64_t i, int64_t j) { return i - 3 <= j && j <= i + 1; }

std::vector<Point> Points() {
  const auto softmax = [](ModelConfig&) {};
  return {
      {"softmax", softmax, nullptr, 1},
      {"dot", [](ModelConfig& c) { c.score = Score::kDot; }, nullptr, 1},
      {"additive", [](ModelConfig& c) { c.score = Score::kAdditive, c.score_size = 5; }, nullptr,
       1},
      {"grouped heads", [](ModelConfig& c) { c.num_kv_heads = 2; }, nullptr, 1},
      {"rotary", [](ModelConfig& c) { c.position = Position::kRotary; }, nullptr, 1},
      {"alibi", [](ModelConfig& c) { c.score_bias = ScoreBias::kAlibi; }, nullptr, 1},
      {"relative", [](ModelConfig& c) { c.score_bias = ScoreBias::kRelative; }, nullptr, 1},
      {"causal", [](ModelConfig& c) { c.causal = true; },
       [](int64_t i, int64_t j) { return j <= i; }, 1},
      {"window", [](ModelConfig& c) { c.windowed = true, c.window_left = 3, c.window_right = 1; },
       Near, 1},
      {"window and globals",
       [](ModelConfig& c) {
         c.windowed = true, c.window_left = 3, c.window_right = 1, c.global_tokens = 2;
       },
       [](int64_t i, int64_t j) { return i < 2 || j < 2 || Near(i, j); }, 1},
      {"graph", [](ModelConfig& c) { c.edges = true; },
       [](int64_t i, int64_t j) { return i % 5 != 2 && (i + j) % 3 == 0; }},
      {"softmax1", [](ModelConfig& c) { c.normalizer = Normalizer::kSoftmax1; }, nullptr, 0, 1},
      {"relu", [](ModelConfig& c) { c.normalizer = Normalizer::kRelu; }},
      {"relu2 by length",
       [](ModelConfig& c) { c.normalizer = Normalizer::kRelu2, c.normalizer_length = true; }},
      {"sigmoid", [](ModelConfig& c) { c.normalizer = Normalizer::kSigmoid; }},
      {"none by length",
       [](ModelConfig& c) { c.normalizer = Normalizer::kNone, c.normalizer_length = true; }},
      {"causal additive relu",
       [](ModelConfig& c) {
         c.score = Score::kAdditive, c.score_size = 3, c.normalizer = Normalizer::kRelu;
         c.causal = true;
       },
       [](int64_t i, int64_t j) { return j <= i; }},
  };
}

struct Input {
  std::vector<float> rows;
  std::vector<int32_t> offsets, edge_offsets;
  std::vector<Edge> edges;

  Input(int64_t length, const ModelConfig& config, const Sees& sees) {
    std::mt19937 random(static_cast<uint32_t>(length));
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < length * kWidth; ++i) rows.push_back(normal(random));
    offsets = {0, static_cast<int32_t>(length)};
    if (!config.edges) return;
    for (int32_t i = 0; i < length; ++i) {
      for (int32_t j = 0; j < length; ++j) {
        if (sees(i, j)) edges.push_back({i, j});
      }
    }
    edge_offsets = {0, static_cast<int32_t>(edges.size())};
  }
  VectorBatch view() const {
    return {.rows = rows, .offsets = offsets, .edges = edges, .edge_offsets = edge_offsets};
  }
};

reference::Matrix Tensor(std::span<const std::byte> file, const std::string& name, int64_t rows) {
  const Result<FileView> view = FileView::Open(file, VerifyLevel::kStructure, "test");
  for (size_t t = 0; view.ok() && t < view->num_tensors(); ++t) {
    const TensorView tensor = view->tensor(t);
    if (tensor.name != name) continue;
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return reference::Matrix::From(values, rows, static_cast<int64_t>(values.size()) / rows);
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

// What goes into layer 0: the rows through the projection and the norm that a random model has.
reference::Matrix LayerInput(std::span<const std::byte> file, const ModelConfig& config,
                             const Input& input) {
  const auto vector = [&](const std::string& name) { return Tensor(file, name, 1).data; };
  const int64_t length = static_cast<int64_t>(input.rows.size()) / kWidth;
  const reference::Matrix x = reference::Linear(reference::Matrix::From(input.rows, length, kWidth),
                                                Tensor(file, "input.projection.weight", kWidth),
                                                vector("input.projection.bias"));
  return reference::LayerNorm(x, vector("embeddings.norm.weight"), vector("embeddings.norm.bias"),
                              config.norm_eps);
}

// sum_j w_ij v_j of layer 0, out of the weights that were recorded.
reference::Matrix Weighted(const AttentionWeights& w, const reference::Matrix& v,
                           int64_t kv_heads) {
  reference::Matrix out(w.queries, kWidth);
  for (int32_t h = 0; h < w.heads; ++h) {
    const int64_t g = h / (kHeads / kv_heads);
    for (int32_t i = 0; i < w.queries; ++i) {
      for (int32_t j = 0; j < w.keys; ++j) {
        for (int64_t e = 0; e < kHeadDim; ++e) {
          out.at(i, h * kHeadDim + e) +=
              static_cast<double>(w.at(0, h, i, j)) * v.at(j, g * kHeadDim + e);
        }
      }
    }
  }
  return out;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

void CheckRows(const AttentionWeights& w, const Point& point) {
  for (int32_t h = 0; h < w.heads; ++h) {
    for (int32_t i = 0; i < w.queries; ++i) {
      double sum = 0;
      for (int32_t j = 0; j < w.keys; ++j) {
        const float weight = w.at(0, h, i, j);
        sum += static_cast<double>(weight);
        if (point.sees && !point.sees(i, j)) {
          ASSERT_EQ(weight, 0.0f) << i << " does not see " << j;
        }
      }
      if (point.row_sum > 0) {
        ASSERT_NEAR(sum, point.row_sum, 2e-5) << "row " << i;
      }
      if (point.row_below > 0) {
        ASSERT_LT(sum, point.row_below) << "row " << i;
      }
    }
  }
}

// One layer of nothing but attention, whose values are x W^T + b.
void CheckPoint(const Point& point, int64_t length) {
  SCOPED_TRACE(std::string(point.name) + ", length " + std::to_string(length));
  ModelConfig config = Bare(1);
  point.change(config);
  const Result<std::vector<std::byte>> file = testing::RandomModelBytes(config, 7);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const Result<Model> model = Model::FromBytes(*file);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const Input input(length, config, point.sees);
  Result<AttentionMap> map =
      AttentionMap::Create(*model, {.max_tokens = static_cast<int32_t>(length)});
  ASSERT_TRUE(map.ok()) << map.status().ToString();
  Result<Session> session = Session::Create(*model, {.max_tokens = 1024});
  ASSERT_TRUE(session.ok());
  const Result<AttentionRun> run = map->Run(input.view());
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  const Result<Output> output = session->Run(input.view());
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  EXPECT_TRUE(SameBits(run->output.hidden, output->hidden));
  ASSERT_EQ(run->self.values.size(), static_cast<size_t>(kHeads * length * length));
  CheckRows(run->self, point);

  const int64_t columns = config.num_kv_heads * kHeadDim;
  const reference::Matrix bias = Tensor(*file, "layers.0.attention.v.bias", 1);
  const reference::Matrix v =
      reference::Linear(LayerInput(*file, config, input),
                        Tensor(*file, "layers.0.attention.v.weight", columns), bias.data);
  const reference::Matrix want = Weighted(run->self, v, config.num_kv_heads);
  // What the weights and the fast path may each differ by: weights are sums of products that the
  // kernel rounds, and those of the normalisers that do not sum to one grow with the scores.
  double largest = 0, worst = 0;
  for (size_t i = 0; i < want.data.size(); ++i) {
    largest = std::max(largest, std::abs(want.data[i]));
    worst = std::max(worst, std::abs(want.data[i] - static_cast<double>(output->hidden[i])));
  }
  EXPECT_LE(worst, 1e-5 * (1 + largest));
}

TEST(AttentionMap, OneIsa) {
  if (testing::ChildIsa() == nullptr) GTEST_SKIP() << "run by AttentionMap.EveryIsa";
  for (const Point& point : Points()) {
    for (const int64_t length : {1, 5, 16, 70, 200}) CheckPoint(point, length);
  }
}

TEST(AttentionMap, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) {
    testing::ExpectChildPasses(isa, "AttentionMap.OneIsa");
  }
}

// Each layer has weights of its own: those of the second are what a model gives whose input is the
// first one's output.
TEST(AttentionMap, LayersOneAfterAnother) {
  const ModelConfig config = Bare(3);
  const Result<Model> model = RandomModel(config, 9);
  ASSERT_TRUE(model.ok());
  Result<AttentionMap> map = AttentionMap::Create(*model);
  ASSERT_TRUE(map.ok()) << map.status().ToString();
  const Input input(40, config, nullptr);
  const Result<AttentionRun> run = map->Run(input.view());
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->self.layers, 3);
  const std::vector<float> first(run->self.Head(0, 1).begin(), run->self.Head(0, 1).end());
  const std::vector<float> second(run->self.Head(1, 1).begin(), run->self.Head(1, 1).end());
  EXPECT_FALSE(SameBits(first, second));
  // A shorter run between leaves nothing behind.
  ASSERT_TRUE(map->Run(Input(7, config, nullptr).view()).ok());
  const Result<AttentionRun> again = map->Run(input.view());
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(SameBits(first, again->self.Head(0, 1)));
  EXPECT_TRUE(SameBits(second, again->self.Head(1, 1)));
}

TEST(AttentionMap, TheShippedTagger) {
  const Result<Model> model = Model::Load(ATTEND_SOURCE_DIR "/models/pos-en.attend");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<AttentionMap> map = AttentionMap::Create(*model);
  Result<Session> session = Session::Create(*model);
  ASSERT_TRUE(map.ok() && session.ok());
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 130; ++i) ids.push_back(100 + 7 * i);
  const std::vector<int32_t> offsets = {0, 130};
  const TokenBatch batch{.ids = ids, .offsets = offsets};
  const Result<AttentionRun> run = map->Run(batch);
  const Result<Output> output = session->Run(batch);
  ASSERT_TRUE(run.ok() && output.ok());
  EXPECT_TRUE(SameBits(run->output.logits, output->logits));
  EXPECT_TRUE(SameBits(run->output.hidden, output->hidden));
  EXPECT_EQ(run->self.layers, model->info().num_layers);
  for (int32_t layer = 0; layer < run->self.layers; ++layer) {
    for (int32_t head = 0; head < run->self.heads; ++head) {
      for (int32_t i = 0; i < 130; ++i) {
        double sum = 0;
        for (int32_t j = 0; j < 130; ++j) sum += run->self.at(layer, head, i, j);
        ASSERT_NEAR(sum, 1, 2e-5) << layer << " " << head << " " << i;
      }
    }
  }
}

// An encoder-decoder has three kinds; what was written sees what was written before it, and all of
// the source.
TEST(AttentionMap, EncoderDecoder) {
  for (const char* name : {"t5", "bart", "marian"}) {
    SCOPED_TRACE(name);
    const std::string file = ::testing::TempDir() + "/attention_map_" + std::to_string(getpid());
    ConvertReport report;
    const Status status = ConvertFolder(
        {.folder = std::string(ATTEND_TEST_DATA "/hf/") + name, .output = file}, &report);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const Result<Model> model = Model::Load(file);
    std::filesystem::remove(file);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    Result<AttentionMap> map = AttentionMap::Create(*model, {.max_tokens = 32});
    Result<Session> session = Session::Create(*model, {.max_tokens = 64});
    ASSERT_TRUE(map.ok()) << map.status().ToString();
    ASSERT_TRUE(session.ok());
    const std::vector<int32_t> ids = {5, 9, 7, 11, 6, 3, 8}, offsets = {0, 7};
    const std::vector<int32_t> written = {1, 4, 6, 9, 10}, decoder_offsets = {0, 5};
    const TokenBatch batch{
        .ids = ids, .offsets = offsets, .decoder_ids = written, .decoder_offsets = decoder_offsets};
    const Result<AttentionRun> run = map->Run(batch);
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    const Result<Output> output = session->Run(batch);
    ASSERT_TRUE(output.ok());
    EXPECT_TRUE(SameBits(run->output.logits, output->logits));
    const auto check = [](const AttentionWeights& w, int32_t queries, int32_t keys, bool causal) {
      ASSERT_GT(w.layers, 0);
      ASSERT_EQ(w.queries, queries);
      ASSERT_EQ(w.keys, keys);
      for (int32_t layer = 0; layer < w.layers; ++layer) {
        for (int32_t i = 0; i < queries; ++i) {
          double sum = 0;
          for (int32_t j = 0; j < keys; ++j) {
            const float weight = w.at(layer, w.heads - 1, i, j);
            sum += static_cast<double>(weight);
            EXPECT_EQ(weight == 0, causal && j > i) << layer << " " << i << " " << j;
          }
          EXPECT_NEAR(sum, 1, 2e-5);
        }
      }
    };
    check(run->self, 7, 7, false);
    check(run->decoder, 5, 5, true);
    check(run->cross, 5, 7, false);
  }
}

TEST(AttentionMap, Limits) {
  const Result<Model> model = RandomModel(Bare(2), 1);
  ASSERT_TRUE(model.ok());
  const Result<AttentionMap> huge = AttentionMap::Create(*model, {.max_tokens = 8192});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.status().code(), ErrorCode::kCapacity);
  EXPECT_EQ(huge.status().what(),
            "the weights of 8192 x 8192 positions in 8 heads, all layers together, take 2048 MiB; "
            "at most "
            "1024 MiB are kept");
  const Result<AttentionMap> none = AttentionMap::Create(*model, {.max_tokens = 0});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), ErrorCode::kInvalidArgument);

  Result<AttentionMap> map = AttentionMap::Create(*model, {.max_tokens = 16});
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->Run(Input(17, Bare(2), nullptr).view()).status().code(), ErrorCode::kCapacity);
  Input two(16, Bare(2), nullptr);
  two.offsets = {0, 8, 16};
  EXPECT_EQ(map->Run(two.view()).status().code(), ErrorCode::kCapacity);
  EXPECT_TRUE(map->Run(Input(16, Bare(2), nullptr).view()).ok());
}

// A Session's plan has no step more than it had.
TEST(AttentionMap, ASessionCarriesNothing) {
  const Result<Model> model = RandomModel(Bare(2), 1);
  Result<Session> session = Session::Create(*model, {.max_tokens = 64, .max_sequences = 1});
  Result<AttentionMap> map = AttentionMap::Create(*model, {.max_tokens = 64});
  ASSERT_TRUE(session.ok() && map.ok());
  EXPECT_EQ(session->Describe().find("weights of the attention"), std::string::npos);
  EXPECT_GE(map->memory_bytes(), session->memory_bytes() + size_t{2 * 4 * 64 * 64 * 4});
}

}  // namespace
}  // namespace attend
