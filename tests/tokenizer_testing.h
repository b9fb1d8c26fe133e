// What the tests of the tokenizer share: specs from files, and the stored cases.
#ifndef ATTEND_TESTS_TOKENIZER_TESTING_H_
#define ATTEND_TESTS_TOKENIZER_TESTING_H_

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attend/text.h"
#include "engine/text/tokenizer_data.h"

namespace attend {

inline std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

inline int32_t IdOf(const TokenizerSpec& spec, std::string_view entry) {
  for (size_t i = 0; i < spec.vocabulary.size(); ++i) {
    if (spec.vocabulary[i] == entry) return static_cast<int32_t>(i);
  }
  ADD_FAILURE() << entry;
  return -1;
}

// BERT's tokenizer over a vocabulary.
inline TokenizerSpec BertSpec(std::vector<std::string> vocabulary) {
  TokenizerSpec spec;
  spec.vocabulary = std::move(vocabulary);
  for (const char* entry : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    spec.added_tokens.push_back({.content = entry, .id = IdOf(spec, entry), .special = true});
  }
  spec.unk_id = IdOf(spec, "[UNK]");
  const int32_t cls = IdOf(spec, "[CLS]"), sep = IdOf(spec, "[SEP]");
  spec.single = {
      {PartKind::kToken, cls, 0}, {PartKind::kSequenceA, 0, 0}, {PartKind::kToken, sep, 0}};
  spec.pair = spec.single;
  spec.pair.push_back({PartKind::kSequenceB, 0, 1});
  spec.pair.push_back({PartKind::kToken, sep, 1});
  return spec;
}

inline std::string DataPath(const std::string& name) {
  return std::string(ATTEND_TEST_DATA) + "/" + name;
}

inline TokenizerSpec MiniLmSpec() { return BertSpec(ReadLines(DataPath("minilm/vocab.txt"))); }

// The small tokenizers; their vocabularies are in order in the files.
inline TokenizerSpec SmallSpec(const std::string& name) {
  std::ifstream file(DataPath("tokenizers/" + name + "/tokenizer.json"));
  const auto json = nlohmann::json::parse(file);
  std::vector<std::string> vocabulary(json["model"]["vocab"].size());
  for (const auto& [entry, id] : json["model"]["vocab"].items()) {
    vocabulary.at(id.get<size_t>()) = entry;
  }
  TokenizerSpec spec = BertSpec(std::move(vocabulary));
  spec.lowercase = json["normalizer"]["lowercase"].get<bool>();
  spec.strip_accents = spec.lowercase;
  return spec;
}

inline Tokenizer MakeTokenizer(const TokenizerSpec& spec) {
  const Status status = CheckTokenizer(spec);
  EXPECT_TRUE(status.ok()) << status.ToString();
  Result<Tokenizer> tokenizer = Tokenizer::FromBytes(SerializeTokenizer(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  return *std::move(tokenizer);
}

}  // namespace attend

#endif  // ATTEND_TESTS_TOKENIZER_TESTING_H_
