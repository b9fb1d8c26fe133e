// What tests of decoding have in common: models with random weights, and the logits that the
// teacher-forced pass gives, which decoding must reproduce bit by bit.
#ifndef ATTEND_TESTS_DECODER_TESTING_H_
#define ATTEND_TESTS_DECODER_TESTING_H_

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "engine/config.h"
#include "tests/random_model.h"

namespace attend::testing {

// A decoder in the manner of Qwen3.
inline ModelConfig DecoderConfig() {
  ModelConfig config = EncoderConfig(48, 2, 4, 72);
  config.architecture = "decoder";
  config.task = Task::kGenerate;
  config.causal = true;
  config.num_kv_heads = 2;
  config.head_dim = 20;
  config.vocab_size = 101;
  config.type_vocab_size = 0;
  config.position = Position::kRotary;
  config.max_length = 200;
  config.norm = NormPlace::kPre;
  config.norm_type = NormType::kRmsNorm;
  config.norm_eps = 1e-6;
  config.activation = Activation::kSwiglu;
  config.qk_norm = true;
  return config;
}

// An encoder-decoder in the manner of T5, its sides of different sizes.
inline ModelConfig EncoderDecoderConfig() {
  ModelConfig config = EncoderConfig(60, 2, 5, 100);
  config.architecture = "encoder_decoder";
  config.task = Task::kGenerate;
  config.vocab_size = 97;
  config.type_vocab_size = 0;
  config.position = Position::kNone;
  config.max_length = 0;
  config.norm = NormPlace::kPre;
  config.norm_type = NormType::kRmsNorm;
  config.norm_eps = 1e-6;
  config.activation = Activation::kRelu;
  config.score = Score::kDot;
  config.score_bias = ScoreBias::kRelative;
  config.relative_max_distance = 40;
  config.decoder_layers = 3;
  config.decoder_heads = 3;
  config.decoder_head_dim = 28;
  config.decoder_intermediate_size = 64;
  config.tied_head = false;
  return config;
}

inline std::vector<int32_t> RandomIds(std::mt19937& random, size_t count, int64_t vocab) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab));
  return ids;
}

// The logits behind every token of `ids`, by a Session that is given all of them at once.
class TeacherForced {
 public:
  explicit TeacherForced(const Model& model)
      : vocab_(model.info().vocab_size),
        has_encoder_(model.info().architecture == "encoder_decoder"),
        session_(Session::Create(model, {.max_tokens = 512, .max_sequences = 1})) {
    EXPECT_TRUE(session_.ok()) << session_.status().ToString();
  }

  // [ids, V]; `source` is empty for decoders alone.
  std::vector<float> Logits(std::span<const int32_t> source, std::span<const int32_t> ids) {
    const int32_t offsets[] = {0, static_cast<int32_t>(has_encoder_ ? source.size() : ids.size())};
    const int32_t decoder_offsets[] = {0, static_cast<int32_t>(ids.size())};
    TokenBatch batch{.ids = has_encoder_ ? source : ids, .offsets = offsets};
    if (has_encoder_) {
      batch.decoder_ids = ids;
      batch.decoder_offsets = decoder_offsets;
    }
    Result<Output> output = session_->Run(batch);
    EXPECT_TRUE(output.ok()) << output.status().ToString();
    if (!output.ok()) return {};
    return {output->logits.begin(), output->logits.end()};
  }
  // Those behind the last token.
  std::vector<float> Last(std::span<const int32_t> source, std::span<const int32_t> ids) {
    const std::vector<float> all = Logits(source, ids);
    return {all.end() - vocab_, all.end()};
  }

 private:
  int64_t vocab_;
  bool has_encoder_;
  Result<Session> session_;
};

inline bool SameFloats(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_DECODER_TESTING_H_
