// Which layers are more exact than the rest: the ones that lose most, until the budget is kept.
#include "engine/layer_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "engine/format.h"
#include "engine/model.h"
#include "tests/family_configs.h"
#include "tests/random_model.h"

namespace attend {
namespace {

// An encoder in whose layer `spoilt` one weight is so large that int8 keeps nothing of the others.
Model SpoiltModel(const std::string& spoilt) {
  const ModelConfig config = testing::EncoderConfig(48, 2, 4, 96);
  std::vector<std::byte> bytes = *testing::RandomModelBytes(config, 5);
  const Result<FileView> file = FileView::Open(bytes, VerifyLevel::kStructure, "x");
  EXPECT_TRUE(file.ok());
  const auto tensor = file->FindTensor(spoilt + ".weight");
  EXPECT_TRUE(tensor.has_value());
  const auto at = static_cast<size_t>(tensor->bytes.data() - bytes.data());
  const auto width = static_cast<size_t>(tensor->shape[1]);
  for (size_t row = 0; row < tensor->shape[0]; ++row) {
    const float large = 60.0f;
    std::memcpy(bytes.data() + at + row * width * sizeof(float), &large, sizeof(large));
  }
  Result<Model> model = Model::FromBytes(bytes);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return *model;
}

TEST(LayerChoice, NothingIsExactThatNeedNotBe) {
  const Result<Model> model = testing::RandomModel(testing::EncoderConfig(48, 2, 4, 96), 5);
  ASSERT_TRUE(model.ok());
  for (const Precision precision : {Precision::kBf16, Precision::kInt8}) {
    const auto choice = ChooseLayers(*model, {.precision = precision, .budget = 0.1});
    ASSERT_TRUE(choice.ok()) << choice.status().ToString();
    EXPECT_TRUE(choice->f32_layers.empty());
    EXPECT_TRUE(choice->bf16_layers.empty());
    EXPECT_TRUE(choice->measured);
    EXPECT_GT(choice->loss, 0);
    EXPECT_EQ(choice->loss, choice->loss_of_all);
  }
}

TEST(LayerChoice, TheLayerThatLosesMostIsFound) {
  for (const std::string spoilt : {"layers.0.ffn.down", "layers.1.attention.o"}) {
    const Model model = SpoiltModel(spoilt);
    const auto choice = ChooseLayers(model, {.precision = Precision::kInt8, .budget = 0.08});
    ASSERT_TRUE(choice.ok()) << choice.status().ToString();
    EXPECT_GT(choice->loss_of_all, 0.08) << spoilt;
    EXPECT_LE(choice->loss, 0.08) << spoilt;
    std::vector<std::string> exact = choice->bf16_layers;
    exact.insert(exact.end(), choice->f32_layers.begin(), choice->f32_layers.end());
    EXPECT_NE(std::find(exact.begin(), exact.end(), spoilt), exact.end()) << spoilt;
    EXPECT_LT(exact.size(), 12u) << "not all of them";
    EXPECT_TRUE(model.data().config.f32_layers.empty()) << "the model is as it was";
  }
}

// A budget that nothing in bf16 can keep ends in f32.
TEST(LayerChoice, ABudgetOfNothingIsF32) {
  const Result<Model> model = testing::RandomModel(testing::EncoderConfig(24, 1, 2, 48), 5);
  ASSERT_TRUE(model.ok());
  const auto choice = ChooseLayers(*model, {.precision = Precision::kInt8, .budget = 0});
  ASSERT_TRUE(choice.ok()) << choice.status().ToString();
  EXPECT_EQ(choice->loss, 0);
  const std::vector<std::string> all = {"layers.0.attention.k", "layers.0.attention.o",
                                        "layers.0.attention.q", "layers.0.attention.v",
                                        "layers.0.ffn.down",    "layers.0.ffn.up"};
  EXPECT_EQ(choice->f32_layers, all);
  EXPECT_TRUE(choice->bf16_layers.empty());
}

// Whatever a model takes and gives, something can be measured, and twice the same.
TEST(LayerChoice, EveryModelOfTheFamilyIsMeasured) {
  testing::FamilyConfigs configs(12);
  for (uint32_t i = 0; i < 12; ++i) {
    ModelConfig config = configs.Next();
    config.edges |= i % 4 == 0;
    SCOPED_TRACE(testing::Describe(config));
    const Result<Model> model = testing::RandomModel(config, i);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    const LayerChoiceOptions options{
        .precision = Precision::kInt8, .budget = 0.02, .texts = {{1, 2, 3, 4}, {5, 6, -1}, {}}};
    const auto once = ChooseLayers(*model, options), again = ChooseLayers(*model, options);
    ASSERT_TRUE(once.ok()) << once.status().ToString();
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(once->f32_layers, again->f32_layers);
    EXPECT_EQ(once->bf16_layers, again->bf16_layers);
    EXPECT_EQ(once->loss, again->loss);
    if (once->measured) {
      EXPECT_LE(once->loss, 0.02);
    }
  }
}

}  // namespace
}  // namespace attend
