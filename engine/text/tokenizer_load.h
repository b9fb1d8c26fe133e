// The tokenizer inside a model file, and what a Logger is told of one.
#ifndef ATTEND_ENGINE_TEXT_TOKENIZER_LOAD_H_
#define ATTEND_ENGINE_TEXT_TOKENIZER_LOAD_H_

#include <string>

#include "attend/text.h"
#include "engine/format.h"

namespace attend {

// `where` is the file's name, or empty for a model in memory; `name` the tensor's.
// Errors: kNotFound (the file has none); as Tokenizer::FromBytes.
Result<Tokenizer> TokenizerOfFile(const FileView& file, const std::string& where,
                                  const std::string& name = "tokenizer");

// "wordpiece tokenizer of 30522 tokens".
std::string Summary(const Tokenizer& tokenizer);

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_TOKENIZER_LOAD_H_
