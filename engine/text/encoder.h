// The path from a text to its tokens: added tokens are cut out; the rest is normalised, cut into
// words and handed to the model.
#ifndef ATTEND_ENGINE_TEXT_ENCODER_H_
#define ATTEND_ENGINE_TEXT_ENCODER_H_

#include <string_view>

#include "engine/text/tokenizer_data.h"
#include "engine/text/wordpiece.h"

namespace attend {

// Appends the tokens of valid `text`, with offsets in bytes.
void EncodeText(const TokenizerData& data, std::string_view text, bool parse_special,
                const TokenSink& sink);

// The same, but added tokens are not looked for.
void EncodePlainText(const TokenizerData& data, std::string_view text, const TokenSink& sink);

// What the normaliser makes of valid `text`, in UTF-8.
std::string NormalizeText(const TokenizerSpec& spec, std::string_view text);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_ENCODER_H_
