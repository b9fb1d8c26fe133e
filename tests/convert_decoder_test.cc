// Folders of models that generate: fields that would change what is computed and are not known are
// refused by name, and tensors that are stored turned or in one piece come out right.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/config.h"
#include "engine/format.h"
#include "engine/ops/rotary.h"
#include "tests/convert_refusal.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr auto kCorrupt = ErrorCode::kCorrupt;
constexpr auto kUnsupported = ErrorCode::kUnsupported;

TEST(ConvertDecoder, RefusedOfLlama) {
  const auto scaled = [](const char* type) {
    return json{{"rope_type", type}, {"factor", 4.0}, {"rope_theta", 10000.0}};
  };
  ExpectRefused(
      "llama",
      {
          Field("dynamic", "rope_parameters", scaled("dynamic"), kUnsupported,
                "\"rope_type\" is \"dynamic\"; allowed: default, linear, llama3"),
          Field("yarn", "rope_parameters", scaled("yarn"), kUnsupported, "\"yarn\""),
          Field("llama3_half", "rope_parameters", scaled("llama3"), kCorrupt,
                "\"low_freq_factor\" is missing; llama3 needs it"),
          Field("no_factor", "rope_parameters", {{"rope_type", "linear"}}, kCorrupt,
                "\"factor\" is missing; linear needs it"),
          Field("factor_zero", "rope_parameters", {{"rope_type", "linear"}, {"factor", 0}},
                kCorrupt, "factor"),
          Field("not_an_object", "rope_parameters", 4, kCorrupt, "an object"),
          Field("partial", "partial_rotary_factor", 0.5, kUnsupported, "partial_rotary_factor"),
          Field("activation", "hidden_act", "quick_gelu", kUnsupported, "\"quick_gelu\""),
          Field("head_dim_odd", "head_dim", 13, kUnsupported, "head_dim: Expected an even number"),
          Field("groups", "num_key_value_heads", 3, kUnsupported, "num_kv_heads"),
          Field("bias_missing", "attention_bias", true, kCorrupt,
                "self_attn.q_proj.bias\" is missing"),
          Field("ffn_bias_missing", "mlp_bias", true, kCorrupt, "up_proj.bias\" is missing"),
          Field("class", "architectures", {"LlamaForSequenceClassification"}, kUnsupported,
                "allowed: LlamaForCausalLM, LlamaModel"),
          Field("encoder_decoder", "is_encoder_decoder", true, kUnsupported, "is_encoder_decoder"),
          Field("positions", "max_position_embeddings", 0, kCorrupt, "max_position_embeddings"),
      });
}

TEST(ConvertDecoder, RefusedOfQwen3) {
  ExpectRefused("qwen3",
                {
                    Field("window", "use_sliding_window", true, kUnsupported, "use_sliding_window"),
                    Field("layer_types", "layer_types", {"full_attention", "sliding_attention"},
                          kUnsupported, "\"sliding_attention\"; allowed: full_attention"),
                });
}

TEST(ConvertDecoder, RefusedOfGpt2) {
  ExpectRefused(
      "gpt2", {
                  Field("by_layer", "scale_attn_by_inverse_layer_idx", true, kUnsupported,
                        "scale_attn_by_inverse_layer_idx"),
                  Field("cross", "add_cross_attention", true, kUnsupported, "add_cross_attention"),
                  Field("heads", "n_head", 5, kCorrupt, "a divisor of n_embd, 48"),
                  Field("inner", "n_inner", 100, kCorrupt, "expected the shape [48, 100]"),
                  Field("class", "architectures", {"GPT2ForSequenceClassification"}, kUnsupported,
                        "allowed: GPT2LMHeadModel, GPT2Model"),
              });
}

TEST(ConvertDecoder, RefusedOfPairs) {
  ExpectRefused("t5",
                {
                    Field("ffn", "feed_forward_proj", "gated-mish", kUnsupported,
                          "\"gated-mish\"; allowed: relu, gated-gelu"),
                    Field("act", "dense_act_fn", "gelu", kUnsupported, "dense_act_fn"),
                    Field("alone", "is_encoder_decoder", false, kUnsupported, "is_encoder_decoder"),
                    Field("class", "architectures", {"T5ForTokenClassification"}, kUnsupported,
                          "allowed: T5ForConditionalGeneration"),
                    Field("layers", "num_decoder_layers", 3, kCorrupt,
                          "decoder.block.2.layer.0.SelfAttention"),
                    Field("distance", "relative_attention_max_distance", 16, kUnsupported,
                          "more than relative_buckets / 2"),
                });
  ExpectRefused("bart",
                {
                    Field("pre_norm", "normalize_before", true, kUnsupported, "normalize_before"),
                    Field("sinusoids", "static_position_embeddings", true, kUnsupported,
                          "static_position_embeddings"),
                    Field("heads", "decoder_attention_heads", 5, kCorrupt,
                          "\"decoder_attention_heads\" is 5"),
                    Field("positions", "max_position_embeddings", 60, kCorrupt,
                          "expected the shape [62, 48]"),
                });
  ExpectRefused("marian", {
                              Field("own_embeddings", "share_encoder_decoder_embeddings", false,
                                    kUnsupported, "share_encoder_decoder_embeddings"),
                              Field("own_vocabulary", "decoder_vocab_size", 61, kUnsupported,
                                    "decoder_vocab_size"),
                          });
}

// Converts and reads back.
class ConvertedDecoder {
 public:
  explicit ConvertedDecoder(const TestFolder& folder) {
    ConvertReport report;
    const Status status =
        ConvertFolder({.folder = folder.path(), .output = out_.Path("m")}, &report);
    EXPECT_TRUE(status.ok()) << status.ToString();
    config = report.config;
    bytes_ = ReadWhole(out_.Path("m"));
  }
  std::vector<float> Floats(const std::string& name) const {
    const auto all = std::as_bytes(std::span(bytes_));
    Result<FileView> file = FileView::Open(all, VerifyLevel::kFull, "test");
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    const auto tensor = file->FindTensor(name);
    EXPECT_TRUE(tensor.has_value()) << name;
    if (!tensor) return {};
    std::vector<float> values(tensor->num_elements());
    std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return values;
  }

  ModelConfig config;

 private:
  TestFolder out_;
  std::string bytes_;
};

TEST(ConvertDecoder, TurnsAndCutsTheWeightsOfGpt2) {
  TestFolder folder("gpt2");
  const ConvertedDecoder converted(folder);
  const float* stored = folder.tensors["transformer.h.1.attn.c_attn.weight"].floats();
  const float* bias = folder.tensors["transformer.h.1.attn.c_attn.bias"].floats();
  size_t part = 0;
  for (const std::string name : {"q", "k", "v"}) {
    const std::vector<float> weight = converted.Floats("layers.1.attention." + name + ".weight");
    const std::vector<float> own_bias = converted.Floats("layers.1.attention." + name + ".bias");
    ASSERT_EQ(weight.size(), 48u * 48u);
    for (size_t out = 0; out < 48; ++out) {
      ASSERT_EQ(own_bias[out], bias[part * 48 + out]);
      for (size_t in = 0; in < 48; ++in) {
        ASSERT_EQ(weight[out * 48 + in], stored[in * 144 + part * 48 + out]);
      }
    }
    ++part;
  }
  // What is wrong in a turned tensor is named by its place in the folder.
  folder.tensors["transformer.h.1.attn.c_attn.weight"].floats()[5 * 144 + 60] = INFINITY;
  folder.Save();
  ConvertReport report;
  TestFolder out;
  const Status status = ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
  EXPECT_NE(status.ToString().find("infinity at row 5, column 60"), std::string::npos)
      << status.ToString();
}

TEST(ConvertDecoder, RopeScaling) {
  TestFolder folder("llama");
  folder.config["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500.0}};
  folder.Save();
  const ModelConfig linear = ConvertedDecoder(folder).config;
  folder.config.erase("rope_parameters");
  folder.config["rope_theta"] = 500.0;
  folder.Save();
  const ModelConfig plain = ConvertedDecoder(folder).config;
  const auto slow = ops::RotaryFrequencies(linear), fast = ops::RotaryFrequencies(plain);
  ASSERT_EQ(slow.size(), 6u);
  for (size_t i = 0; i < slow.size(); ++i) {
    EXPECT_DOUBLE_EQ(fast[i], std::pow(500.0, -static_cast<double>(i) / 6.0));
    EXPECT_DOUBLE_EQ(slow[i], fast[i] / 4);
  }
  // The older spelling means the same.
  folder.config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  folder.Save();
  const ModelConfig older = ConvertedDecoder(folder).config;
  EXPECT_EQ(ops::RotaryFrequencies(older), slow);
}

}  // namespace
}  // namespace attend
