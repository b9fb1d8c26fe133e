// The table of rotary positions, which all layers share.
#ifndef ATTEND_ENGINE_OPS_ROTARY_H_
#define ATTEND_ENGINE_OPS_ROTARY_H_

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "engine/graph.h"
#include "kernels/rotary.h"

namespace attend::ops {

// The angle by which pair i turns from one position to the next, i < E/2: theta^(-2i/E), scaled as
// the config says. Linear: divided by the factor. Llama3: as it is where a turn takes at most
// original_length / high_factor positions, divided by the factor where it takes more than
// original_length / low_factor, and in between a mixture of both.
inline std::vector<double> RotaryFrequencies(const ModelConfig& config) {
  std::vector<double> frequencies(static_cast<size_t>(config.head_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    double frequency = std::pow(config.rope_theta, exponent);
    const double slow = frequency / config.rope_factor;
    if (config.rope_scaling == RopeScaling::kLinear) frequency = slow;
    if (config.rope_scaling == RopeScaling::kLlama3) {
      const double original = static_cast<double>(config.rope_original_length);
      const double turns = original * frequency / (2 * std::numbers::pi);
      const double low = config.rope_low_factor, high = config.rope_high_factor;
      const double fast_part = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      frequency = (1 - fast_part) * slow + fast_part * frequency;
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

// [longest sequence, E] as the kernel wants it; null if the model has no rotary positions.
inline const float* RotaryTable(Graph& graph) {
  const ModelConfig& config = graph.config();
  if (config.position != Position::kRotary) return nullptr;
  const int64_t dims = config.head_dim, positions = graph.longest_sequence();
  return graph.SharedTable("rotary", positions * dims, [&](float* table) {
    FillRotaryTable(RotaryFrequencies(config).data(), dims, positions, table);
  });
}

}  // namespace attend::ops

#endif  // ATTEND_ENGINE_OPS_ROTARY_H_
