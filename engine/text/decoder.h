// From ids back to text.
#ifndef ATTEND_ENGINE_TEXT_DECODER_H_
#define ATTEND_ENGINE_TEXT_DECODER_H_

#include <span>
#include <string>

#include "engine/text/tokenizer_data.h"

namespace attend {

// The text of `ids`, which are in the vocabulary.
std::string DecodeIds(const TokenizerData& data, std::span<const int32_t> ids,
                      bool skip_special_tokens);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_DECODER_H_
