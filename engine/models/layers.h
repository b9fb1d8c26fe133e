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
// norm and projection.
Result<Value> AddInput(Graph& graph);

// One layer, x = layer(x): attention and feed-forward with the weights NAME.*.
Status AddLayer(Graph& graph, Value& x, const std::string& name);

}  // namespace attend

#endif  // ATTEND_ENGINE_MODELS_LAYERS_H_
