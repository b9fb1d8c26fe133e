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

// decoder.cc: a decoder alone, or that of an encoder-decoder.
struct DecoderRole {
  Memory memory = Memory::kBatch;  // of its own keys and values
  bool has_source = false;         // it reads an encoder's output; its weights are "decoder.*"
  bool last_logits = false;        // logits behind the last token of every sequence only
};
Status BuildDecoder(Graph& graph, const DecoderRole& role = {});

// The encoder of an encoder-decoder, and what `decoder` reads of its output: keys and values of all
// layers, in states of Memory::kSource.
Status BuildSource(Graph& graph, const ModelConfig& decoder);

}  // namespace attend

#endif  // ATTEND_ENGINE_MODELS_MODELS_H_
