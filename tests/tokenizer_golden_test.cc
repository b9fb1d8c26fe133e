// The tokenizer against every stored case.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tokenizer_testing.h"
#include "tools/tokenizer_json.h"

namespace attend {
namespace {

struct Golden {
  const char* name;  // of the folder below the tests' data
  size_t num_cases;
};

std::vector<TextRange> Ranges(const nlohmann::json& list) {
  std::vector<TextRange> ranges;
  for (const auto& range : list) ranges.push_back({range[0], range[1]});
  return ranges;
}

Tokenizer GoldenTokenizer(const std::string& name) {
  if (name == "minilm") return MakeTokenizer(MiniLmSpec());
  const std::string folder = name.substr(name.find('/') + 1);
  if (folder != "characters") return MakeTokenizer(SmallSpec(folder));
  const Result<TokenizerSpec> spec = ReadTokenizerJson(DataPath(name + "/tokenizer.json"));
  EXPECT_TRUE(spec.ok()) << spec.status().ToString();
  return MakeTokenizer(*spec);
}

class GoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, EveryCaseIsEqual) {
  const std::string name = GetParam().name;
  const Tokenizer tokenizer = GoldenTokenizer(name);
  const std::vector<std::string> lines = ReadLines(DataPath(name + "/cases.jsonl"));
  ASSERT_EQ(lines.size(), GetParam().num_cases);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto one = nlohmann::json::parse(lines[i]);
    SCOPED_TRACE("case " + std::to_string(i) + ": " + one["text"].dump());
    const std::string text = one["text"];
    for (const OffsetUnit unit : {OffsetUnit::kBytes, OffsetUnit::kCodePoints}) {
      EncodeOptions options;
      options.offset_unit = unit;
      options.add_special_tokens = one.value("add_special_tokens", true);
      const Result<Encoding> result =
          one.contains("pair") ? tokenizer.EncodePair(text, one["pair"].get<std::string>(), options)
                               : tokenizer.Encode(text, options);
      ASSERT_TRUE(result.ok()) << result.status().ToString();
      EXPECT_EQ(result->ids, one["ids"].get<std::vector<int32_t>>());
      EXPECT_EQ(result->tokens, one["tokens"].get<std::vector<std::string>>());
      EXPECT_EQ(result->offsets,
                Ranges(one[unit == OffsetUnit::kBytes ? "byte_offsets" : "offsets"]));
      std::vector<int32_t> type_ids(result->ids.size());
      if (one.contains("type_ids")) type_ids = one["type_ids"].get<std::vector<int32_t>>();
      EXPECT_EQ(result->type_ids, type_ids);
      if (one.contains("sequence_ids")) {
        std::vector<int32_t> sequence_ids;
        for (const auto& id : one["sequence_ids"]) {
          sequence_ids.push_back(id.is_null() ? -1 : id.get<int32_t>());
        }
        EXPECT_EQ(result->sequence_ids, sequence_ids);
      }
      if (one.contains("decoded")) {
        const Result<std::string> decoded = tokenizer.Decode(result->ids);
        ASSERT_TRUE(decoded.ok());
        EXPECT_EQ(*decoded, one["decoded"].get<std::string>());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest,
                         ::testing::Values(Golden{"minilm", 200},
                                           Golden{"tokenizers/wordpiece_uncased", 210},
                                           Golden{"tokenizers/wordpiece_cased", 210},
                                           Golden{"tokenizers/characters", 280}),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           return name.substr(name.find('/') + 1);
                         });

}  // namespace
}  // namespace attend
