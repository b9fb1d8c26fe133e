// Models with random weights of any size, for tests of the engine.
#ifndef ATTEND_TESTS_RANDOM_MODEL_H_
#define ATTEND_TESTS_RANDOM_MODEL_H_

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "engine/config.h"
#include "engine/format.h"

namespace attend::testing {

// An encoder in the manner of BERT; the caller changes what it likes before RandomModel.
inline ModelConfig EncoderConfig(int64_t width, int64_t layers, int64_t heads, int64_t ffn) {
  ModelConfig config;
  config.source = "random";
  config.hidden_size = width;
  config.num_layers = layers;
  config.num_heads = heads;
  config.num_kv_heads = heads;
  config.head_dim = width / heads;
  config.intermediate_size = ffn;
  config.vocab_size = 1000;
  config.embedding_size = width;
  config.type_vocab_size = 2;
  config.position = Position::kLearned;
  config.max_positions = 512;
  config.max_length = 512;
  return config;
}

// Which of the tensors that a file may lack it is to have.
using KeepTensor = std::function<bool(const TensorSpec&)>;

// The bytes of a file with every tensor of the config (of the optional ones those that `keep`
// wants), weights spread so that all parts matter, and the serialised `tokenizer` if there is one.
inline Result<std::vector<std::byte>> RandomModelBytes(const ModelConfig& config, uint32_t seed,
                                                       std::span<const std::byte> tokenizer = {},
                                                       const KeepTensor& keep = {}) {
  FileWriter writer;
  WriteConfig(config, &writer);
  if (!tokenizer.empty()) {
    writer.AddTensor("tokenizer", DType::kU8, {tokenizer.size()}, [=](std::span<std::byte> out) {
      std::memcpy(out.data(), tokenizer.data(), out.size());
      return Status();
    });
  }
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (!spec.required && keep && !keep(spec)) continue;
    uint64_t elements = 1;
    for (const uint64_t dim : spec.shape) elements *= dim;
    const bool norm_weight = spec.name.find("norm.weight") != std::string::npos;
    const double spread = norm_weight ? 0.2
                          : spec.shape.size() == 2
                              ? 1.6 / std::sqrt(static_cast<double>(spec.shape[1]))
                              : 0.1;
    const uint32_t tensor_seed = seed + static_cast<uint32_t>(std::hash<std::string>()(spec.name));
    writer.AddTensor(spec.name, DType::kF32, spec.shape, [=](std::span<std::byte> out) {
      std::mt19937 random(tensor_seed);
      std::normal_distribution<double> normal(norm_weight ? 1.0 : 0.0, spread);
      for (uint64_t i = 0; i < elements; ++i) {
        const float value = static_cast<float>(normal(random));
        std::memcpy(out.data() + i * sizeof(float), &value, sizeof(float));
      }
      return Status();
    });
  }
  return writer.WriteToBytes();
}

inline Result<Model> RandomModel(const ModelConfig& config, uint32_t seed,
                                 std::span<const std::byte> tokenizer = {}) {
  Result<std::vector<std::byte>> bytes = RandomModelBytes(config, seed, tokenizer);
  if (!bytes.ok()) return bytes.status();
  return Model::FromBytes(*bytes);
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_RANDOM_MODEL_H_
