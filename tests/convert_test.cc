// Conversion of whole folders: what is mapped to what, how weights are stored, and what it takes.
#include "tools/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "engine/format.h"
#include "tests/hf_folder.h"

namespace attend {
namespace {

// An .attend file, verified, with the config that is in it.
class Converted {
 public:
  explicit Converted(const std::string& path)
      : bytes_(*FileBytes::Open(path, FileBytes::Mode::kRead)),
        view_(*FileView::Open(bytes_.bytes(), VerifyLevel::kFull, path)),
        config_(ReadConfig(view_)) {}

  const FileView& view() const { return view_; }
  const Result<ModelConfig>& config() const { return config_; }
  std::string Bytes(const std::string& name) const {
    const auto tensor = view_.FindTensor(name);
    if (!tensor.has_value()) return "no tensor " + name;
    return {reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()};
  }

 private:
  FileBytes bytes_;
  FileView view_;
  Result<ModelConfig> config_;
};

std::string HfPath(const std::string& name) { return ATTEND_TEST_DATA "/hf/" + name; }

struct Golden {
  const char* folder;
  Task task;
  DType dtype;
  bool pooler;
  int64_t num_labels;
  std::vector<std::string> unused;
  // A few tensors of the file and those of the folder.
  std::vector<std::pair<std::string, std::string>> same;
};

const Golden kGoldens[] = {
    {"bert",
     Task::kHidden,
     DType::kF32,
     true,
     0,
     {},
     {{"layers.1.attention.k.weight", "encoder.layer.1.attention.self.key.weight"},
      {"layers.0.ffn.down.bias", "encoder.layer.0.output.dense.bias"},
      {"layers.1.attention_norm.weight", "encoder.layer.1.attention.output.LayerNorm.weight"},
      {"pooler.weight", "pooler.dense.weight"}}},
    {"bert_bf16",
     Task::kHidden,
     DType::kBf16,
     true,
     0,
     {},
     {{"embeddings.tokens.weight", "embeddings.word_embeddings.weight"}}},
    {"bert_cased_relu",
     Task::kHidden,
     DType::kF32,
     true,
     0,
     {},
     {{"layers.0.ffn.up.weight", "encoder.layer.0.intermediate.dense.weight"}}},
    {"bert_f16",
     Task::kHidden,
     DType::kF16,
     true,
     0,
     {},
     {{"embeddings.types.weight", "embeddings.token_type_embeddings.weight"}}},
    {"bert_gamma_beta",
     Task::kHidden,
     DType::kF32,
     true,
     0,
     {},
     {{"embeddings.norm.weight", "embeddings.LayerNorm.gamma"},
      {"layers.1.ffn_norm.bias", "encoder.layer.1.output.LayerNorm.beta"}}},
    {"bert_mlm",
     Task::kHidden,
     DType::kF32,
     false,
     0,
     {"cls.predictions.bias", "cls.predictions.transform.LayerNorm.bias",
      "cls.predictions.transform.LayerNorm.weight", "cls.predictions.transform.dense.bias",
      "cls.predictions.transform.dense.weight"},
     {{"embeddings.positions.weight", "bert.embeddings.position_embeddings.weight"}}},
    {"bert_sequence_classification",
     Task::kSequence,
     DType::kF32,
     true,
     3,
     {},
     {{"head.weight", "classifier.weight"}, {"pooler.bias", "bert.pooler.dense.bias"}}},
    {"bert_token_classification",
     Task::kTokens,
     DType::kF32,
     false,
     7,
     {},
     {{"head.bias", "classifier.bias"},
      {"layers.1.attention.o.weight", "bert.encoder.layer.1.attention.output.dense.weight"}}},
    {"distilbert",
     Task::kHidden,
     DType::kF32,
     false,
     0,
     {},
     {{"layers.0.attention.q.weight", "transformer.layer.0.attention.q_lin.weight"},
      {"layers.1.attention.v.bias", "transformer.layer.1.attention.v_lin.bias"},
      {"layers.0.attention_norm.bias", "transformer.layer.0.sa_layer_norm.bias"},
      {"layers.0.ffn_norm.weight", "transformer.layer.0.output_layer_norm.weight"},
      {"layers.1.ffn.up.weight", "transformer.layer.1.ffn.lin1.weight"}}},
    {"distilbert_token_classification",
     Task::kTokens,
     DType::kF32,
     false,
     7,
     {},
     {{"head.weight", "classifier.weight"},
      {"layers.0.ffn.down.weight", "distilbert.transformer.layer.0.ffn.lin2.weight"}}},
    {"electra",
     Task::kHidden,
     DType::kF32,
     false,
     0,
     {},
     {{"embeddings.projection.weight", "embeddings_project.weight"},
      {"embeddings.projection.bias", "embeddings_project.bias"}}},
};

TEST(ConvertTest, GoldenFoldersConvert) {
  for (const Golden& golden : kGoldens) {
    SCOPED_TRACE(golden.folder);
    TestFolder out;
    ConvertReport report;
    const Status status =
        ConvertFolder({.folder = HfPath(golden.folder), .output = out.Path("m")}, &report);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const Converted file(out.Path("m"));
    ASSERT_TRUE(file.config().ok()) << file.config().status().ToString();
    const ModelConfig& config = *file.config();
    EXPECT_EQ(config.task, golden.task);
    EXPECT_EQ(config.pooler, golden.pooler);
    EXPECT_EQ(config.num_labels, golden.num_labels);
    EXPECT_EQ(config.max_length, 64);
    EXPECT_EQ(config.precision, Precision::kF32);
    EXPECT_EQ(report.tokenizer, "wordpiece");
    EXPECT_TRUE(file.view().FindTensor("tokenizer").has_value());
    EXPECT_EQ(file.view().FindTensor("embeddings.tokens.weight")->dtype, golden.dtype);
    std::vector<std::string> unused;
    for (const UnusedTensor& tensor : report.unused) unused.push_back(tensor.name);
    EXPECT_EQ(unused, golden.unused);
    TestTensors source = ReadTensors(HfPath(golden.folder) + "/model.safetensors");
    for (const auto& [to, from] : golden.same) {
      ASSERT_TRUE(source.contains(from)) << from;
      EXPECT_TRUE(file.Bytes(to) == source[from].data) << to;
    }
    // Every tensor of the folder is in the file, where the tokenizer is one more, or not used.
    EXPECT_EQ(static_cast<size_t>(report.num_tensors), file.view().num_tensors());
    EXPECT_EQ(file.view().num_tensors() - 1 + unused.size(), source.size());
  }
}

TEST(ConvertTest, FieldsAreUnderstood) {
  TestFolder out;
  ConvertReport report;
  ASSERT_TRUE(ConvertFolder({.folder = HfPath("electra"), .output = out.Path("m")}, &report).ok());
  const ModelConfig& c = report.config;
  EXPECT_EQ(c.source, "electra");
  EXPECT_EQ(report.source_class, "ElectraModel");
  EXPECT_EQ(c.hidden_size, 60);
  EXPECT_EQ(c.embedding_size, 32);
  EXPECT_EQ(c.num_heads, 3);
  EXPECT_EQ(c.head_dim, 20);
  EXPECT_EQ(c.intermediate_size, 96);
  EXPECT_EQ(c.activation, Activation::kGelu);
  EXPECT_EQ(c.position, Position::kLearned);
  EXPECT_EQ(c.norm, NormPlace::kPost);
  ASSERT_TRUE(
      ConvertFolder({.folder = HfPath("bert_cased_relu"), .output = out.Path("m")}, &report).ok());
  EXPECT_EQ(report.config.activation, Activation::kRelu);
  EXPECT_EQ(report.config.norm_eps, 1e-5);
  ASSERT_TRUE(
      ConvertFolder({.folder = HfPath("bert_sequence_classification"), .output = out.Path("m")},
                    &report)
          .ok());
  EXPECT_TRUE(report.config.head_from_pooler);
  EXPECT_EQ(report.config.labels, (std::vector<std::string>{"negative", "neutral", "positive"}));
}

TEST(ConvertTest, ShardsEqualOneFile) {
  TestFolder out, whole("bert_sharded");
  TestTensors second = ReadTensors(whole.Path("model-00002-of-00002.safetensors"));
  whole.tensors = ReadTensors(whole.Path("model-00001-of-00002.safetensors"));
  whole.tensors.merge(second);
  whole.Save();
  ConvertReport report;
  ASSERT_TRUE(
      ConvertFolder({.folder = HfPath("bert_sharded"), .output = out.Path("a")}, &report).ok());
  EXPECT_TRUE(report.unused.empty());
  ASSERT_TRUE(ConvertFolder({.folder = whole.path(), .output = out.Path("b")}, &report).ok());
  EXPECT_TRUE(ReadWhole(out.Path("a")) == ReadWhole(out.Path("b")));
}

TEST(ConvertTest, PreTrainingHeadsAndBuffersAreNamed) {
  TestFolder out;
  ConvertReport report;
  ASSERT_TRUE(
      ConvertFolder({.folder = HfPath("bert_prefixed"), .output = out.Path("m")}, &report).ok());
  EXPECT_TRUE(report.config.pooler);
  std::map<std::string, std::string> reasons;
  for (const UnusedTensor& tensor : report.unused) reasons[tensor.name] = tensor.reason;
  EXPECT_EQ(reasons.size(), 6u);
  EXPECT_NE(reasons["bert.embeddings.position_ids"].find("buffer"), std::string::npos);
  EXPECT_NE(reasons["cls.seq_relationship.weight"].find("pre-training"), std::string::npos);
}

TEST(ConvertTest, SameFolderSameBytes) {
  TestFolder out;
  ConvertReport report;
  for (const WeightStorage weights :
       {WeightStorage::kKeep, WeightStorage::kBf16, WeightStorage::kInt8}) {
    for (const char* name : {"a", "b"}) {
      ASSERT_TRUE(ConvertFolder({.folder = HfPath("bert_token_classification"),
                                 .output = out.Path(name),
                                 .weights = weights},
                                &report)
                      .ok());
    }
    EXPECT_TRUE(ReadWhole(out.Path("a")) == ReadWhole(out.Path("b")));
  }
}

TEST(ConvertTest, SequenceHeadsOfDistilBertAndElectra) {
  TestFolder distil("distilbert_token_classification"), out;
  distil.config["architectures"] = {"DistilBertForSequenceClassification"};
  distil.tensors["pre_classifier.weight"] = RandomTensor(48, 48, 1);
  distil.tensors["pre_classifier.bias"] = RandomTensor(48, 0, 2);
  distil.Save();
  ConvertReport report;
  Status status = ConvertFolder({.folder = distil.path(), .output = out.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(report.unused.empty());
  {
    const Converted file(out.Path("m"));
    ASSERT_TRUE(file.config().ok()) << file.config().status().ToString();
    EXPECT_EQ(file.config()->task, Task::kSequence);
    EXPECT_EQ(file.config()->pooling, Pooling::kFirst);
    EXPECT_TRUE(file.config()->head_dense);
    EXPECT_EQ(file.config()->head_dense_activation, Activation::kRelu);
    EXPECT_TRUE(file.Bytes("head.dense.weight") == distil.tensors["pre_classifier.weight"].data);
  }
  TestFolder electra("electra");
  electra.config["architectures"] = {"ElectraForSequenceClassification"};
  TestTensors prefixed;
  for (auto& [name, tensor] : electra.tensors) prefixed["electra." + name] = tensor;
  electra.tensors = prefixed;
  electra.tensors["classifier.dense.weight"] = RandomTensor(60, 60, 3);
  electra.tensors["classifier.dense.bias"] = RandomTensor(60, 0, 4);
  electra.tensors["classifier.out_proj.weight"] = RandomTensor(1, 60, 5);
  electra.tensors["classifier.out_proj.bias"] = RandomTensor(1, 0, 6);
  electra.Save();
  status = ConvertFolder({.folder = electra.path(), .output = out.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(report.unused.empty());
  const Converted file(out.Path("m"));
  EXPECT_EQ(file.config()->head_dense_activation, Activation::kGelu);
  EXPECT_EQ(file.config()->labels, std::vector<std::string>{"LABEL_0"});
  EXPECT_TRUE(file.Bytes("head.weight") == electra.tensors["classifier.out_proj.weight"].data);
  EXPECT_TRUE(file.Bytes("head.dense.bias") == electra.tensors["classifier.dense.bias"].data);
}

TEST(ConvertTest, FieldsOfAttendsOwnFolders) {
  TestFolder folder("bert_token_classification"), out;
  folder.config["description"] = "Trained on nothing.";
  folder.config["attend_type_ids"] = "word_shape";
  folder.Save();
  ConvertReport report;
  const Status status = ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const Converted file(out.Path("m"));
  ASSERT_TRUE(file.config().ok()) << file.config().status().ToString();
  EXPECT_EQ(file.config()->description, "Trained on nothing.");
  EXPECT_TRUE(file.config()->word_shape_types);
}

TEST(ConvertTest, WithoutTokenizerIdsOnly) {
  TestFolder folder("bert"), out;
  folder.Remove("tokenizer.json");
  ConvertReport report;
  Status status = ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(report.tokenizer, "");
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(report.notes.back().find("token ids only"), std::string::npos);
  EXPECT_FALSE(Converted(out.Path("m")).view().FindTensor("tokenizer").has_value());
  // A kind of tokenizer that is not known is the same, and named.
  auto tokenizer = nlohmann::json::parse(ReadWhole(HfPath("bert/tokenizer.json")));
  tokenizer["model"]["type"] = "SomethingNew";
  folder.Write("tokenizer.json", tokenizer.dump());
  status = ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(report.tokenizer, "");
  EXPECT_NE(report.notes.back().find("SomethingNew"), std::string::npos) << report.notes.back();
}

// What a weight becomes, against the plain definition in double precision.
TEST(ConvertTest, Int8IsPerRowSymmetricHalfToEven) {
  TestFolder folder("bert"), out;
  const std::string name = "encoder.layer.0.attention.self.query.weight";
  float* w = folder.tensors[name].floats();
  const size_t columns = 60;
  for (size_t c = 0; c < columns; ++c) w[c] = 0;  // row 0: zeros
  for (size_t c = 0; c < columns; ++c) w[columns + c] = 0.5f * static_cast<float>(c);  // row 1
  w[columns + 0] = 127;  // scale 1: halves are ties
  w[columns + 1] = -127;
  for (size_t c = 0; c < columns; ++c) w[2 * columns + c] = 1e-45f;  // row 2: the scale is 0
  for (size_t c = 0; c < columns; ++c) w[3 * columns + c] = -3.4e38f;
  folder.Save();
  ConvertReport report;
  const Status status = ConvertFolder(
      {.folder = folder.path(), .output = out.Path("m"), .weights = WeightStorage::kInt8}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const Converted file(out.Path("m"));
  ASSERT_TRUE(file.config().ok()) << file.config().status().ToString();
  EXPECT_EQ(file.config()->precision, Precision::kF32);
  const std::string q = file.Bytes("layers.0.attention.q.weight");
  const std::string scale_bytes = file.Bytes("layers.0.attention.q.weight.scale");
  ASSERT_EQ(q.size(), 60u * columns);
  ASSERT_EQ(scale_bytes.size(), 60u * sizeof(float));
  std::vector<float> scale(60);
  std::memcpy(scale.data(), scale_bytes.data(), scale_bytes.size());
  EXPECT_EQ(scale[0], 0.0f);
  EXPECT_EQ(scale[1], 1.0f);
  EXPECT_EQ(scale[2], 0.0f);
  EXPECT_TRUE(std::isfinite(scale[3] * 127.0f));
  const auto at = [&](size_t row, size_t c) { return int{static_cast<int8_t>(q[row * 60 + c])}; };
  EXPECT_EQ(at(1, 0), 127);
  EXPECT_EQ(at(1, 1), -127);
  EXPECT_EQ(at(1, 3), 2);  // 1.5
  EXPECT_EQ(at(1, 5), 2);  // 2.5
  EXPECT_EQ(at(1, 7), 4);  // 3.5
  for (size_t row = 0; row < 60; ++row) {
    float largest = 0;
    for (size_t c = 0; c < columns; ++c) largest = std::max(largest, std::fabs(w[row * 60 + c]));
    if (row > 3) {
      ASSERT_EQ(scale[row], largest / 127.0f);
    }
    for (size_t c = 0; c < columns; ++c) {
      ASSERT_GE(at(row, c), -127);
      ASSERT_LE(std::fabs(double{w[row * 60 + c]} - double{scale[row]} * at(row, c)),
                row == 2 ? 1e-44 : 0.5000001 * double{scale[row]} + 1e-45)
          << row << " " << c;
    }
  }
  // Biases and norms stay as they are; tables are stored the same way.
  EXPECT_EQ(file.view().FindTensor("embeddings.tokens.weight")->dtype, DType::kI8);
  EXPECT_EQ(file.view().FindTensor("embeddings.norm.weight")->dtype, DType::kF32);
  EXPECT_EQ(file.view().FindTensor("layers.0.attention.q.bias")->dtype, DType::kF32);
}

TEST(ConvertTest, Bf16RoundsToNearestEven) {
  TestFolder folder("bert"), out;
  const std::string name = "embeddings.word_embeddings.weight";
  float* w = folder.tensors[name].floats();
  // Ties go to the even neighbour; the largest float does not become infinity.
  const std::pair<uint32_t, uint16_t> cases[] = {
      {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82}, {0x3F808001, 0x3F81}, {0xBF818000, 0xBF82},
      {0x7F7FFFFF, 0x7F7F}, {0xFF7FFFFF, 0xFF7F}, {0x00000001, 0x0000}, {0x80000000, 0x8000}};
  for (size_t i = 0; i < std::size(cases); ++i) w[i] = std::bit_cast<float>(cases[i].first);
  folder.Save();
  ConvertReport report;
  const Status status = ConvertFolder(
      {.folder = folder.path(), .output = out.Path("m"), .precision = Precision::kBf16}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const Converted file(out.Path("m"));
  ASSERT_TRUE(file.config().ok()) << file.config().status().ToString();
  EXPECT_EQ(file.config()->precision, Precision::kBf16);
  const std::string stored = file.Bytes("embeddings.tokens.weight");
  ASSERT_EQ(stored.size(), 300u * 60 * 2);
  for (size_t i = 0; i < std::size(cases); ++i) {
    uint16_t value;
    std::memcpy(&value, stored.data() + 2 * i, 2);
    EXPECT_EQ(value, cases[i].second) << i;
  }
}

// A file in int8 stores what it computes with; layers that lose too much are stored as they are
// computed. Nothing is left beside it.
TEST(ConvertTest, PrecisionDecidesHowWeightsAreStored) {
  for (const double budget : {0.0, 0.012, 1.0}) {
    TestFolder out;
    ConvertReport report;
    const Status status = ConvertFolder({.folder = HfPath("bert"),
                                         .output = out.Path("m"),
                                         .precision = Precision::kInt8,
                                         .budget = budget},
                                        &report);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_FALSE(out.Has("m.measured"));
    const Converted file(out.Path("m"));
    ASSERT_TRUE(file.config().ok()) << file.config().status().ToString();
    const ModelConfig& config = *file.config();
    EXPECT_EQ(config.precision, Precision::kInt8);
    EXPECT_EQ(config.f32_layers.empty(), budget > 0);
    EXPECT_EQ(config.bf16_layers.empty(), budget != 0.012);
    const auto stored = [&](const std::string& name) {
      return file.view().FindTensor(name + ".weight")->dtype;
    };
    for (const std::string& name : config.f32_layers) EXPECT_EQ(stored(name), DType::kF32) << name;
    for (const std::string& name : config.bf16_layers) {
      EXPECT_EQ(stored(name), DType::kBf16) << name;
    }
    EXPECT_EQ(stored("embeddings.tokens"), DType::kI8);
    if (budget == 1.0) {
      EXPECT_EQ(stored("layers.0.ffn.down"), DType::kI8);
    }
    const auto loss = std::find_if(report.understood.begin(), report.understood.end(),
                                   [](const auto& line) { return line.first == "loss"; });
    EXPECT_NE(loss, report.understood.end());
  }
}

TEST(ConvertTest, Int8OfHalfPrecisionFolders) {
  for (const char* name : {"bert_f16", "bert_bf16"}) {
    TestFolder out;
    ConvertReport report;
    const Status status = ConvertFolder(
        {.folder = HfPath(name), .output = out.Path("m"), .weights = WeightStorage::kInt8},
        &report);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const Converted file(out.Path("m"));
    ASSERT_TRUE(file.config().ok()) << file.config().status().ToString();
    const std::string scales = file.Bytes("layers.0.ffn.up.weight.scale");
    float first;
    std::memcpy(&first, scales.data(), sizeof(first));
    EXPECT_GT(first, 1e-5f);
    EXPECT_LT(first, 1.0f);
  }
}

// A real sentence-transformers folder, where it is at hand.
TEST(ConvertTest, MiniLm) {
  const char* path = std::getenv("ATTEND_MINILM");
  if (path == nullptr) {
    GTEST_SKIP() << "MiniLM is not at hand: set ATTEND_MINILM to its Hugging Face folder";
  }
  TestFolder out;
  ConvertReport report;
  const Status status = ConvertFolder({.folder = path, .output = out.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const Converted file(out.Path("m"));
  ASSERT_TRUE(file.config().ok()) << file.config().status().ToString();
  const ModelConfig& config = *file.config();
  EXPECT_EQ(config.task, Task::kEmbedding);
  EXPECT_EQ(config.pooling, Pooling::kMean);
  EXPECT_TRUE(config.normalize);
  EXPECT_EQ(config.hidden_size, 384);
  EXPECT_EQ(config.num_layers, 6);
  EXPECT_EQ(config.max_length, 256);
  EXPECT_EQ(config.max_positions, 512);
  EXPECT_EQ(report.tokenizer, "wordpiece");
  EXPECT_EQ(report.unused.size(), 3u);  // the pooler and position_ids
}

}  // namespace
}  // namespace attend
