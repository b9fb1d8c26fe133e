// Which layers of a model are to be more exact than the rest: measured on a few inputs when a file
// is converted to bf16 or int8, and written into it (f32_layers, bf16_layers of config.h).
#ifndef ATTEND_ENGINE_LAYER_CHOICE_H_
#define ATTEND_ENGINE_LAYER_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"

namespace attend {

struct LayerChoiceOptions {
  Precision precision = Precision::kInt8;  // kBf16 or kInt8
  // What may be lost: sqrt(sum |y - y'|^2 / sum |y|^2) of the model's answer y (logits, embeddings
  // or else hidden states) and y' in lower precision, over all inputs. 0.04 is a cosine of 0.9992.
  double budget = 0.04;
  // Token ids, one sequence each; those that the model does not take are cut or left out. Where
  // none is left (a model of vectors, a folder without a tokenizer): pseudo-random inputs, the same
  // on every machine.
  std::vector<std::vector<int32_t>> texts = {};
};

struct LayerChoice {
  std::vector<std::string> f32_layers, bf16_layers;  // ascending
  double loss_of_all = 0;  // with every layer in the precision that was asked for
  double loss = 0;         // with the choice
  bool measured = true;    // false: the model's answer is not finite, so nothing was chosen
};

// Starts with every layer in options.precision; while too much is lost, the layer that loses most
// by itself becomes one step more exact (int8, bf16, f32). Queries, keys and values of an attention
// are one layer.
// Requires: `model` is nobody else's meanwhile; its config says f32, and is as it was afterwards.
// Errors: as Session::Create's and Run's.
// Cost: a run, and where the budget is not kept one for each layer and for each step.
Result<LayerChoice> ChooseLayers(const Model& model, const LayerChoiceOptions& options);

}  // namespace attend

#endif  // ATTEND_ENGINE_LAYER_CHOICE_H_
