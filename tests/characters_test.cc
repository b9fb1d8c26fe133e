// Tokenizers of characters: what is unknown, what is refused; the rest is in tokenizer_golden_test.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/child.h"
#include "tests/tokenizer_testing.h"
#include "tools/tokenizer_json.h"

namespace attend {
namespace {

using nlohmann::json;
using testing::TemporaryFolder;

json Definition() {
  std::ifstream file(DataPath("tokenizers/characters/tokenizer.json"));
  return json::parse(file);
}

// The vocabulary without its unknown token, which the last entry takes the place of.
json DefinitionWithoutUnknown() {
  json definition = Definition();
  json& vocabulary = definition["model"]["vocab"];
  const int place = vocabulary["<unk>"];
  vocabulary.erase("<unk>");
  for (auto& [entry, id] : vocabulary.items()) {
    if (id == vocabulary.size()) id = place;
  }
  json& added = definition["added_tokens"];
  for (size_t i = 0; i < added.size(); ++i) {
    if (added[i]["content"] == "<unk>") added.erase(i);
  }
  return definition;
}

Result<TokenizerSpec> Read(const json& definition) {
  TemporaryFolder folder;
  return ReadTokenizerJson(folder.Write("tokenizer.json", definition.dump()));
}

Tokenizer Make(const json& definition) {
  const Result<TokenizerSpec> spec = Read(definition);
  EXPECT_TRUE(spec.ok()) << spec.status().ToString();
  return MakeTokenizer(*spec);
}

std::string Tokens(const Tokenizer& tokenizer, std::string_view text) {
  const Result<Encoding> encoding = tokenizer.Encode(text);
  if (!encoding.ok()) return encoding.status().ToString();
  std::string joined;
  for (const std::string& token : encoding->tokens) joined += token + "|";
  return joined;
}

TEST(Characters, AreTokensAndSymbolsAreNot) {
  const Tokenizer tokenizer = Make(Definition());
  EXPECT_EQ(tokenizer.kind(), "characters");
  EXPECT_EQ(Tokens(tokenizer, "Bob's"), "b|o|b|'|s|</s>|");
  EXPECT_EQ(Tokens(tokenizer, "AH0"), "a|h|<unk>|</s>|");
  EXPECT_EQ(Tokens(tokenizer, ""), "</s>|");
  EXPECT_EQ(tokenizer.eos_id(), 1);
  EXPECT_EQ(tokenizer.bos_id(), -1);
}

TEST(Characters, SymbolsAreJoinedByBlanks) {
  const Tokenizer tokenizer = Make(Definition());
  std::vector<int32_t> ids;
  for (const char* symbol : {"<pad>", "B", "AA1", "B", "Z", "</s>"}) {
    ids.push_back(tokenizer.TokenId(symbol));
  }
  EXPECT_EQ(*tokenizer.Decode(ids), "B AA1 B Z");
}

TEST(Characters, WithoutUnknownTokenAnUnknownOneIsAnError) {
  const Tokenizer tokenizer = Make(DefinitionWithoutUnknown());
  EXPECT_EQ(Tokens(tokenizer, "cafe"), "c|a|f|e|</s>|");
  const auto expect = [&](std::string_view text, const std::string& what, const char* where) {
    const Result<Encoding> encoding = tokenizer.Encode(text);
    ASSERT_FALSE(encoding.ok()) << text;
    EXPECT_EQ(encoding.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(encoding.status().what().find(what), std::string::npos) << encoding.status().what();
    EXPECT_EQ(encoding.status().where(), where);
  };
  expect("agent 7", "U+0037 \"7\"", "text, byte 6");
  expect("na\xC3\xAFve\xE2\x82\xAC", "U+20AC \"\xE2\x82\xAC\"", "text, byte 6");
  expect("\xF0\x9F\x98\x81", "U+01F601", "text, byte 0");
  const Result<Encoding> pair = tokenizer.EncodePair("ab", "c=");
  EXPECT_EQ(pair.status().where(), "pair, byte 1");
  std::vector<int32_t> ids = {5};
  EXPECT_FALSE(tokenizer.EncodeWord("a9", &ids).ok());
  EXPECT_EQ(ids, (std::vector<int32_t>{5}));
  EXPECT_TRUE(tokenizer.EncodeWord("ab", &ids).ok());
  EXPECT_EQ(ids.size(), 3u);
}

TEST(Characters, OtherWordLevelTokenizersAreRefused) {
  const auto expect = [](const char* pointer, const json& value, const char* where) {
    json definition = Definition();
    definition[json::json_pointer(pointer)] = value;
    const Result<TokenizerSpec> spec = Read(definition);
    ASSERT_FALSE(spec.ok()) << pointer;
    EXPECT_EQ(spec.status().code(), ErrorCode::kUnsupported) << spec.status().ToString();
    EXPECT_NE(spec.status().where().find(where), std::string::npos) << spec.status().ToString();
  };
  expect("/pre_tokenizer", {{"type", "Whitespace"}}, "pre_tokenizer");
  expect("/pre_tokenizer/pattern", {{"Regex", "\\s"}}, "pre_tokenizer");
  expect("/pre_tokenizer/pattern", {{"String", ""}}, "pre_tokenizer");
  expect("/pre_tokenizer/behavior", "Removed", "pre_tokenizer");
  expect("/pre_tokenizer/invert", true, "pre_tokenizer");
  expect("/model/type", "BPE", "model");
  json definition = Definition();
  definition["pre_tokenizer"]["pattern"]["Regex"] = ".";
  EXPECT_TRUE(Read(definition).ok());  // clean_text leaves no line ends
  definition["normalizer"]["clean_text"] = false;
  EXPECT_FALSE(Read(definition).ok());
}

TEST(Characters, AFileOfMixedKindsIsRefused) {
  const Result<TokenizerSpec> spec = Read(DefinitionWithoutUnknown());
  ASSERT_TRUE(spec.ok());
  const std::vector<std::byte> bytes = SerializeTokenizer(*spec);
  const auto with = [&](size_t at, uint32_t value) {
    std::vector<std::byte> changed = bytes;
    for (size_t i = 0; i < 4; ++i) changed[at + i] = static_cast<std::byte>(value >> 8 * i);
    return Tokenizer::FromBytes(changed).status();
  };
  EXPECT_EQ(with(12, 1).code(), ErrorCode::kCorrupt);  // WordPiece, cut into characters
  EXPECT_EQ(with(24, 1).code(), ErrorCode::kCorrupt);  // characters, cut into words
  EXPECT_EQ(with(12, 3).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(with(24, 3).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(with(36, 99999).code(), ErrorCode::kCorrupt);
  TokenizerSpec wordpiece = MiniLmSpec();
  wordpiece.unk_id = kNoUnknown;
  EXPECT_FALSE(CheckTokenizer(wordpiece).ok());
}

}  // namespace
}  // namespace attend
