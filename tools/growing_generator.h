// A Generator whose room for texts grows with the texts: programs that read a stream do not know
// what is the longest.
#ifndef ATTEND_TOOLS_GROWING_GENERATOR_H_
#define ATTEND_TOOLS_GROWING_GENERATOR_H_

#include <cstddef>
#include <optional>

#include "attend/attend.h"
#include "attend/text.h"

namespace attend::tools {

class GrowingGenerator {
 public:
  // `limit` is the longest text in tokens that will ever be taken; 0: what the model takes.
  GrowingGenerator(const Model& model, const GeneratorOptions& options, int32_t limit);

  // A Generator with room for texts of `tokens`, or of the limit if that is less, and for outputs
  // that begin with `decoder_tokens`. Its settings are those of the constructor's options if it is
  // a new one: *is_new says so. Errors: as Generator::Create's.
  Result<Generator*> For(size_t tokens, size_t decoder_tokens = 1, bool* is_new = nullptr);

 private:
  Model model_;
  GeneratorOptions options_;
  int32_t limit_;
  std::optional<Generator> generator_;
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_GROWING_GENERATOR_H_
