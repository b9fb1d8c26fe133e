// The architectures: each a page of straight-line code that calls operators.
#ifndef ATTEND_ENGINE_MODELS_MODELS_H_
#define ATTEND_ENGINE_MODELS_MODELS_H_

#include "attend/status.h"
#include "engine/graph.h"

namespace attend {

// Writes the graph of the model's architecture.
// Errors: kUnsupported (an architecture, or a part of the family, that this build does not run).
Status BuildGraph(Graph& graph);

Status BuildEncoder(Graph& graph);  // encoder.cc

}  // namespace attend

#endif  // ATTEND_ENGINE_MODELS_MODELS_H_
