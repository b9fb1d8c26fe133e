// The model's description in the file: what is written is read again, and what does not fit is
// refused with the name of the field or tensor.
#include "engine/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
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

}  // namespace
}  // namespace attend
