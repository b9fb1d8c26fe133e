// What is done to tokens last: cutting to a length, and the tokens around and between texts.
#ifndef ATTEND_ENGINE_TEXT_POST_PROCESSOR_H_
#define ATTEND_ENGINE_TEXT_POST_PROCESSOR_H_

#include <cstddef>

#include "attend/text.h"
#include "engine/text/tokenizer_data.h"

namespace attend {

// The parts in the form that is applied. A pair's parts hold A once and B behind it; a text's A.
// Errors: kUnsupported (they do not).
Result<Template> MakeTemplate(const std::vector<TemplatePart>& parts, bool pair);

// How many tokens of each text are kept.
struct KeptTokens {
  size_t a = 0;
  size_t b = 0;
};

// The longest of the two is cut first; `limit` is for both together.
KeptTokens CutLongestFirst(size_t size_a, size_t size_b, size_t limit);

// Makes of out->ids and out->offsets, which hold size_a tokens of the first text and then those of
// the second, what the template says of the tokens to keep.
void ApplyTemplate(const Template& form, bool add_special, size_t size_a, KeptTokens kept,
                   Encoding* out);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_POST_PROCESSOR_H_
