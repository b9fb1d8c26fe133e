// Folders that must not become a file: each gets an error that names what is wrong, and nothing is
// left behind.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/convert_refusal.h"

namespace attend {
namespace {

using nlohmann::json;

TEST(ConvertRefusalsTest, FieldsOfTheConfig) {
  const auto corrupt = ErrorCode::kCorrupt, unsupported = ErrorCode::kUnsupported;
  ExpectRefused(
      "bert_token_classification",
      {
          Field("J02_model_type_unknown", "model_type", "gru", unsupported,
                "\"model_type\" is \"gru\"; allowed: bert, distilbert, electra"),
          Field("J02_model_type_null", "model_type", nullptr, corrupt, "\"model_type\" is missing"),
          Field("J02_model_type_number", "model_type", 7, corrupt, "expected a string"),
          Field("J02_architectures_string", "architectures", "BertModel", corrupt,
                "an array of strings"),
          Field("J02_architectures_empty", "architectures", json::array(), corrupt,
                "belongs to a head"),
          Field("J02_architectures_foreign", "architectures", {"RobertaModel"}, unsupported,
                "allowed: BertModel"),
          Field("J02_architectures_other", "architectures", {"BertForQuestionAnswering"},
                unsupported, "BertForTokenClassification"),
          Field("J03_heads_zero", "num_attention_heads", 0, corrupt, "from 1 to"),
          Field("J03_heads_no_divisor", "num_attention_heads", 5, corrupt,
                "divisor of hidden_size"),
          Field("J03_hidden_zero", "hidden_size", 0, corrupt, "from 1 to 65536"),
          Field("J03_hidden_negative", "hidden_size", -1, corrupt, "\"hidden_size\" is -1"),
          Field("J03_layers_string", "num_hidden_layers", "12", corrupt, "\"12\""),
          Field("J03_layers_float", "num_hidden_layers", 2.0, corrupt, "2.0"),
          Field("J03_layers_many", "num_hidden_layers", 1025, corrupt, "to 1024"),
          Field("J03_layers_2_64", "num_hidden_layers", std::numeric_limits<uint64_t>::max(),
                corrupt, "18446744073709551615"),
          Field("J03_vocab_large", "vocab_size", 2097153, corrupt, "to 2097152"),
          Field("J04_act_unknown", "hidden_act", "mish", unsupported, "gelu, gelu_python"),
          Field("J04_act_gelu_10", "hidden_act", "gelu_10", unsupported, "\"gelu_10\""),
          Field("J04_act_quick", "hidden_act", "quick_gelu", unsupported, "\"quick_gelu\""),
          Field("J04_act_object", "hidden_act", json::object(), corrupt, "expected a string"),
          Field("eps_zero", "layer_norm_eps", 0, corrupt, "layer_norm_eps"),
          Field("eps_string", "layer_norm_eps", "1e-12", corrupt, "layer_norm_eps"),
          Field("relative_positions", "position_embedding_type", "relative_key", unsupported,
                "allowed: \"absolute\""),
          Field("decoder", "is_decoder", true, unsupported, "allowed: false"),
          Field("cross_attention", "add_cross_attention", true, unsupported, "allowed: false"),
          Field("pruned", "pruned_heads", {{"0", {1}}}, unsupported, "pruned_heads"),
          Field("own_code", "auto_map", {{"AutoModel", "modeling.X"}}, unsupported, "auto_map"),
          Field("quantized", "quantization_config", {{"bits", 4}}, unsupported,
                "quantization_config"),
          Field("multi_label", "problem_type", "multi_label_classification", unsupported,
                "allowed: single_label_classification"),
          Field("type_ids", "attend_type_ids", "something", unsupported, "allowed: \"word_shape\""),
          Field("description_number", "description", 5, corrupt, "expected a string"),
          Field("J30_label_count", "id2label", {{"0", "A"}}, corrupt, "an object of 7 labels"),
          Field("J30_label_array", "id2label", {"A", "B"}, corrupt, "an object of 7 labels"),
          Field(
              "J30_label_key", "id2label",
              {{"0", "A"}, {"1", "B"}, {"2", "C"}, {"3", "D"}, {"4", "E"}, {"5", "F"}, {"x", "G"}},
              corrupt, "id2label[\"6\"]"),
          Field("J30_label_number", "id2label",
                {{"0", "A"}, {"1", 1}, {"2", "C"}, {"3", "D"}, {"4", "E"}, {"5", "F"}, {"6", "G"}},
                corrupt, "id2label[\"1\"]"),
          Field("types_differ", "type_vocab_size", 3, corrupt,
                "\"bert.embeddings.token_type_embeddings.weight\" is F32 [2, 48]; expected the "
                "shape [3, 48]"),
          Field("vocab_differs", "vocab_size", 301, corrupt, "expected the shape [301, 48]"),
          Field("vocab_half", "vocab_size", 150, corrupt, "the tokenizer has 300 tokens"),
          Field("layers_differ", "num_hidden_layers", 3, corrupt,
                "bert.encoder.layer.2.attention.self.query.weight\" is missing"),
      });
}

TEST(ConvertRefusalsTest, Weights) {
  const auto corrupt = ErrorCode::kCorrupt;
  const std::string norm = "encoder.layer.0.attention.output.LayerNorm.weight";
  const std::string key = "encoder.layer.1.attention.self.key.weight";
  ExpectRefused(
      "bert",
      {
          Weights(
              "missing", [=](TestTensors& t) { t.erase(key); }, corrupt,
              "self.key.weight\" is missing; expected it with the shape [60, 60]"),
          Weights(
              "missing_bias", [](TestTensors& t) { t.erase("encoder.layer.0.output.dense.bias"); },
              corrupt, "output.dense.bias\" is missing"),
          Weights(
              "missing_embeddings",
              [](TestTensors& t) { t.erase("embeddings.word_embeddings.weight"); }, corrupt,
              "\"bert.embeddings.word_embeddings.weight\" is missing"),
          Weights(
              "transposed",
              [](TestTensors& t) {
                t["encoder.layer.0.output.dense.weight"].shape = {100, 60};
              },
              corrupt, "F32 [100, 60]; expected the shape [60, 100]"),
          Weights(
              "rank",
              [=](TestTensors& t) {
                t[norm].shape = {60, 1};
              },
              corrupt, "F32 [60, 1]; expected the shape [60]"),
          Weights(
              "S33_ambiguous_prefix",
              [](TestTensors& t) {
                t["bert.embeddings.word_embeddings.weight"] =
                    t["embeddings.word_embeddings.weight"];
              },
              corrupt, "got 2"),
          Weights(
              "integers", [=](TestTensors& t) { t[norm].dtype = "I32"; }, ErrorCode::kUnsupported,
              "the type I32; allowed: F32, F16, BF16"),
          Weights(
              "nan",
              [=](TestTensors& t) {
                t[key].floats()[3 * 60 + 7] = std::numeric_limits<float>::quiet_NaN();
              },
              corrupt, "self.key.weight\" has NaN at row 3, column 7"),
          Weights(
              "infinity_in_a_vector",
              [=](TestTensors& t) {
                t[norm].floats()[59] = -std::numeric_limits<float>::infinity();
              },
              corrupt, "has -infinity at element 59"),
      });
  ExpectRefused("bert_f16", {Weights(
                                "S31_f16_infinity",
                                [](TestTensors& t) {
                                  std::string& data = t["pooler.dense.weight"].data;
                                  data[data.size() - 2] = 0;
                                  data[data.size() - 1] = 0x7C;
                                },
                                corrupt, "has infinity at row 39, column 39")});
  ExpectRefused("bert_bf16", {Weights(
                                 "S31_bf16_nan",
                                 [](TestTensors& t) {
                                   std::string& data = t["pooler.dense.weight"].data;
                                   data[0] = static_cast<char>(0x81);
                                   data[1] = 0x7F;
                                 },
                                 corrupt, "has NaN at row 0, column 0")});
}

Refusal File(const char* name, const char* file, std::string bytes, ErrorCode code,
             const char* what) {
  return {name, [file, bytes](TestFolder& folder) { folder.Write(file, bytes); }, code, what};
}

TEST(ConvertRefusalsTest, Files) {
  const auto corrupt = ErrorCode::kCorrupt;
  const std::string lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n";
  const auto replace = [](const char* name, const char* with) {
    return [=](TestFolder& folder) {
      folder.Remove(name);
      if (with != nullptr) folder.Write(with, "x");
    };
  };
  ExpectRefused(
      "bert",
      {
          {"no_config", replace("config.json", nullptr), ErrorCode::kNotFound,
           "without config.json"},
          {"no_weights", replace("model.safetensors", nullptr), ErrorCode::kNotFound,
           "got neither"},
          {"only_pickle", replace("model.safetensors", "pytorch_model.bin"),
           ErrorCode::kUnsupported, "safe_serialization=True"},
          {"only_tensorflow", replace("model.safetensors", "tf_model.h5"), ErrorCode::kUnsupported,
           "tf_model.h5"},
          {"weights_are_a_folder",
           [](TestFolder& folder) {
             folder.Remove("model.safetensors");
             std::filesystem::create_directory(folder.Path("model.safetensors"));
           },
           ErrorCode::kIo, "got a folder"},
          {"weights_are_a_pipe",
           [](TestFolder& folder) {
             folder.Remove("model.safetensors");
             ASSERT_EQ(mkfifo(folder.Path("model.safetensors").c_str(), 0600), 0);
           },
           ErrorCode::kIo, "got a pipe"},
          {"config_is_a_link",
           [](TestFolder& folder) {
             folder.Write("other", ReadWhole(folder.Path("config.json")));
             folder.Remove("config.json");
             std::filesystem::create_symlink("other", folder.Path("config.json"));
           },
           ErrorCode::kIo, "links are not followed"},
          {"tokenizer_is_a_link",
           [](TestFolder& folder) {
             folder.Remove("tokenizer.json");
             std::filesystem::create_symlink("/etc/hostname", folder.Path("tokenizer.json"));
           },
           ErrorCode::kIo, "links are not followed"},
          File("J01_config_lfs", "config.json", lfs, corrupt, "git lfs pull"),
          File("J01_config_html", "config.json", "<html>", corrupt, "an HTML page"),
          File("J01_config_bom", "config.json", "\xEF\xBB\xBF{}", corrupt, "byte order mark"),
          File("J01_config_nan", "config.json", "{\"a\": NaN}", corrupt, "line 1, column"),
          File("J01_config_twice", "config.json", "{\"model_type\":\"a\",\"model_type\":\"bert\"}",
               corrupt, "appears twice"),
          File("J01_config_deep", "config.json", std::string(100000, '['), ErrorCode::kUnsupported,
               "64 levels"),
          File("J01_config_array", "config.json", "[]", corrupt, "expected an object"),
          File("S34_weights_lfs", "model.safetensors", lfs, corrupt, "git lfs pull"),
          File("weights_html", "model.safetensors", "<!DOCTYPE html>", corrupt, "an HTML page"),
          File("weights_pickle", "model.safetensors", "\x80\x02}q.\x01\x02\x03\x04", corrupt,
               "a Python pickle"),
          File("tokenizer_damaged", "tokenizer.json", "{\"model\": 1", corrupt, "not valid JSON"),
      });
  ConvertReport report;
  Status status = ConvertFolder({.folder = "/no/such/folder", .output = "/tmp/m"}, &report);
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  TestFolder folder("bert");
  status = ConvertFolder({.folder = folder.Path("config.json"), .output = "/tmp/m"}, &report);
  EXPECT_EQ(status.code(), ErrorCode::kIo);
  EXPECT_NE(status.what().find("expected a folder"), std::string::npos);
  status = ConvertFolder({.folder = folder.path(), .output = folder.Path("no/such/m")}, &report);
  EXPECT_FALSE(status.ok());
}

TEST(ConvertRefusalsTest, ShardsAndTheirIndex) {
  const auto corrupt = ErrorCode::kCorrupt;
  constexpr char kIndex[] = "model.safetensors.index.json";
  constexpr char kTensor[] = "pooler.dense.bias", kSecond[] = "model-00002-of-00002.safetensors";
  const auto index = [=](std::function<void(json&)> change) {
    return [=](TestFolder& folder) {
      json value = json::parse(ReadWhole(folder.Path(kIndex)));
      change(value["weight_map"]);
      folder.Write(kIndex, value.dump());
    };
  };
  const auto put = [=](json file) { return index([=](json& map) { map[kTensor] = file; }); };
  const char* plain = "expected the plain name of a .safetensors file";
  ExpectRefused(
      "bert_sharded",
      {
          {"S30_parent", put("../x.safetensors"), corrupt, plain},
          {"S30_parents", put("a/../../x.safetensors"), corrupt, plain},
          {"S30_absolute", put("/etc/x.safetensors"), corrupt, plain},
          {"S30_inside", put("a/x.safetensors"), corrupt, plain},
          {"S30_backslash", put("a\\x.safetensors"), corrupt, plain},
          {"S30_nul", put(std::string("x\0.safetensors", 14)), corrupt, plain},
          {"S30_not_safetensors", put("config.json"), corrupt, plain},
          {"S30_index_itself", put(kIndex), corrupt, plain},
          {"S30_number", put(7), corrupt, plain},
          {"S30_missing_shard", put("model-00003-of-00003.safetensors"), ErrorCode::kNotFound,
           "model-00003-of-00003.safetensors"},
          {"S30_absent_from_shard", put("model-00001-of-00002.safetensors"), corrupt,
           "which does not have it"},
          {"S30_no_map", [=](TestFolder& folder) { folder.Write(kIndex, "{\"metadata\":{}}"); },
           corrupt, "\"weight_map\""},
          {"S30_many_shards", index([](json& map) {
             for (int i = 0; i < 1000; ++i) {
               map["t" + std::to_string(i)] = std::to_string(i) + ".safetensors";
             }
           }),
           ErrorCode::kCapacity, "more than 512 shards"},
          {"S30_two_shards_for_one_tensor",
           [=](TestFolder& folder) {
             const char* first = "model-00001-of-00002.safetensors";
             TestTensors tensors = ReadTensors(folder.Path(first));
             tensors[kTensor] = ReadTensors(folder.Path(kSecond))[kTensor];
             folder.Write(first, SafetensorsBytes(tensors));
           },
           corrupt, "is in this file and in"},
          {"S30_symlink",
           [=](TestFolder& folder) {
             std::filesystem::rename(folder.Path(kSecond), folder.Path("second"));
             std::filesystem::create_symlink("second", folder.Path(kSecond));
           },
           ErrorCode::kIo, "links are not followed"},
          {"S30_folder",
           [=](TestFolder& folder) {
             folder.Remove(kSecond);
             std::filesystem::create_directory(folder.Path(kSecond));
           },
           ErrorCode::kIo, "got a folder"},
      });
}

// The folders of the Hugging Face cache are links to files that are named by their content.
TEST(ConvertRefusalsTest, TheLinksOfTheHuggingFaceCacheAreFollowed) {
  TestFolder cache, source("bert"), out;
  int number = 0;
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    const std::string blob = std::string(39, 'a') + std::to_string(number++);
    cache.Write("blobs/" + blob, ReadWhole(source.Path(name)));
    std::filesystem::create_directories(cache.Path("snapshots/1"));
    std::filesystem::create_symlink("../../blobs/" + blob,
                                    cache.Path(std::string("snapshots/1/") + name));
  }
  ConvertReport report;
  const Status status =
      ConvertFolder({.folder = cache.Path("snapshots/1"), .output = out.Path("m")}, &report);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(report.tokenizer, "wordpiece");
}

}  // namespace
}  // namespace attend
