// The smallest models that read text, one for each task.
#ifndef ATTEND_TESTS_TINY_TEXT_MODEL_H_
#define ATTEND_TESTS_TINY_TEXT_MODEL_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/decoder_testing.h"
#include "tests/random_model.h"
#include "tools/tokenizer_json.h"

namespace attend::testing {

// A random model of `task` with a tokenizer of 300 tokens.
inline std::vector<std::byte> TinyModelBytes(Task task) {
  ModelConfig config = task == Task::kGenerate ? DecoderConfig() : EncoderConfig(32, 1, 2, 64);
  config.task = task;
  config.vocab_size = 300;
  config.max_length = 64;
  if (task != Task::kGenerate) config.max_positions = 64;
  if (task == Task::kTokens || task == Task::kSequence) {
    config.labels = {"a", "b", "c"};
    config.num_labels = 3;
  }
  if (task == Task::kSequence || task == Task::kEmbedding) config.pooling = Pooling::kMean;
  Result<TokenizerSpec> tokenizer =
      ReadTokenizerJson(ATTEND_TEST_DATA "/hf/bert_token_classification/tokenizer.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  Result<std::vector<std::byte>> bytes =
      RandomModelBytes(config, 7, SerializeTokenizer(*tokenizer));
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return *bytes;
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_TINY_TEXT_MODEL_H_
