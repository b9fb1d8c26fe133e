// The tensors of a file held against its config: missing, unknown, of another shape or type, badly
// scaled, not finite.
#include "engine/config_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/config.h"
#include "engine/format.h"
#include "tests/config_testing.h"

namespace attend {
namespace {

using namespace testing;  // NOLINT: the small models

// W60: each required tensor in turn; what is optional may be missing.
TEST(ConfigTensorsTest, W60EachRequiredTensorMissing) {
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

TEST(ConfigTensorsTest, W52W57W61ToW66TensorsThatDoNotFit) {
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
       [](auto* t) {
         t->push_back(Make("layers.2.ffn.up.weight", DType::kF32, {12, 8}));
       }},
      {"tokenizer", corrupt, "U8",
       [](auto* t) { t->push_back(Make("tokenizer", DType::kI32, {5})); }},
      {"tokenizer", corrupt, "one dimension",
       [](auto* t) {
         t->push_back(Make("tokenizer", DType::kU8, {5, 1}));
       }},
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

TEST(ConfigTensorsTest, GoodTypesAndScales) {
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

}  // namespace
}  // namespace attend
