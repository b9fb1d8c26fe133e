// Small models of every part of the family, with tensors that tests may change.
#ifndef ATTEND_TESTS_CONFIG_TESTING_H_
#define ATTEND_TESTS_CONFIG_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config.h"
#include "engine/format.h"

namespace attend::testing {

inline ModelConfig Small() {
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

inline uint64_t Elements(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  return count;
}

inline TensorData Make(std::string name, DType dtype, std::vector<uint64_t> shape) {
  std::vector<std::byte> bytes(Elements(shape) * DTypeSize(dtype));
  return {std::move(name), dtype, std::move(shape), std::move(bytes)};
}

// Every tensor of `config`, with zeros.
inline std::vector<TensorData> AllTensors(const ModelConfig& config) {
  std::vector<TensorData> tensors;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    tensors.push_back(Make(spec.name, DType::kF32, spec.shape));
  }
  return tensors;
}

inline TensorData* Find(std::vector<TensorData>* tensors, std::string_view name) {
  for (TensorData& tensor : *tensors) {
    if (tensor.name == name) return &tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return &tensors->front();
}

inline bool HasTensor(const std::vector<TensorData>& tensors, std::string_view name) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const TensorData& tensor) { return tensor.name == name; });
}

inline void Remove(std::vector<TensorData>* tensors, std::string_view name) {
  std::erase_if(*tensors, [&](const TensorData& tensor) { return tensor.name == name; });
}

inline void AddTensors(const std::vector<TensorData>& tensors, FileWriter* writer) {
  for (const TensorData& tensor : tensors) {
    writer->AddTensor(tensor.name, tensor.dtype, tensor.shape, [&](std::span<std::byte> out) {
      std::memcpy(out.data(), tensor.bytes.data(), out.size());
      return Status();
    });
  }
}

inline FileBytes Finish(const FileWriter& writer) {
  Result<std::vector<std::byte>> bytes = writer.WriteToBytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return FileBytes::Copy(*bytes);
}

inline FileBytes Build(const ModelConfig& config, const std::vector<TensorData>& tensors) {
  FileWriter writer;
  WriteConfig(config, &writer);
  AddTensors(tensors, &writer);
  return Finish(writer);
}

inline Result<ModelConfig> Read(const FileBytes& file) {
  Result<FileView> view = FileView::Open(file.bytes(), VerifyLevel::kFull, "test.attend");
  if (!view.ok()) return view.status();
  return ReadConfig(*view);
}

// A point of the family for every part that has fields or tensors of its own.
inline std::vector<ModelConfig> Family() {
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
  add([](ModelConfig& c) { c.task = Task::kSequence, c.pooler = true, c.head_from_pooler = true; });
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

}  // namespace attend::testing

#endif  // ATTEND_TESTS_CONFIG_TESTING_H_
