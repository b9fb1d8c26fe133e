// tokenizer.json and vocab.txt: what is read, and what is refused with which words.
#include "tools/tokenizer_json.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "tests/tokenizer_testing.h"

namespace attend {
namespace {

using nlohmann::json;

std::string TempPath(const std::string& name) {
  return ::testing::TempDir() + "attend_tokenizer_" + std::to_string(getpid()) + "_" + name;
}

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = TempPath(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

json TinyJson() {
  return json::parse(R"({
    "version": "1.0", "truncation": {"max_length": 128, "strategy": "LongestFirst", "stride": 0},
    "padding": {"strategy": {"Fixed": 128}}, "added_tokens": [
      {"id": 0, "content": "[UNK]", "special": true, "normalized": false, "lstrip": false,
       "rstrip": false, "single_word": false},
      {"id": 1, "content": "[CLS]", "special": true, "normalized": false},
      {"id": 2, "content": "[SEP]", "special": true, "normalized": false},
      {"id": 5, "content": "<x>", "normalized": true, "lstrip": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                   "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
      "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
               {"Sequence": {"id": "B", "type_id": 1}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                         "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4}}})");
}

Result<TokenizerSpec> ReadSpec(const json& value) {
  return ReadTokenizerJson(WriteFile("tokenizer.json", value.dump()));
}

TEST(TokenizerJsonTest, ReadsAllOfIt) {
  const auto spec = ReadSpec(TinyJson());
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->vocabulary,
            (std::vector<std::string>{"[UNK]", "[CLS]", "[SEP]", "a", "##b", "<x>"}));
  EXPECT_TRUE(spec->strip_accents) << "unset: as lowercase";
  EXPECT_EQ(spec->truncation, 128);
  ASSERT_EQ(spec->added_tokens.size(), 4u);
  EXPECT_FALSE(spec->added_tokens[3].in_model);
  EXPECT_TRUE(spec->added_tokens[3].lstrip);
  EXPECT_EQ(spec->single.size(), 3u);
  EXPECT_EQ(spec->pair.size(), 5u);
  EXPECT_EQ(spec->pair[4].type_id, 1);
  const Tokenizer tokenizer = MakeTokenizer(*spec);
  EXPECT_EQ(tokenizer.Encode("AB <X>")->ids, (std::vector<int32_t>{1, 3, 4, 5, 2}));
}

TEST(TokenizerJsonTest, TheSameAsTheSpecByHand) {
  for (const char* name : {"wordpiece_uncased", "wordpiece_cased"}) {
    const auto spec =
        ReadTokenizerJson(DataPath(std::string("tokenizers/") + name + "/tokenizer.json"));
    ASSERT_TRUE(spec.ok()) << spec.status().ToString();
    EXPECT_EQ(SerializeTokenizer(*spec), SerializeTokenizer(SmallSpec(name)));
  }
}

TEST(TokenizerJsonTest, OtherFormsOfTheSame) {
  json value = TinyJson();
  value["post_processor"] =
      json::parse(R"({"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]})");
  value["normalizer"] = {{"type", "Sequence"}, {"normalizers", {value["normalizer"]}}};
  value["model"].erase("type");
  const auto spec = ReadSpec(value);
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(SerializeTokenizer(*spec), SerializeTokenizer(*ReadSpec(TinyJson())));
  value["normalizer"] = nullptr;
  value["decoder"] = nullptr;
  value["post_processor"] = nullptr;
  const auto plain = ReadSpec(value);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->normalizer, NormalizerKind::kNone);
  EXPECT_FALSE(plain->lowercase);
  EXPECT_EQ(plain->decoder, DecoderKind::kJoin);
  EXPECT_TRUE(plain->single.empty());
}

struct BadJson {
  const char* name;
  ErrorCode code;
  const char* where;  // the end of it
  std::function<void(json*)> change;
};

class BadJsonTest : public ::testing::TestWithParam<BadJson> {};

TEST_P(BadJsonTest, IsRefused) {
  json value = TinyJson();
  GetParam().change(&value);
  const auto spec = ReadSpec(value);
  ASSERT_FALSE(spec.ok());
  const Status& status = spec.status();
  EXPECT_EQ(status.code(), GetParam().code) << status.ToString();
  EXPECT_NE(status.ToString().find(GetParam().where), std::string::npos) << status.ToString();
  EXPECT_FALSE(status.what().empty());
}

constexpr ErrorCode kBad = ErrorCode::kCorrupt, kUnknown = ErrorCode::kUnsupported;

INSTANTIATE_TEST_SUITE_P(
    All, BadJsonTest,
    ::testing::Values(
        BadJson{"version", kUnknown, "version", [](json* j) { (*j)["version"] = "2.0"; }},
        BadJson{"model_type", kUnknown, "model", [](json* j) { (*j)["model"]["type"] = "BPE"; }},
        BadJson{"model_missing", kUnknown, "model", [](json* j) { j->erase("model"); }},
        BadJson{"normalizer_type", kUnknown, "normalizer",
                [](json* j) { (*j)["normalizer"]["type"] = "NFKC"; }},
        BadJson{"pre_tokenizer_type", kUnknown, "pre_tokenizer",
                [](json* j) { (*j)["pre_tokenizer"]["type"] = "Metaspace"; }},
        BadJson{"post_processor_type", kUnknown, "post_processor",
                [](json* j) { (*j)["post_processor"]["type"] = "RobertaProcessing"; }},
        BadJson{"decoder_type", kUnknown, "decoder",
                [](json* j) { (*j)["decoder"]["type"] = "ByteLevel"; }},
        BadJson{"id_twice", kBad, "model.vocab", [](json* j) { (*j)["model"]["vocab"]["b"] = 3; }},
        BadJson{"id_gap", kBad, "model.vocab", [](json* j) { (*j)["model"]["vocab"]["b"] = 7; }},
        BadJson{"id_negative", kBad, "model.vocab",
                [](json* j) { (*j)["model"]["vocab"]["a"] = -1; }},
        BadJson{"id_large", kBad, "model.vocab",
                [](json* j) { (*j)["model"]["vocab"]["a"] = 2147483648u; }},
        BadJson{"id_float", kBad, "model.vocab",
                [](json* j) { (*j)["model"]["vocab"]["a"] = 3.5; }},
        BadJson{"id_string", kBad, "model.vocab",
                [](json* j) { (*j)["model"]["vocab"]["a"] = "3"; }},
        BadJson{"vocab_list", kBad, "model.vocab",
                [](json* j) {
                  (*j)["model"]["vocab"] = {{"a", 0.0}};
                }},
        BadJson{"vocab_empty", kBad, "model.vocab",
                [](json* j) { (*j)["model"]["vocab"] = json::object(); }},
        BadJson{"unk_missing", kBad, "unk_token",
                [](json* j) { (*j)["model"]["unk_token"] = "[X]"; }},
        BadJson{"max_chars_0", kBad, "max_input_chars_per_word",
                [](json* j) { (*j)["model"]["max_input_chars_per_word"] = 0; }},
        BadJson{"max_chars_large", kBad, "max_input_chars_per_word",
                [](json* j) { (*j)["model"]["max_input_chars_per_word"] = 2147483648u; }},
        BadJson{"added_empty", kBad, "added_tokens[3]",
                [](json* j) { (*j)["added_tokens"][3]["content"] = ""; }},
        BadJson{"added_other_id", kBad, "added_tokens[0]",
                [](json* j) { (*j)["added_tokens"][0]["id"] = 6; }},
        BadJson{"added_taken_id", kBad, "added_tokens[3]",
                [](json* j) { (*j)["added_tokens"][3]["id"] = 3; }},
        BadJson{"added_id_twice", kBad, "added_tokens[1]",
                [](json* j) { (*j)["added_tokens"][1]["id"] = 0; }},
        BadJson{"added_far_id", kBad, "model.vocab",
                [](json* j) { (*j)["added_tokens"][3]["id"] = 100; }},
        BadJson{"added_flag", kBad, "lstrip",
                [](json* j) { (*j)["added_tokens"][3]["lstrip"] = 1; }},
        BadJson{"template_unknown_token", kBad, "post_processor.single",
                [](json* j) { (*j)["post_processor"]["special_tokens"].erase("[CLS]"); }},
        BadJson{"template_other_id", kBad, "post_processor.single",
                [](json* j) { (*j)["post_processor"]["special_tokens"]["[CLS]"]["ids"] = {2}; }},
        BadJson{"template_sequence", kBad, "post_processor.single",
                [](json* j) { (*j)["post_processor"]["single"][1]["Sequence"]["id"] = "C"; }},
        BadJson{"truncation", kBad, "max_length",
                [](json* j) { (*j)["truncation"]["max_length"] = 1e30; }}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(TokenizerJsonTest, NotATokenizer) {
  const auto read = [](const std::string& text) {
    return ReadTokenizerJson(WriteFile("bad.json", text)).status().code();
  };
  EXPECT_EQ(read("[]"), ErrorCode::kCorrupt);
  EXPECT_EQ(read("{"), ErrorCode::kCorrupt);
  EXPECT_EQ(read(R"({"model": {"vocab": {"a": 0, "a": 1}}})"), ErrorCode::kCorrupt);
  EXPECT_FALSE(ReadTokenizerJson(WriteFile("deep.json", std::string(100000, '['))).ok());
  EXPECT_EQ(ReadTokenizerJson(TempPath("none")).status().code(), ErrorCode::kNotFound);
}

TEST(VocabTextTest, Reads) {
  const std::string path = WriteFile("vocab.txt", "[PAD]\r\n[UNK]\n[CLS]\n[SEP]\n\na\n##b");
  const auto spec = ReadVocabText(path, {.lowercase = false});
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->vocabulary,
            (std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "", "a", "##b"}));
  EXPECT_FALSE(spec->strip_accents);
  EXPECT_EQ(spec->added_tokens.size(), 4u) << "[MASK] is not needed";
  EXPECT_EQ(MakeTokenizer(*spec).Encode("ab")->ids, (std::vector<int32_t>{2, 5, 6, 3}));
}

TEST(VocabTextTest, Refuses) {
  const auto twice = ReadVocabText(WriteFile("twice.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\na\n"), {});
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.status().code(), ErrorCode::kCorrupt);
  EXPECT_NE(twice.status().ToString().find("line 6"), std::string::npos);
  EXPECT_NE(twice.status().ToString().find("line 4"), std::string::npos);
  EXPECT_EQ(ReadVocabText(WriteFile("no_cls.txt", "[UNK]\n[SEP]\na\n"), {}).status().code(),
            ErrorCode::kCorrupt);
  EXPECT_EQ(
      ReadVocabText(WriteFile("latin1.txt", "[UNK]\n[CLS]\n[SEP]\n\xE9\n"), {}).status().code(),
      ErrorCode::kCorrupt);
}

TEST(TokenizerFolderTest, TakesWhatIsThere) {
  const std::string folder = TempPath("folder");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  EXPECT_EQ(ReadTokenizerFolder(folder).status().code(), ErrorCode::kNotFound);
  std::ofstream(folder + "/vocab.txt") << "<u>\n<c>\n<s>\nA\na\n";
  std::ofstream(folder + "/tokenizer_config.json")
      << R"({"do_lower_case": false, "unk_token": "<u>", "cls_token": {"content": "<c>"},
             "sep_token": "<s>", "strip_accents": true, "model_max_length": 1e30})";
  const auto spec = ReadTokenizerFolder(folder);
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_FALSE(spec->lowercase);
  EXPECT_TRUE(spec->strip_accents);
  EXPECT_EQ(MakeTokenizer(*spec).Encode("A")->ids, (std::vector<int32_t>{1, 3, 2}));
  std::ofstream(folder + "/added_tokens.json") << "{}";
  EXPECT_EQ(ReadTokenizerFolder(folder).status().code(), ErrorCode::kUnsupported);
  std::ofstream(folder + "/tokenizer.json") << TinyJson().dump();
  EXPECT_EQ(ReadTokenizerFolder(folder)->vocabulary.size(), 6u) << "tokenizer.json is preferred";
}

}  // namespace
}  // namespace attend
