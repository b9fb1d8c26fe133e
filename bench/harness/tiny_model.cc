#include "bench/harness/tiny_model.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "bench/harness/stats.h"
#include "engine/config.h"
#include "engine/format.h"

namespace attend::bench {
namespace {

ModelConfig ConfigOf(const EncoderSize& size) {
  ModelConfig config;
  config.source = "bench";
  config.hidden_size = size.width;
  config.num_layers = size.layers;
  config.num_heads = config.num_kv_heads = size.heads;
  config.head_dim = size.width / size.heads;
  config.intermediate_size = size.ffn;
  config.vocab_size = 100;
  config.embedding_size = size.width;
  config.type_vocab_size = 2;
  config.position = Position::kLearned;
  config.max_positions = config.max_length = 512;
  return config;
}

}  // namespace

Result<Model> MakeEncoder(const EncoderSize& size) {
  const ModelConfig config = ConfigOf(size);
  FileWriter writer;
  WriteConfig(config, &writer);
  uint64_t seed = 0;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    uint64_t elements = 1;
    for (const uint64_t dim : spec.shape) elements *= dim;
    const bool vector = spec.shape.size() == 1;
    const double spread = vector ? 0.1 : 1.6 / std::sqrt(static_cast<double>(spec.shape[1]));
    const double middle = spec.name.ends_with("norm.weight") ? 1 : 0;
    writer.AddTensor(spec.name, DType::kF32, spec.shape,
                     [=, seed = ++seed](std::span<std::byte> out) {
                       Random random(seed);
                       for (uint64_t i = 0; i < elements; ++i) {
                         const double noise = 2 * random.NextUnit() - 1;
                         const float value = static_cast<float>(middle + spread * noise);
                         std::memcpy(out.data() + i * sizeof(value), &value, sizeof(value));
                       }
                       return Status();
                     });
  }
  const Result<std::vector<std::byte>> bytes = writer.WriteToBytes();
  if (!bytes.ok()) return bytes.status();
  return Model::FromBytes(*bytes);
}

}  // namespace attend::bench
