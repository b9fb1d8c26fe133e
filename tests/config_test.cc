// The model's description in the file: what is written is read again, and what does not fit is
// refused with the name of the field or tensor.
#include "engine/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format.h"
#include "tests/config_testing.h"

namespace attend {
namespace {

using namespace testing;  // NOLINT: the small models

TEST(ConfigTest, WhatIsWrittenIsReadAgain) {
  ModelConfig config = Small();
  const FileBytes file = Build(config, AllTensors(config));
  Result<ModelConfig> read = Read(file);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->hidden_size, 8);
  EXPECT_EQ(read->labels, config.labels);
  EXPECT_EQ(read->position, Position::kLearned);
  EXPECT_EQ(read->description, "a test");
  // Written again it is the same file: nothing was lost on the way.
  const FileBytes again = Build(*read, AllTensors(*read));
  ASSERT_EQ(again.bytes().size(), file.bytes().size());
  EXPECT_EQ(0, std::memcmp(again.bytes().data(), file.bytes().data(), file.bytes().size()));
}

TEST(ConfigTest, EveryPartOfTheFamilyComesBack) {
  for (const ModelConfig& config : Family()) {
    ASSERT_TRUE(CheckConfig(config).ok()) << CheckConfig(config).ToString();
    const FileBytes file = Build(config, AllTensors(config));
    Result<ModelConfig> read = Read(file);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    const FileBytes again = Build(*read, AllTensors(*read));
    ASSERT_EQ(again.bytes().size(), file.bytes().size());
    EXPECT_EQ(0, std::memcmp(again.bytes().data(), file.bytes().data(), file.bytes().size()));
  }
}

struct BadConfig {
  const char* field;
  std::function<void(ModelConfig&)> change;
};

TEST(ConfigTest, W55ToW59W67W68FieldsOutOfTheirRange) {
  const std::vector<BadConfig> cases = {
      {"num_layers", [](ModelConfig& c) { c.num_layers = -1; }},
      {"num_layers", [](ModelConfig& c) { c.num_layers = 1025; }},
      {"num_layers", [](ModelConfig& c) { c.num_layers = int64_t{1} << 31; }},
      {"num_heads", [](ModelConfig& c) { c.num_heads = 0; }},
      {"num_kv_heads", [](ModelConfig& c) { c.num_kv_heads = 0; }},
      {"num_kv_heads", [](ModelConfig& c) { c.num_kv_heads = 3; }},
      {"num_kv_heads", [](ModelConfig& c) { c.num_kv_heads = 4; }},
      {"head_dim", [](ModelConfig& c) { c.head_dim = 0; }},
      {"head_dim", [](ModelConfig& c) { c.head_dim = 65536, c.num_heads = c.num_kv_heads = 5; }},
      {"head_dim", [](ModelConfig& c) { c.head_dim = 3, c.position = Position::kRotary; }},
      {"hidden_size", [](ModelConfig& c) { c.hidden_size = 0; }},
      {"hidden_size", [](ModelConfig& c) { c.hidden_size = -12; }},
      {"hidden_size", [](ModelConfig& c) { c.hidden_size = 6597069766656; }},
      {"intermediate_size", [](ModelConfig& c) { c.intermediate_size = INT64_MAX; }},
      {"vocab_size", [](ModelConfig& c) { c.vocab_size = 0; }},
      {"vocab_size", [](ModelConfig& c) { c.input_size = 3; }},
      {"vocab_size", [](ModelConfig& c) { c.vocab_size = (1 << 21) + 1; }},
      {"embedding_size", [](ModelConfig& c) { c.embedding_size = 0; }},
      {"embedding_size",
       [](ModelConfig& c) { c.embedding_size = 4, c.position = Position::kSinusoidal; }},
      {"type_vocab_size", [](ModelConfig& c) { c.vocab_size = 0, c.input_size = 3; }},
      {"word_shape_types",
       [](ModelConfig& c) { c.type_vocab_size = 0, c.word_shape_types = true; }},
      {"max_length", [](ModelConfig& c) { c.max_length = 17; }},
      {"max_length", [](ModelConfig& c) { c.max_length = 0; }},
      {"max_length", [](ModelConfig& c) { c.position_offset = 2; }},
      {"max_positions", [](ModelConfig& c) { c.max_positions = 0; }},
      {"rope_theta", [](ModelConfig& c) { c.position = Position::kRotary, c.rope_theta = 0; }},
      {"rope_theta", [](ModelConfig& c) { c.position = Position::kRotary, c.rope_theta = -1; }},
      {"position",
       [](ModelConfig& c) {
         c.position = Position::kRotary, c.score = Score::kAdditive, c.score_size = 2;
       }},
      {"score_size", [](ModelConfig& c) { c.score = Score::kAdditive; }},
      {"score_size",
       [](ModelConfig& c) { c.score = Score::kAdditive, c.score_size = 65536, c.num_heads = 6; }},
      {"relative_buckets",
       [](ModelConfig& c) { c.score_bias = ScoreBias::kRelative, c.relative_buckets = 5; }},
      {"relative_buckets",
       [](ModelConfig& c) { c.score_bias = ScoreBias::kRelative, c.relative_buckets = 2; }},
      {"relative_max_distance",
       [](ModelConfig& c) { c.score_bias = ScoreBias::kRelative, c.relative_max_distance = 8; }},
      {"window_left", [](ModelConfig& c) { c.windowed = true, c.window_left = -1; }},
      {"global_tokens", [](ModelConfig& c) { c.global_tokens = -1; }},
      {"normalizer_length", [](ModelConfig& c) { c.normalizer_length = true; }},
      {"norm_eps", [](ModelConfig& c) { c.norm_eps = 0; }},
      {"norm_eps", [](ModelConfig& c) { c.norm_eps = -1e-12; }},
      {"norm_eps", [](ModelConfig& c) { c.norm_eps = std::nan(""); }},
      {"output_projection", [](ModelConfig& c) { c.output_projection = false, c.head_dim = 3; }},
      {"activation", [](ModelConfig& c) { c.activation = Activation::kTanh; }},
      {"activation", [](ModelConfig& c) { c.activation = static_cast<Activation>(99); }},
      {"precision", [](ModelConfig& c) { c.precision = Precision::kFile; }},
      {"f32_layers",
       [](ModelConfig& c) { c.precision = Precision::kInt8, c.f32_layers = {"layers.2.ffn.up"}; }},
      {"f32_layers",
       [](ModelConfig& c) { c.precision = Precision::kBf16, c.f32_layers = {"final_norm"}; }},
      {"f32_layers",
       [](ModelConfig& c) {
         c.precision = Precision::kInt8, c.f32_layers = {"layers.0.ffn.up", "layers.0.ffn.down"};
       }},
      {"bf16_layers",
       [](ModelConfig& c) {
         c.precision = Precision::kInt8, c.bf16_layers = {"head", "head"};
       }},
      {"bf16_layers",
       [](ModelConfig& c) {
         c.precision = Precision::kInt8, c.f32_layers = c.bf16_layers = {"head"};
       }},
      {"bf16_layers",
       [](ModelConfig& c) { c.precision = Precision::kInt8, c.bf16_layers = {std::string()}; }},
      {"architecture", [](ModelConfig& c) { c.architecture = ""; }},
      {"architecture", [](ModelConfig& c) { c.architecture = std::string(65536, 'a'); }},
      {"architecture", [](ModelConfig& c) { c.architecture = "../encoder"; }},
      {"description", [](ModelConfig& c) { c.description = std::string((1 << 20) + 1, 'x'); }},
      {"num_labels", [](ModelConfig& c) { c.num_labels = 0, c.labels.clear(); }},
      {"labels", [](ModelConfig& c) { c.labels.pop_back(); }},
      {"pooling", [](ModelConfig& c) { c.task = Task::kSequence; }},
      {"pooling", [](ModelConfig& c) { c.task = Task::kEmbedding; }},
      {"head_from_pooler",
       [](ModelConfig& c) { c.task = Task::kSequence, c.head_from_pooler = true; }},
      {"head_dense_activation",
       [](ModelConfig& c) {
         c.task = Task::kSequence, c.pooling = Pooling::kFirst, c.head_dense = true;
         c.head_dense_activation = Activation::kGeglu;
       }},
      {"dense_sizes",
       [](ModelConfig& c) {
         c.task = Task::kEmbedding, c.pooling = Pooling::kMean, c.dense_sizes = {3};
       }},
      {"dense",
       [](ModelConfig& c) {
         c.task = Task::kEmbedding, c.pooling = Pooling::kMean, c.dense_sizes = {3};
         c.dense = {Activation::kSwiglu};
       }},
  };
  for (const BadConfig& test : cases) {
    ModelConfig config = Small();
    test.change(config);
    const Status status = CheckConfig(config);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << test.field;
    EXPECT_EQ(status.where(), test.field) << status.ToString();
  }
}

// The file's values changed one at a time; the writer is given the change after the config.
Status ReadWith(const ModelConfig& config, std::string_view drop,
                const std::function<void(FileWriter&)>& change) {
  const FileBytes good = Build(config, AllTensors(config));
  const Result<FileView> view = FileView::Open(good.bytes(), VerifyLevel::kFull, "x");
  FileWriter writer;
  for (const std::string_view key : view->keys()) {
    if (key == drop) continue;
    if (const auto v = view->FindInt(key)) writer.SetInt(key, *v);
    if (const auto v = view->FindFloat(key)) writer.SetFloat(key, *v);
    if (const auto v = view->FindBool(key)) writer.SetBool(key, *v);
    if (const auto v = view->FindString(key)) writer.SetString(key, *v);
    if (const auto v = view->FindInts(key)) writer.SetInts(key, *v);
    if (const auto v = view->FindStrings(key)) {
      writer.SetStrings(key, std::vector<std::string>(v->begin(), v->end()));
    }
  }
  change(writer);
  const std::vector<TensorData> tensors = AllTensors(config);
  AddTensors(tensors, &writer);
  return Read(Finish(writer)).status();
}

TEST(ConfigTest, EveryKeyIsRequired) {
  for (const ModelConfig& config : Family()) {
    const FileBytes file = Build(config, AllTensors(config));
    const Result<FileView> view = FileView::Open(file.bytes(), VerifyLevel::kFull, "x");
    for (const std::string_view key : view->keys()) {
      const Status status = ReadWith(config, key, [](FileWriter&) {});
      EXPECT_EQ(status.code(), ErrorCode::kCorrupt) << key;
      EXPECT_EQ(status.where(), key);
      EXPECT_NE(status.what().find("got nothing"), std::string::npos) << status.ToString();
    }
  }
}

TEST(ConfigTest, W29W30ValuesOfAnotherType) {
  const auto expect = [](const char* key, const std::function<void(FileWriter&)>& change) {
    const Status status = ReadWith(Small(), key, change);
    EXPECT_EQ(status.code(), ErrorCode::kCorrupt) << key;
    EXPECT_EQ(status.where(), key);
    EXPECT_NE(status.what().find("another type"), std::string::npos) << status.ToString();
  };
  expect("hidden_size", [](FileWriter& w) { w.SetFloat("hidden_size", 8); });
  expect("hidden_size", [](FileWriter& w) { w.SetString("hidden_size", "8"); });
  expect("num_layers", [](FileWriter& w) { w.SetBool("num_layers", true); });
  expect("norm_eps", [](FileWriter& w) { w.SetInt("norm_eps", 1); });
  expect("causal", [](FileWriter& w) { w.SetInt("causal", 0); });
  expect("task", [](FileWriter& w) { w.SetInt("task", 1); });
  expect("labels", [](FileWriter& w) { w.SetInts("labels", std::vector<int64_t>{1, 2, 3}); });
  expect("labels", [](FileWriter& w) { w.SetString("labels", "A"); });
}

TEST(ConfigTest, UnknownValuesAndKeys) {
  Status status =
      ReadWith(Small(), "activation", [](FileWriter& w) { w.SetString("activation", "gelu_new"); });
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_NE(status.what().find("gelu_tanh"), std::string::npos) << "names what is allowed";
  status = ReadWith(Small(), "", [](FileWriter& w) { w.SetInt("num_experts", 8); });
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(status.where(), "num_experts");
  status = ReadWith(Small(), "", [](FileWriter& w) { w.SetFloat("rope_theta", 1); });
  EXPECT_EQ(status.where(), "rope_theta") << "does not apply";
  EXPECT_TRUE(ReadWith(Small(), "", [](FileWriter& w) {
                w.SetString("note.licence", "CC0");
                w.SetString("tokenizer", "wordpiece");
              }).ok());
}

// Files that are not in f32 name the layers that are more exact; others must not.
TEST(ConfigTest, LayersThatAreMoreExact) {
  ModelConfig config = Small();
  config.precision = Precision::kInt8;
  config.f32_layers = {"head", "layers.0.attention.q"};
  config.bf16_layers = {"layers.1.ffn.down"};
  const Result<ModelConfig> read = Read(Build(config, AllTensors(config)));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->f32_layers, config.f32_layers);
  EXPECT_EQ(read->bf16_layers, config.bf16_layers);
  const auto refused = [](const ModelConfig& of, const char* drop, const char* key,
                          const std::vector<std::string>& names) {
    return ReadWith(of, drop, [&](FileWriter& w) { w.SetStrings(key, names); });
  };
  Status status = refused(config, "bf16_layers", "bf16_layers", {"layers.1.ffn.down", "head"});
  EXPECT_EQ(status.code(), ErrorCode::kCorrupt) << status.ToString();
  EXPECT_NE(status.what().find("ascending"), std::string::npos) << status.ToString();
  status = refused(config, "f32_layers", "f32_layers", {std::string(1000, 'x')});
  EXPECT_EQ(status.where(), "f32_layers") << status.ToString();
  EXPECT_LT(status.what().size(), 200u) << "a hostile name is cut";
  status = refused(Small(), "", "f32_layers", {"head"});
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported) << "a file in f32";
  config.precision = Precision::kBf16;
  config.bf16_layers.clear();
  status = refused(config, "", "bf16_layers", {"head"});
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported) << "a file in bf16";
}

TEST(NamesTest, AreThoseOfTheFile) {
  EXPECT_STREQ(Name(Score::kScaledDot), "scaled_dot");
  EXPECT_STREQ(Name(Task::kEmbedding), "embedding");
  EXPECT_STREQ(Name(Precision::kInt8), "int8");
  EXPECT_STREQ(Name(NormType::kRmsNorm), "rms_norm");
  EXPECT_STREQ(Name(NormPlace::kNone), "none");
  EXPECT_STREQ(Name(ScoreBias::kRelative), "relative");
  EXPECT_STREQ(Name(Pooling::kLast), "last");
  EXPECT_STREQ(Name(static_cast<Activation>(99)), "unknown");
}

}  // namespace
}  // namespace attend
