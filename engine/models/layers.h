// What the pages of encoders and decoders have in common: the input, a layer.
#ifndef ATTEND_ENGINE_MODELS_LAYERS_H_
#define ATTEND_ENGINE_MODELS_LAYERS_H_

#include <string>

#include "attend/status.h"
#include "engine/graph.h"

namespace attend {

// Assigns the value of a Result<Value> to `target`, or returns its error.
#define ATTEND_ASSIGN(target, expression)                   \
  do {                                                      \
    auto attend_result = (expression);                      \
    if (!attend_result.ok()) return attend_result.status(); \
    (target) = *attend_result;                              \
  } while (false)

// The rows that go into the first layer: embeddings or the caller's vectors, with their positions,
// norm and projection. `prefix` goes before the names of all weights but the tokens' table.
Result<Value> AddInput(Graph& graph, const std::string& prefix = {});

// What of a layer is not the config's: `prefix` goes before the names of tables that all layers
// share; `has_source` adds attention to another sequence, with weights NAME.cross_*.
struct LayerRole {
  std::string prefix = {};
  Memory memory = Memory::kBatch;  // of the keys and values of self-attention
  bool has_source = false;
};

// One layer, x = layer(x): attention and feed-forward with the weights NAME.*.
Status AddLayer(Graph& graph, Value& x, const std::string& name, const LayerRole& role = {});

}  // namespace attend

#endif  // ATTEND_ENGINE_MODELS_LAYERS_H_
