// Sentence embeddings: modules.json and the folders it names.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/config.h"
#include "engine/format.h"
#include "tests/hf_folder.h"
#include "tools/convert.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr char kOld[] = "sentence_transformers.models.";

json Module(const std::string& type, const std::string& path) {
  return {{"idx", 0}, {"name", "0"}, {"path", path}, {"type", type}};
}

json OldModules(const std::vector<std::string>& kinds) {
  json modules = json::array();
  for (size_t i = 0; i < kinds.size(); ++i) {
    modules.push_back(Module(kOld + kinds[i], i == 0 ? "" : std::to_string(i) + "_" + kinds[i]));
  }
  return modules;
}

json PoolingConfig(const std::string& chosen) {
  json config = {{"word_embedding_dimension", 60}};
  for (const char* mode : {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens",
                           "weightedmean_tokens", "lasttoken"}) {
    config[std::string("pooling_mode_") + mode] = chosen == mode;
  }
  return config;
}

// Makes `folder` one of sentence-transformers.
void Fill(const TestFolder& folder, const json& modules, const json& pooling) {
  folder.Write("modules.json", modules.dump());
  folder.Write("1_Pooling/config.json", pooling.dump());
}

TEST(ConvertSentenceTest, PoolingAndLength) {
  const struct {
    const char* mode;
    Pooling pooling;
  } cases[] = {{"cls_token", Pooling::kFirst},
               {"mean_tokens", Pooling::kMean},
               {"max_tokens", Pooling::kMax},
               {"lasttoken", Pooling::kLast}};
  for (const auto& c : cases) {
    for (const bool normalize : {false, true}) {
      SCOPED_TRACE(c.mode);
      TestFolder folder("bert"), out;
      std::vector<std::string> kinds = {"Transformer", "Pooling"};
      if (normalize) kinds.push_back("Normalize");
      Fill(folder, OldModules(kinds), PoolingConfig(c.mode));
      folder.Write("sentence_bert_config.json",
                   R"({"max_seq_length": 40, "do_lower_case": false})");
      ConvertReport report;
      const Status status =
          ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
      ASSERT_TRUE(status.ok()) << status.ToString();
      const auto bytes = FileBytes::Open(out.Path("m"), FileBytes::Mode::kRead);
      const auto view = FileView::Open(bytes->bytes(), VerifyLevel::kFull, "m");
      const auto config = ReadConfig(*view);
      ASSERT_TRUE(config.ok()) << config.status().ToString();
      EXPECT_EQ(config->task, Task::kEmbedding);
      EXPECT_EQ(config->pooling, c.pooling);
      EXPECT_EQ(config->normalize, normalize);
      EXPECT_FALSE(config->pooler);
      EXPECT_EQ(config->max_length, 40);
      EXPECT_EQ(config->max_positions, 64);
      ASSERT_EQ(report.unused.size(), 2u);
      EXPECT_EQ(report.unused[0].name, "pooler.dense.bias");
      EXPECT_NE(report.unused[0].reason.find("sentence embedding"), std::string::npos);
    }
  }
}

TEST(ConvertSentenceTest, DenseLayersAndTheNewNamesOfModules) {
  TestFolder folder("bert"), out;
  const std::string fresh = "sentence_transformers.sentence_transformer.modules.";
  json modules = {Module("sentence_transformers.base.modules.transformer.Transformer", ""),
                  Module(fresh + "pooling.Pooling", "1_Pooling"),
                  Module("sentence_transformers.base.modules.dense.Dense", "2_Dense"),
                  Module(kOld + std::string("Dense"), "3_Dense"),
                  Module(fresh + "normalize.Normalize", "4_Normalize")};
  Fill(folder, modules, {{"embedding_dimension", 60}, {"pooling_mode", "mean"}});
  folder.Write("2_Dense/config.json",
               R"({"in_features": 60, "out_features": 24, "bias": true,
                   "activation_function": "torch.nn.modules.activation.Tanh"})");
  TestTensors first{{"linear.weight", RandomTensor(24, 60, 1)},
                    {"linear.bias", RandomTensor(24, 0, 2)}};
  folder.Write("2_Dense/model.safetensors", SafetensorsBytes(first));
  folder.Write("3_Dense/config.json",
               R"({"in_features": 24, "out_features": 8, "bias": false,
                   "activation_function": "torch.nn.modules.linear.Identity"})");
  TestTensors second{{"linear.weight", RandomTensor(8, 24, 3)}};
  folder.Write("3_Dense/model.safetensors", SafetensorsBytes(second));
  ConvertReport report;
  const Status status = ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto bytes = FileBytes::Open(out.Path("m"), FileBytes::Mode::kRead);
  const auto view = FileView::Open(bytes->bytes(), VerifyLevel::kFull, "m");
  const auto config = ReadConfig(*view);
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->pooling, Pooling::kMean);
  EXPECT_TRUE(config->normalize);
  EXPECT_EQ(config->dense, (std::vector<Activation>{Activation::kTanh, Activation::kNone}));
  EXPECT_EQ(config->dense_sizes, (std::vector<int64_t>{24, 8}));
  EXPECT_TRUE(view->FindTensor("dense.0.bias").has_value());
  EXPECT_FALSE(view->FindTensor("dense.1.bias").has_value());
  EXPECT_EQ(report.unused.size(), 2u);  // the pooler
}

TEST(ConvertSentenceTest, TheTransformerMayHaveAFolderOfItsOwn) {
  TestFolder folder, inside("bert"), out;
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    folder.Write(std::string("0_Transformer/") + name, ReadWhole(inside.Path(name)));
  }
  json modules = OldModules({"Transformer", "Pooling"});
  modules[0]["path"] = "0_Transformer";
  Fill(folder, modules, PoolingConfig("mean_tokens"));
  ConvertReport report;
  const Status status = ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(report.config.task, Task::kEmbedding);
  EXPECT_EQ(report.tokenizer, "wordpiece");
}

struct FolderRefusal {
  const char* name;
  std::function<void(json& modules, json& pooling)> change;
  ErrorCode code;
  const char* what;
};

TEST(ConvertSentenceTest, RefusesWhatItDoesNotRun) {
  const auto unsupported = ErrorCode::kUnsupported, corrupt = ErrorCode::kCorrupt;
  const char* order = "expected Transformer, Pooling";
  const FolderRefusal cases[] = {
      {"J29_two_modes", [](json&, json& pooling) { pooling["pooling_mode_cls_token"] = true; },
       unsupported, "cls and mean"},
      {"J29_no_mode", [](json&, json& pooling) { pooling["pooling_mode_mean_tokens"] = false; },
       unsupported, "\"none\"; allowed: exactly one of cls"},
      {"J29_mean_sqrt",
       [](json&, json& pooling) { pooling = PoolingConfig("mean_sqrt_len_tokens"); }, unsupported,
       "mean_sqrt_len_tokens"},
      {"J29_weighted_mean",
       [](json&, json& pooling) { pooling = PoolingConfig("weightedmean_tokens"); }, unsupported,
       "weightedmean"},
      {"J29_unknown_mode",
       [](json&, json& pooling) {
         pooling = {{"pooling_mode", "median"}};
       },
       unsupported, "median"},
      {"J29_mode_string", [](json&, json& pooling) { pooling["pooling_mode_mean_tokens"] = "yes"; },
       corrupt, "true or false"},
      {"pooling_width", [](json&, json& pooling) { pooling["word_embedding_dimension"] = 61; },
       corrupt, "vectors of 61"},
      {"J29_unknown_class", [](json& modules, json&) { modules[2]["type"] = "os.system"; },
       unsupported, "\"os.system\""},
      {"J29_foreign_class", [](json& modules, json&) { modules[1]["type"] = "evil.Pooling"; },
       unsupported, "\"evil.Pooling\""},
      {"J29_unknown_module",
       [](json& modules, json&) { modules[2]["type"] = kOld + std::string("LSTM"); }, unsupported,
       "LSTM"},
      {"J29_traversal", [](json& modules, json&) { modules[1]["path"] = "../1_Pooling"; }, corrupt,
       "plain name of a folder"},
      {"J29_absolute", [](json& modules, json&) { modules[1]["path"] = "/etc"; }, corrupt,
       "plain name of a folder"},
      {"J29_missing_folder", [](json& modules, json&) { modules[1]["path"] = "9_Pooling"; },
       ErrorCode::kNotFound, "9_Pooling"},
      {"J29_dense_missing_folder",
       [](json& modules, json&) { modules[2] = Module(kOld + std::string("Dense"), "2_Dense"); },
       ErrorCode::kNotFound, "2_Dense"},
      {"normalize_before_pooling", [](json& modules, json&) { std::swap(modules[1], modules[2]); },
       unsupported, order},
      {"two_poolings", [](json& modules, json&) { modules[2] = modules[1]; }, unsupported, order},
      {"no_transformer", [](json& modules, json&) { modules.erase(0); }, unsupported, order},
      {"no_modules", [](json& modules, json&) { modules = json::array(); }, corrupt,
       "1 to 32 modules"},
      {"modules_object", [](json& modules, json&) { modules = json::object(); }, corrupt,
       "1 to 32 modules"},
  };
  for (const FolderRefusal& c : cases) {
    SCOPED_TRACE(c.name);
    TestFolder folder("bert"), out;
    json modules = OldModules({"Transformer", "Pooling", "Normalize"});
    json pooling = PoolingConfig("mean_tokens");
    c.change(modules, pooling);
    Fill(folder, modules, pooling);
    ConvertReport report;
    const Status status =
        ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), c.code) << status.ToString();
    EXPECT_NE(status.ToString().find(c.what), std::string::npos) << status.ToString();
    EXPECT_FALSE(out.Has("m"));
  }
}

TEST(ConvertSentenceTest, RefusesDenseLayersThatDoNotFit) {
  const struct {
    const char* name;
    json change;
    const char* what;
  } cases[] = {
      {"width", {{"in_features", 61}}, "expected 60"},
      {"python_path", {{"activation_function", "os.system"}}, "allowed: torch.nn.modules"},
      {"features_float", {{"out_features", 8.5}}, "an integer"},
      {"rows", {{"out_features", 9}}, "F32 [8, 60]; expected the shape [9, 60]"},
      {"bias_missing", {{"bias", true}}, "linear.bias\" is missing"},
      {"other_input", {{"module_input_name", "token_embeddings"}}, "sentence_embedding"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    TestFolder folder("bert"), out;
    Fill(folder, OldModules({"Transformer", "Pooling", "Dense"}), PoolingConfig("mean_tokens"));
    json config = {{"in_features", 60}, {"out_features", 8}, {"bias", false}};
    config.update(c.change);
    folder.Write("2_Dense/config.json", config.dump());
    folder.Write("2_Dense/model.safetensors",
                 SafetensorsBytes({{"linear.weight", RandomTensor(8, 60, 3)}}));
    ConvertReport report;
    const Status status =
        ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.ToString().find(c.what), std::string::npos) << status.ToString();
    EXPECT_FALSE(out.Has("m"));
  }
}

}  // namespace
}  // namespace attend
