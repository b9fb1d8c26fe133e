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

namespace attend {
namespace {

ModelConfig Small() {
  ModelConfig config;
  config.source = "bert";
  config.description = "a test";
  config.hidden_size = 8;
  config.num_layers = 2;
  config.num_heads = 2;
  config.num_kv_heads = 2;
  config.head_dim = 4;
  config.intermediate_size = 12;
  config.vocab_size = 11;
  config.embedding_size = 8;
  config.type_vocab_size = 2;
  config.position = Position::kLearned;
  config.max_positions = 16;
  config.max_length = 16;
  config.task = Task::kTokens;
  config.num_labels = 3;
  config.labels = {"A", "B", "C"};
  return config;
}

struct TensorData {
  std::string name;
  DType dtype;
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;
};

uint64_t Elements(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  return count;
}

TensorData Make(std::string name, DType dtype, std::vector<uint64_t> shape) {
  std::vector<std::byte> bytes(Elements(shape) * DTypeSize(dtype));
  return {std::move(name), dtype, std::move(shape), std::move(bytes)};
}

// Every tensor of `config`, with zeros.
std::vector<TensorData> AllTensors(const ModelConfig& config) {
  std::vector<TensorData> tensors;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    tensors.push_back(Make(spec.name, DType::kF32, spec.shape));
  }
  return tensors;
}

TensorData* Find(std::vector<TensorData>* tensors, std::string_view name) {
  for (TensorData& tensor : *tensors) {
    if (tensor.name == name) return &tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return &tensors->front();
}

bool HasTensor(const std::vector<TensorData>& tensors, std::string_view name) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const TensorData& tensor) { return tensor.name == name; });
}

void Remove(std::vector<TensorData>* tensors, std::string_view name) {
  std::erase_if(*tensors, [&](const TensorData& tensor) { return tensor.name == name; });
}

void AddTensors(const std::vector<TensorData>& tensors, FileWriter* writer) {
  for (const TensorData& tensor : tensors) {
    writer->AddTensor(tensor.name, tensor.dtype, tensor.shape, [&](std::span<std::byte> out) {
      std::memcpy(out.data(), tensor.bytes.data(), out.size());
      return Status();
    });
  }
}

FileBytes Finish(const FileWriter& writer) {
  Result<std::vector<std::byte>> bytes = writer.WriteToBytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return FileBytes::Copy(*bytes);
}

FileBytes Build(const ModelConfig& config, const std::vector<TensorData>& tensors) {
  FileWriter writer;
  WriteConfig(config, &writer);
  AddTensors(tensors, &writer);
  return Finish(writer);
}

Result<ModelConfig> Read(const FileBytes& file) {
  Result<FileView> view = FileView::Open(file.bytes(), VerifyLevel::kFull, "test.attend");
  if (!view.ok()) return view.status();
  return ReadConfig(*view);
}

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


// A point of the family for every part that has fields or tensors of its own.
std::vector<ModelConfig> Family() {
  std::vector<ModelConfig> family = {Small()};
  const auto add = [&](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = Small();
    change(config);
    family.push_back(config);
  };
  add([](ModelConfig& c) { c.position_offset = 2, c.max_length = 14; });
  add([](ModelConfig& c) { c.word_shape_types = true; });
  add([](ModelConfig& c) { c.embedding_size = 6; });
  add([](ModelConfig& c) { c.num_layers = 0; });
  add([](ModelConfig& c) { c.intermediate_size = 0; });
  add([](ModelConfig& c) { c.num_kv_heads = 1, c.head_dim = 6; });
  add([](ModelConfig& c) { c.position = Position::kRotary, c.rope_theta = 500; });
  add([](ModelConfig& c) { c.position = Position::kSinusoidal, c.output_projection = false; });
  add([](ModelConfig& c) {
    c.position = Position::kNone, c.score = Score::kAdditive, c.score_size = 5;
    c.score_bias = ScoreBias::kRelative, c.relative_buckets = 10, c.relative_max_distance = 3;
  });
  add([](ModelConfig& c) {
    c.score = Score::kDot, c.score_bias = ScoreBias::kAlibi, c.normalizer = Normalizer::kRelu2;
    c.normalizer_length = true, c.causal = true, c.edges = true, c.residual = false;
  });
  add([](ModelConfig& c) {
    c.windowed = true, c.window_left = 3, c.window_right = 0, c.global_tokens = 1;
    c.norm = NormPlace::kPre, c.norm_type = NormType::kRmsNorm, c.activation = Activation::kSwiglu;
  });
  add([](ModelConfig& c) {
    c.vocab_size = 0, c.input_size = 5, c.type_vocab_size = 0, c.norm = NormPlace::kNone;
  });
  add([](ModelConfig& c) { c.vocab_size = 0, c.input_size = 8, c.type_vocab_size = 0; });
  add([](ModelConfig& c) {
    c.task = Task::kSequence, c.pooler = true, c.head_from_pooler = true;
  });
  add([](ModelConfig& c) {
    c.task = Task::kSequence, c.pooling = Pooling::kFirst, c.head_dense = true;
    c.head_dense_activation = Activation::kRelu;
  });
  add([](ModelConfig& c) {
    c.task = Task::kEmbedding, c.pooling = Pooling::kMean, c.normalize = true;
    c.dense = {Activation::kTanh, Activation::kNone}, c.dense_sizes = {6, 4};
  });
  add([](ModelConfig& c) { c.task = Task::kHidden, c.pooler = true; });
  return family;
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

// W60: each required tensor in turn; what is optional may be missing.
TEST(ConfigTest, W60EachRequiredTensorMissing) {
  for (const ModelConfig& config : Family()) {
    for (const TensorSpec& spec : ExpectedTensors(config)) {
      std::vector<TensorData> tensors = AllTensors(config);
      Remove(&tensors, spec.name);
      const Result<ModelConfig> read = Read(Build(config, tensors));
      const bool has_bias = spec.name.ends_with(".weight") &&  // which is then alone
                            HasTensor(tensors, spec.name.substr(0, spec.name.size() - 6) + "bias");
      ASSERT_EQ(read.ok(), !spec.required && !has_bias) << spec.name;
      if (!read.ok()) {
        EXPECT_EQ(read.status().code(), ErrorCode::kCorrupt);
        EXPECT_EQ(read.status().where(), spec.name);
      }
    }
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
       [](ModelConfig& c) {
         c.score = Score::kAdditive, c.score_size = 65536, c.num_heads = 6;
       }},
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
      {"output_projection",
       [](ModelConfig& c) { c.output_projection = false, c.head_dim = 3; }},
      {"activation", [](ModelConfig& c) { c.activation = Activation::kTanh; }},
      {"activation", [](ModelConfig& c) { c.activation = static_cast<Activation>(99); }},
      {"precision", [](ModelConfig& c) { c.precision = Precision::kFile; }},
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
  Status status = ReadWith(Small(), "activation", [](FileWriter& w) {
    w.SetString("activation", "gelu_new");
  });
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

struct BadTensor {
  const char* where;
  ErrorCode code;
  const char* word;
  std::function<void(std::vector<TensorData>*)> change;
};

std::function<void(std::vector<TensorData>*)> Replace(const char* name, DType dtype,
                                                      std::vector<uint64_t> shape) {
  return [=](std::vector<TensorData>* tensors) { *Find(tensors, name) = Make(name, dtype, shape); };
}

// Makes the tensor I8 with scales of the given value.
std::function<void(std::vector<TensorData>*)> Quantize(const char* name, uint64_t rows,
                                                       float scale) {
  return [=](std::vector<TensorData>* tensors) {
    TensorData* tensor = Find(tensors, name);
    *tensor = Make(name, DType::kI8, tensor->shape);
    TensorData scales = Make(std::string(name) + ".scale", DType::kF32, {rows});
    for (uint64_t i = 0; i < rows; ++i) {
      std::memcpy(scales.bytes.data() + i * sizeof(scale), &scale, sizeof(scale));
    }
    tensors->push_back(scales);
  };
}

TEST(ConfigTest, W52W57W61ToW66TensorsThatDoNotFit) {
  const char* up = "layers.0.ffn.up.weight";
  const char* up_scale = "layers.0.ffn.up.weight.scale";
  const float huge = std::numeric_limits<float>::max();
  const auto corrupt = ErrorCode::kCorrupt, unsupported = ErrorCode::kUnsupported;
  const std::vector<BadTensor> cases = {
      {"embeddings.tokens.weight", corrupt, "[11, 8]",
       Replace("embeddings.tokens.weight", DType::kF32, {12, 8})},
      {"embeddings.types.weight", corrupt, "[2, 8]",
       Replace("embeddings.types.weight", DType::kF32, {1, 8})},
      {"embeddings.positions.weight", corrupt, "[16, 8]",
       Replace("embeddings.positions.weight", DType::kF32, {15, 8})},
      {up, corrupt, "transposed", Replace(up, DType::kF32, {8, 12})},
      {up, corrupt, "[12, 8]", Replace(up, DType::kF32, {12, 8, 1})},
      {"layers.1.ffn_norm.bias", corrupt, "[8]",
       Replace("layers.1.ffn_norm.bias", DType::kF32, {9})},
      {up, unsupported, "I32", Replace(up, DType::kI32, {12, 8})},
      {up, unsupported, "U8", Replace(up, DType::kU8, {12, 8})},
      {"layers.0.ffn.up.bias", unsupported, "F32, F16, BF16,",
       Replace("layers.0.ffn.up.bias", DType::kI8, {12})},
      {up_scale, corrupt, "missing", Replace(up, DType::kI8, {12, 8})},
      {up_scale, corrupt, "[12]", Quantize(up, 11, 1)},
      {up_scale, corrupt, "row 0", Quantize(up, 12, std::nanf(""))},
      {up_scale, corrupt, "row 0", Quantize(up, 12, -1)},
      {up_scale, corrupt, "row 0", Quantize(up, 12, huge)},
      {up_scale, unsupported, "unknown",
       [=](auto* t) { t->push_back(Make(up_scale, DType::kF32, {12})); }},
      {up_scale, corrupt, "F32",
       [=](auto* t) {
         *Find(t, up) = Make(up, DType::kI8, {12, 8});
         t->push_back(Make(up_scale, DType::kF16, {12}));
       }},
      {"layers.2.ffn.up.weight", unsupported, "unknown",
       [](auto* t) { t->push_back(Make("layers.2.ffn.up.weight", DType::kF32, {12, 8})); }},
      {"tokenizer", corrupt, "U8",
       [](auto* t) { t->push_back(Make("tokenizer", DType::kI32, {5})); }},
      {"tokenizer", corrupt, "one dimension",
       [](auto* t) { t->push_back(Make("tokenizer", DType::kU8, {5, 1})); }},
  };
  for (const BadTensor& test : cases) {
    std::vector<TensorData> tensors = AllTensors(Small());
    test.change(&tensors);
    const Status status = Read(Build(Small(), tensors)).status();
    EXPECT_EQ(status.code(), test.code) << test.where << ": " << status.ToString();
    EXPECT_EQ(status.where(), test.where);
    EXPECT_NE(status.what().find(test.word), std::string::npos) << status.ToString();
  }
}

TEST(ConfigTest, GoodTypesAndScales) {
  for (const auto& change :
       {Quantize("layers.0.ffn.up.weight", 12, 0.5f), Quantize("head.weight", 3, 0.0f),
        Quantize("embeddings.tokens.weight", 11, 1e-40f),
        Replace("layers.0.ffn.up.weight", DType::kF16, {12, 8}),
        Replace("layers.0.ffn_norm.weight", DType::kBf16, {8})}) {
    std::vector<TensorData> tensors = AllTensors(Small());
    change(&tensors);
    tensors.push_back(Make("tokenizer", DType::kU8, {5}));
    const Status status = Read(Build(Small(), tensors)).status();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

// W65, W66.
TEST(FiniteTest, FindsEveryBadElement) {
  const auto find = [](DType dtype, uint32_t bits, size_t index) {
    std::vector<std::byte> bytes(3000 * DTypeSize(dtype));
    std::memcpy(bytes.data() + index * DTypeSize(dtype), &bits, DTypeSize(dtype));
    return FindBadWeight(dtype, bytes);
  };
  for (const size_t index : {size_t{0}, size_t{1023}, size_t{1024}, size_t{2999}}) {
    EXPECT_EQ(find(DType::kF32, 0x7F800000, index), index);
    EXPECT_EQ(find(DType::kF32, 0xFFC00001, index), index);
    EXPECT_EQ(find(DType::kF16, 0xFC00, index), index);
    EXPECT_EQ(find(DType::kBf16, 0x7F81, index), index);
    EXPECT_EQ(find(DType::kI8, 0x80, index), index);
    EXPECT_FALSE(find(DType::kF32, 0x7F7FFFFF, index));  // the largest
    EXPECT_FALSE(find(DType::kF32, 0x00000001, index));  // the smallest
    EXPECT_FALSE(find(DType::kF16, 0x7BFF, index));
    EXPECT_FALSE(find(DType::kBf16, 0x7F7F, index));
    EXPECT_FALSE(find(DType::kI8, 0x81, index));
    EXPECT_FALSE(find(DType::kU8, 0x80, index));
    EXPECT_FALSE(find(DType::kI32, 0x7F800000, index));
  }
}

TEST(FiniteTest, NamesTensorRowAndColumn) {
  std::vector<TensorData> tensors = AllTensors(Small());
  const auto check = [&] {
    const FileBytes file = Build(Small(), tensors);
    return CheckFinite(*FileView::Open(file.bytes(), VerifyLevel::kFull, "x"));
  };
  EXPECT_TRUE(check().ok());
  const float nan = std::nanf("");
  TensorData* down = Find(&tensors, "layers.1.ffn.down.weight");  // [8, 12]
  std::memcpy(down->bytes.data() + (3 * 12 + 4) * sizeof(nan), &nan, sizeof(nan));
  EXPECT_EQ(check().where(), "layers.1.ffn.down.weight");
  EXPECT_EQ(check().code(), ErrorCode::kCorrupt);
  EXPECT_NE(check().what().find("row 3, column 4"), std::string::npos) << check().ToString();
  TensorData* bias = Find(&tensors, "head.bias");
  std::memcpy(bias->bytes.data() + 2 * sizeof(nan), &nan, sizeof(nan));
  EXPECT_NE(check().what().find("element 2"), std::string::npos) << check().ToString();
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
