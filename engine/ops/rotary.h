// The table of rotary positions, which all layers share.
#ifndef ATTEND_ENGINE_OPS_ROTARY_H_
#define ATTEND_ENGINE_OPS_ROTARY_H_

#include <cmath>
#include <vector>

#include "engine/graph.h"
#include "kernels/rotary.h"

namespace attend::ops {

// theta^(-2i/E) for i < E/2: the angle by which pair i turns from one position to the next.
inline std::vector<double> RotaryFrequencies(const ModelConfig& config) {
  std::vector<double> frequencies(static_cast<size_t>(config.head_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    frequencies[i] = std::pow(config.rope_theta, exponent);
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
