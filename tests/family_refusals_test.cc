// Folders of model_type "attend_encoder" that must not become a file: those of
// tests/data/family_bad, and one mistake after another in good ones. The error names field or
// tensor, what it is, and what is allowed; nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "tests/convert_refusal.h"
#include "tools/exit_code.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr ErrorCode kBroken = ErrorCode::kCorrupt, kUnknown = ErrorCode::kUnsupported;

// "names: a, b" of expected.txt.
std::vector<std::string> NamesOf(const std::string& expected) {
  const std::string key = "names: ";
  const size_t begin = expected.find(key);
  std::vector<std::string> names;
  if (begin == std::string::npos) return names;
  std::istringstream line(expected.substr(begin + key.size()));
  for (std::string name; std::getline(line, name, ',');) {
    name.erase(0, name.find_first_not_of(" "));
    name.erase(name.find_last_not_of(" \r\n") + 1);
    names.push_back(name);
  }
  return names;
}

TEST(FamilyRefusals, EveryBadFolder) {
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEND_TEST_DATA "/family_bad")) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path().filename());
    ++folders;
    const TestFolder out;
    ConvertReport report;
    const Status status = ConvertFolder({.folder = entry.path(), .output = out.Path("m")}, &report);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(tools::ExitCodeOf(status.code()), tools::kExitInvalid);
    const std::vector<std::string> names = NamesOf(ReadWhole(entry.path() / "expected.txt"));
    EXPECT_FALSE(names.empty());
    for (const std::string& name : names) {
      EXPECT_NE(status.ToString().find(name), std::string::npos)
          << name << " is not in: " << status.ToString();
    }
    EXPECT_TRUE(std::filesystem::is_empty(out.path()));
  }
  EXPECT_EQ(folders, 18);
}

TEST(FamilyRefusals, ItsBaseIsAccepted) {
  const TestFolder out;
  ConvertReport report;
  const Status status = ConvertFolder(
      {.folder = ATTEND_TEST_DATA "/family/base_of_the_refusals", .output = out.Path("m")},
      &report);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(out.Has("m"));
}

TEST(FamilyRefusals, SizesAndTypes) {
  ExpectRefused(
      "../family/base_of_the_refusals",
      {
          Field("unknown", "dropout", 0.1, kUnknown, "\"dropout\" is unknown; allowed: "),
          Field("of_transformers", "architectures", {"AttendEncoder"}, kUnknown,
                "\"architectures\" is unknown"),
          Field("null", "num_key_value_heads", nullptr, kBroken,
                "\"num_key_value_heads\" is null; expected a value, or no such field"),
          Field("input_unknown", "input", "audio", kUnknown,
                "\"input\" is \"audio\"; allowed: tokens, vectors"),
          Field("input_number", "input", 1, kBroken, "\"input\" is 1; expected a string"),
          Field("vocab_zero", "vocab_size", 0, kBroken,
                "\"vocab_size\" is 0; expected an integer from 1"),
          Field("vocab_float", "vocab_size", 11.0, kBroken, "\"vocab_size\" is 11.0"),
          Field("vectors_without_size", "input", "vectors", kBroken, "\"input_size\" is missing"),
          Field("hidden_zero", "hidden_size", 0, kBroken, "\"hidden_size\" is 0"),
          Field("hidden_text", "hidden_size", "12", kBroken, "\"hidden_size\" is \"12\""),
          Field("hidden_2_64", "hidden_size", std::numeric_limits<uint64_t>::max(), kBroken,
                "18446744073709551615"),
          Field("layers_negative", "num_hidden_layers", -1, kBroken, "\"num_hidden_layers\" is -1"),
          Field("layers_many", "num_hidden_layers", 1025, kBroken, "0 to 1024"),
          Field("layers_more_than_there_are", "num_hidden_layers", 1024, kBroken,
                "\"layers.2.attention.q.weight\" is missing"),
          Field("heads_zero", "num_attention_heads", 0, kBroken, "\"num_attention_heads\" is 0"),
          Field("heads_do_not_divide", "num_attention_heads", 5, kBroken,
                "\"num_attention_heads\" is 5; expected a divisor of hidden_size, 12, or the field "
                "\"head_dim\""),
          Field("kv_zero", "num_key_value_heads", 0, kBroken, "\"num_key_value_heads\" is 0"),
          Field("kv_more", "num_key_value_heads", 12, kBroken,
                "\"num_key_value_heads\" is 12; expected a divisor of num_attention_heads, 6"),
          Field("head_dim_zero", "head_dim", 0, kBroken, "\"head_dim\" is 0"),
          Field("head_dim_large", "head_dim", 65536, kBroken, "at most 262144"),
          Field("ffn_negative", "intermediate_size", -1, kBroken, "\"intermediate_size\" is -1"),
          Field("ffn_differs", "intermediate_size", 11, kBroken,
                "\"layers.0.ffn.up.weight\" is F32 [10, 12]; expected the shape [11, 12]"),
          Field("edges_number", "edges", 1, kBroken, "\"edges\" is 1; expected true or false"),
          Field("causal_text", "causal", "yes", kBroken, "\"causal\" is \"yes\""),
          Field("residual_null", "residual", nullptr, kBroken, "\"residual\" is null"),
          Field("eps_zero", "norm_eps", 0, kBroken, "\"norm_eps\" is 0"),
          Field("eps_negative", "norm_eps", -1e-12, kBroken, "\"norm_eps\" is -1e-12"),
          Field("eps_text", "norm_eps", "1e-12", kBroken, "\"norm_eps\" is \"1e-12\""),
          Field("eps_zero_in_f32", "norm_eps", 1e-50, kBroken, "\"norm_eps\" is 1e-50"),
          Field("global_negative", "global_tokens", -1, kBroken, "\"global_tokens\" is -1"),
          Field("description_number", "description", 5, kBroken, "expected a string"),
          Field("type_ids", "attend_type_ids", "word_shape", kUnknown,
                "\"attend_type_ids\" is unknown"),
      });
}

TEST(FamilyRefusals, ValuesAndCombinations) {
  const auto with = [](const char* name, std::vector<std::pair<const char*, json>> fields,
                       ErrorCode code, const char* what) {
    return Refusal{name,
                   [fields](TestFolder& folder) {
                     for (const auto& [key, value] : fields) folder.config[key] = value;
                     folder.Save();
                   },
                   code, what};
  };
  ExpectRefused(
      "../family/base_of_the_refusals",
      {
          Field("position", "position", "absolute", kUnknown,
                "\"position\" is \"absolute\"; allowed: none, learned, sinusoidal, rotary"),
          Field("score", "score", "cosine", kUnknown, "allowed: scaled_dot, dot, additive"),
          Field("score_bias", "score_bias", "t5", kUnknown, "allowed: none, alibi, relative"),
          Field("normalizer", "normalizer", "Softmax", kUnknown,
                "allowed: softmax, softmax1, relu, relu2, sigmoid, none"),
          Field("normalizer_scale", "normalizer_scale", "sqrt", kUnknown, "allowed: none, length"),
          Field("norm", "norm", "sandwich", kUnknown, "allowed: post, pre, none"),
          Field("norm_type", "norm_type", "batch_norm", kUnknown, "allowed: layer_norm, rms_norm"),
          Field("activation", "activation", "tanh", kUnknown,
                "allowed: gelu, gelu_tanh, relu, silu, geglu, swiglu"),
          Field("task", "task", "embedding", kUnknown, "allowed: none, tokens, sequence"),
          with("pooling", {{"task", "sequence"}, {"pooling", "cls"}}, kUnknown,
               "\"pooling\" is \"cls\"; allowed: mean, max, first, last"),
          with("softmax1_length", {{"normalizer", "softmax1"}, {"normalizer_scale", "length"}},
               kUnknown, "does not combine with normalizer \"softmax1\""),
          with("rotary_odd", {{"position", "rotary"}, {"head_dim", 3}}, kUnknown,
               "heads of 3 columns; allowed: an even head_dim"),
          with("rotary_theta", {{"position", "rotary"}, {"rope_theta", 0}}, kBroken,
               "\"rope_theta\" is 0"),
          with("additive_without_size", {{"score", "additive"}, {"score_size", 0}}, kBroken,
               "\"score_size\" is 0"),
          with("additive_large", {{"score", "additive"}, {"score_size", 65536}}, kBroken,
               "at most 262144"),
          with("no_output_projection", {{"output_projection", false}, {"head_dim", 4}}, kUnknown,
               "6 x 4 = 24 columns and hidden_size 12"),
          with("buckets_odd", {{"score_bias", "relative"}, {"relative_buckets", 7}}, kBroken,
               "\"relative_buckets\" is 7; expected an even number"),
          with("buckets_two", {{"score_bias", "relative"}, {"relative_buckets", 2}}, kBroken,
               "\"relative_buckets\" is 2"),
          with("buckets_reach",
               {{"score_bias", "relative"}, {"relative_buckets", 10}, {"relative_max_distance", 2}},
               kBroken, "\"relative_max_distance\" is 2; expected more than 2"),
          with("learned_none", {{"position", "learned"}, {"max_position_embeddings", 0}}, kBroken,
               "\"max_position_embeddings\" is 0"),
          with("learned_without_table", {{"position", "learned"}}, kBroken,
               "\"embeddings.positions.weight\" is missing; expected it with the shape [512, 12]"),
          Field("window_one", "window", {3}, kBroken, "\"window\" is [3]; expected null, or"),
          Field("window_number", "window", 3, kBroken, "\"window\" is 3"),
          Field("window_float", "window", {1.5, 2}, kBroken, "[1.5,2]"),
          Field("window_right", "window", {1, -2}, kBroken, "[1,-2]"),
          Field("labels_few", "id2label", {{"0", "A"}}, kBroken, "an object of 4 labels"),
          Field("labels_list", "id2label", {"A", "B", "C", "D"}, kBroken, "expected an object"),
          Field("labels_key", "id2label", {{"0", "A"}, {"1", "B"}, {"2", "C"}, {"4", "D"}}, kBroken,
                "id2label[\"3\"]"),
          Field("labels_number", "id2label", {{"0", "A"}, {"1", 1}, {"2", "C"}, {"3", "D"}},
                kBroken, "id2label[\"1\"]"),
      });
}

TEST(FamilyRefusals, Weights) {
  ExpectRefused(
      "../family/base_of_the_refusals",
      {
          Weights(
              "head", [](TestTensors& t) { t.erase("head.weight"); }, kBroken,
              "\"head.weight\" is missing"),
          Weights(
              "head_width",
              [](TestTensors& t) {
                t["head.weight"].shape = {12, 4};
              },
              kBroken, "an object of 12 labels"),
          Weights(
              "norm", [](TestTensors& t) { t.erase("layers.1.ffn_norm.weight"); }, kBroken,
              "\"layers.1.ffn_norm.weight\" is missing"),
          Weights(
              "bias_shape",
              [](TestTensors& t) {
                t["layers.0.attention.q.bias"].shape = {12, 1};
              },
              kBroken, "F32 [12, 1]; expected the shape [12]"),
          Weights(
              "bias_without_weight",
              [](TestTensors& t) { t["embeddings.norm.bias"] = RandomTensor(12, 0, 3); }, kBroken,
              "\"embeddings.norm.weight\" is missing, but \"embeddings.norm.bias\""),
          Weights(
              "infinity",
              [](TestTensors& t) {
                t["embeddings.tokens.weight"].floats()[13] = std::numeric_limits<float>::infinity();
              },
              kBroken, "\"embeddings.tokens.weight\" has infinity at row 1, column 1"),
      });
  ExpectRefused(
      "../family/learned_vectors_projection_max",
      {
          Field("width", "input_size", 14, kBroken,
                "\"input.projection.weight\" is F32 [24, 13]; expected the shape [24, 14]"),
          Field("positions", "max_position_embeddings", 512, kBroken,
                "\"embeddings.positions.weight\" is F32 [200, 24]"),
          Weights(
              "projection", [](TestTensors& t) { t.erase("input.projection.weight"); }, kBroken,
              "\"input.projection.weight\" is missing"),
      });
  ExpectRefused(
      "../family/additive_relative_softmax1",
      {
          Field("score_size", "score_size", 12, kBroken, "\"layers.0.attention.qa.weight\""),
          Field("buckets", "relative_buckets", 16, kBroken,
                "\"relative.weight\" is F32 [32, 2]; expected the shape [16, 2]"),
          Weights(
              "va", [](TestTensors& t) { t.erase("layers.0.attention.va"); }, kBroken,
              "\"layers.0.attention.va\" is missing"),
          Weights(
              "gate", [](TestTensors& t) { t.erase("layers.1.ffn.gate.weight"); }, kBroken,
              "\"layers.1.ffn.gate.weight\" is missing"),
      });
}

// Whatever stands in a field, the folder is refused by name, or becomes a file that loads.
TEST(FamilyRefusals, EveryFieldWithOddValues) {
  const json odd[] = {nullptr,
                      true,
                      -1,
                      0,
                      3,
                      1 << 30,
                      std::numeric_limits<int64_t>::max(),
                      std::numeric_limits<uint64_t>::max(),
                      0.5,
                      1e300,
                      "",
                      "none",
                      std::string(100000, 'x'),
                      json::array(),
                      {0, 0},
                      json::object()};
  const char* const fields[] = {"activation",
                                "causal",
                                "edges",
                                "global_tokens",
                                "head_dim",
                                "hidden_size",
                                "id2label",
                                "input",
                                "input_size",
                                "norm",
                                "norm_eps",
                                "norm_type",
                                "normalizer",
                                "normalizer_scale",
                                "num_attention_heads",
                                "num_hidden_layers",
                                "position",
                                "pooling",
                                "output_projection",
                                "max_position_embeddings",
                                "relative_buckets",
                                "residual",
                                "rope_theta",
                                "num_key_value_heads",
                                "score",
                                "score_bias",
                                "score_size",
                                "intermediate_size",
                                "task",
                                "vocab_size",
                                "window",
                                "relative_max_distance"};
  int accepted = 0, refused = 0;
  for (const char* base : {"../family/base_of_the_refusals", "../family/additive_relative_softmax1",
                           "../family/learned_vectors_projection_max"}) {
    TestFolder folder(base);
    const json good = folder.config;
    for (const char* field : fields) {
      for (const json& value : odd) {
        folder.config = good;
        folder.config[field] = value;
        folder.Write("config.json", folder.config.dump());
        SCOPED_TRACE(std::string(base) + " " + field + " " + value.dump().substr(0, 40));
        ConvertReport report;
        const Status status =
            ConvertFolder({.folder = folder.path(), .output = folder.Path("m")}, &report);
        if (status.ok()) {
          ++accepted;
          const Result<Model> model = Model::Load(folder.Path("m"));
          EXPECT_TRUE(model.ok()) << model.status().ToString();
          continue;
        }
        ++refused;
        EXPECT_EQ(tools::ExitCodeOf(status.code()), tools::kExitInvalid) << status.ToString();
        EXPECT_LT(status.ToString().size(), 1500u);
      }
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

// Fields that do not apply have no effect, whatever they say.
TEST(FamilyRefusals, WhatDoesNotApplyChangesNothing) {
  const auto convert = [](const TestFolder& folder) {
    const TestFolder out;
    ConvertReport report;
    const Status status =
        ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return ReadWhole(out.Path("m"));
  };
  TestFolder folder("../family/base_of_the_refusals");
  const std::string plain = convert(folder);
  folder.config.update({{"rope_theta", -3},
                        {"score_size", -1},
                        {"relative_buckets", 7},
                        {"relative_max_distance", 0},
                        {"max_position_embeddings", 0},
                        {"input_size", 0},
                        {"pooling", "last"},
                        {"window", nullptr},
                        {"head_dim", 2},
                        {"num_key_value_heads", 6}});
  folder.Save();
  EXPECT_TRUE(convert(folder) == plain);
  folder.config["score_size"] = "none";  // but what has the wrong type is a mistake
  folder.Save();
  ConvertReport report;
  EXPECT_FALSE(ConvertFolder({.folder = folder.path(), .output = folder.Path("m")}, &report).ok());
}

// Tensors that do not apply are left out and named.
TEST(FamilyRefusals, TensorsThatDoNotApplyAreNamed) {
  TestFolder folder("../family/base_of_the_refusals");
  folder.tensors["layers.2.attention.q.weight"] = RandomTensor(12, 12, 1);
  folder.tensors["final_norm.weight"] = RandomTensor(12, 0, 2);
  folder.Save();
  ConvertReport report;
  const Status status =
      ConvertFolder({.folder = folder.path(), .output = folder.Path("m")}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_EQ(report.unused.size(), 2u);
  EXPECT_EQ(report.unused[0].name, "final_norm.weight");
  EXPECT_EQ(report.unused[1].name, "layers.2.attention.q.weight");
}

}  // namespace
}  // namespace attend
