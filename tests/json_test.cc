// The strict JSON reader: what it takes, what it refuses and how it says so.
#include "tools/json.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace attend {
namespace {

std::string TempPath(const std::string& name) {
  return ::testing::TempDir() + "attend_json_" + std::to_string(getpid()) + "_" + name;
}

TEST(JsonTest, ReadsAllKindsOfValues) {
  const auto value = ParseJson(
      R"( {"a": [1, -2, 1.5, 1e3, true, false, null], "b": {"": "\u00e9\ud83d\ude00\n"}} )", "x");
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ((*value)["a"].size(), 7u);
  EXPECT_EQ((*value)["a"][1].get<int64_t>(), -2);
  EXPECT_TRUE((*value)["a"][3].is_number_float());
  EXPECT_EQ((*value)["b"][""].get<std::string>(), "\xC3\xA9\xF0\x9F\x98\x80\n");
  EXPECT_TRUE(ParseJson("7", "x").ok());
  EXPECT_TRUE(ParseJson("\"text\"", "x").ok());
}

struct Refused {
  const char* name;
  std::string text;
  ErrorCode code;
  const char* what;
};

std::string Nested(size_t depth, const char* open, const char* close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(JsonTest, RefusesWithTheReason) {
  const Refused cases[] = {
      {"empty", "", ErrorCode::kCorrupt, "an empty file"},
      {"only_space", "  \n ", ErrorCode::kCorrupt, "unexpected end"},
      {"bom", "\xEF\xBB\xBF{}", ErrorCode::kCorrupt, "byte order mark"},
      {"utf16", std::string("\xFF\xFE{\0}\0", 6), ErrorCode::kCorrupt, "UTF-16"},
      {"lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n", ErrorCode::kCorrupt,
       "a Git-LFS pointer"},
      {"html", "<!DOCTYPE html><html>", ErrorCode::kCorrupt, "an HTML page"},
      {"nan", "{\"a\": NaN}", ErrorCode::kCorrupt, "not valid JSON"},
      {"infinity", "{\"a\": Infinity}", ErrorCode::kCorrupt, "not valid JSON"},
      {"minus_infinity", "[-Infinity]", ErrorCode::kCorrupt, "not valid JSON"},
      {"overflow", "[1e999]", ErrorCode::kCorrupt, "number overflow"},
      {"trailing_comma", "{\"a\": 1,}", ErrorCode::kCorrupt, "not valid JSON"},
      {"comment", "{\"a\": 1} // c", ErrorCode::kCorrupt, "not valid JSON"},
      {"trailing_bytes", "{} {}", ErrorCode::kCorrupt, "not valid JSON"},
      {"trailing_nul", std::string("{}\0", 3), ErrorCode::kCorrupt, "NUL"},
      {"nul_then_more", std::string("{}\0evil", 7), ErrorCode::kCorrupt, "NUL"},
      {"duplicate", "{\"a\": 1, \"a\": 2}", ErrorCode::kCorrupt, "the key \"a\" appears twice"},
      {"duplicate_escaped", "{\"a\": 1, \"\\u0061\": 2}", ErrorCode::kCorrupt, "appears twice"},
      {"duplicate_inside", "{\"a\": [{\"b\": 1, \"b\": null}]}", ErrorCode::kCorrupt, "\"b\""},
      {"invalid_utf8", "{\"a\": \"\xC3\x28\"}", ErrorCode::kCorrupt, "UTF-8"},
      {"overlong_utf8", "{\"a\": \"\xC0\x80\"}", ErrorCode::kCorrupt, "not valid JSON"},
      {"surrogate_utf8", "{\"a\": \"\xED\xA0\x80\"}", ErrorCode::kCorrupt, "not valid JSON"},
      {"lone_surrogate", "{\"a\": \"\\ud800\"}", ErrorCode::kCorrupt, "surrogate"},
      {"raw_control", "{\"a\": \"\n\"}", ErrorCode::kCorrupt, "control character"},
      {"single_quotes", "{'a': 1}", ErrorCode::kCorrupt, "not valid JSON"},
      {"leading_zero", "[012]", ErrorCode::kCorrupt, "not valid JSON"},
      {"cut", "{\"a\": [1, 2", ErrorCode::kCorrupt, "unexpected end"},
      {"deep", Nested(65, "[", "]"), ErrorCode::kUnsupported, "64 levels"},
      {"deep_objects", Nested(65, "{\"a\":", "}"), ErrorCode::kUnsupported, "64 levels"},
      {"very_deep", Nested(100000, "[", "]"), ErrorCode::kUnsupported, "64 levels"},
      {"very_deep_open", std::string(1000000, '['), ErrorCode::kUnsupported, "64 levels"},
  };
  for (const Refused& c : cases) {
    SCOPED_TRACE(c.name);
    const auto value = ParseJson(c.text, "some.json");
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.status().code(), c.code) << value.status().ToString();
    EXPECT_NE(value.status().what().find(c.what), std::string::npos) << value.status().ToString();
    EXPECT_TRUE(value.status().where().starts_with("some.json")) << value.status().ToString();
  }
  EXPECT_TRUE(ParseJson(Nested(64, "[", "]"), "x").ok());
  EXPECT_TRUE(ParseJson(Nested(64, "{\"a\":", "}"), "x").ok());
}

TEST(JsonTest, EveryTruncationOfAnObjectIsRefused) {
  const std::string text = R"({"vocab": {"a": 0, "é": 1}, "merges": [["x", "y"]], "v": -1.5e2})";
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(ParseJson(std::string_view(text).substr(0, length), "x").ok()) << length;
  }
  EXPECT_TRUE(ParseJson(text, "x").ok());
}

TEST(JsonTest, ErrorsNameLineAndColumn) {
  const auto value = ParseJson("{\n  \"a\": 1,\n  \"b\": nope\n}", "f.json");
  ASSERT_FALSE(value.ok());
  EXPECT_TRUE(value.status().where().starts_with("f.json, line 3, column "))
      << value.status().where();
}

TEST(JsonTest, IntegersAreChecked) {
  const auto parsed = ParseJson(
      R"({"i": 12, "min": -9223372036854775808, "max": 9223372036854775807,
          "half": 1.5, "whole": 12.0, "exp": 1e3, "minus": -1, "big": 18446744073709551616,
          "u64": 18446744073709551615, "sentinel": 1000000000000000019884624838656,
          "text": "12", "bool": true, "null": null, "array": [1]})",
      "c.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(*JsonInt(*parsed, "i", 1, 12, "c"), 12);
  EXPECT_EQ(*JsonInt(*parsed, "min", INT64_MIN, INT64_MAX, "c"), INT64_MIN);
  EXPECT_EQ(*JsonInt(*parsed, "max", INT64_MIN, INT64_MAX, "c"), INT64_MAX);
  for (const char* key :
       {"half", "whole", "exp", "big", "u64", "sentinel", "text", "bool", "array"}) {
    const auto value = JsonInt(*parsed, key, INT64_MIN, INT64_MAX, "c.json");
    ASSERT_FALSE(value.ok()) << key;
    EXPECT_EQ(value.status().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(value.status().where(), "c.json");
    EXPECT_NE(value.status().what().find(std::string("\"") + key + "\" is "), std::string::npos)
        << value.status().ToString();
    EXPECT_FALSE(JsonInt(*parsed, key, INT64_MIN, INT64_MAX, "c.json", 5).ok()) << key;
  }
  EXPECT_FALSE(JsonInt(*parsed, "minus", 0, 10, "c").ok());
  EXPECT_FALSE(JsonInt(*parsed, "i", 13, 20, "c").ok());
  EXPECT_EQ(JsonInt(*parsed, "i", 1, 11, "c").status().what(),
            "the field \"i\" is 12; expected an integer from 1 to 11");
  EXPECT_EQ(JsonInt(*parsed, "half", 1, 11, "c").status().what(),
            "the field \"half\" is 1.5; expected an integer from 1 to 11");
  for (const char* key : {"null", "absent"}) {
    EXPECT_FALSE(JsonInt(*parsed, key, 0, 1, "c").ok());
    EXPECT_EQ(*JsonInt(*parsed, key, 0, 1, "c", 99), 99);
  }
}

TEST(JsonTest, OtherFieldsAreChecked) {
  const auto parsed = ParseJson(R"({"f": 0.5, "i": 2, "b": true, "s": "x", "o": {}})", "c");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*JsonFloat(*parsed, "f", 0, 1, "c"), 0.5);
  EXPECT_EQ(*JsonFloat(*parsed, "i", 0, 2, "c"), 2.0);
  EXPECT_FALSE(JsonFloat(*parsed, "i", 0, 1, "c").ok());
  EXPECT_FALSE(JsonFloat(*parsed, "s", 0, 1, "c").ok());
  EXPECT_FALSE(JsonFloat(*parsed, "absent", 0, 1, "c").ok());
  EXPECT_EQ(*JsonFloat(*parsed, "absent", 0, 1, "c", 7), 7.0);
  EXPECT_TRUE(*JsonBool(*parsed, "b", "c"));
  EXPECT_FALSE(JsonBool(*parsed, "i", "c").ok());
  EXPECT_FALSE(JsonBool(*parsed, "absent", "c").ok());
  EXPECT_TRUE(*JsonBool(*parsed, "absent", "c", true));
  EXPECT_EQ(*JsonString(*parsed, "s", "c"), "x");
  EXPECT_FALSE(JsonString(*parsed, "i", "c").ok());
  EXPECT_FALSE(JsonString(*parsed, "absent", "c").ok());
  EXPECT_EQ(*JsonString(*parsed, "absent", "c", "d"), "d");
  EXPECT_EQ(JsonFind(*parsed, "absent"), nullptr);
  const auto array = ParseJson("[1]", "c");
  EXPECT_EQ(JsonFind(*array, "absent"), nullptr);
  EXPECT_FALSE(JsonInt(*array, "a", 0, 1, "c").ok());
}

TEST(JsonTest, FilesAreRegularAndBounded) {
  const std::string path = TempPath("file.json");
  std::ofstream(path) << "{\"a\": 1}";
  EXPECT_TRUE(ParseJsonFile(path, 8).ok());
  EXPECT_EQ(ParseJsonFile(path, 7).status().code(), ErrorCode::kCapacity);
  EXPECT_EQ(ParseJsonFile(path + ".absent", 8).status().code(), ErrorCode::kNotFound);
  const auto folder = ParseJsonFile(::testing::TempDir(), 100);
  EXPECT_EQ(folder.status().code(), ErrorCode::kIo);
  EXPECT_NE(folder.status().what().find("got a folder"), std::string::npos);
  EXPECT_NE(ParseJsonFile("/dev/zero", 100).status().what().find("a device"), std::string::npos);
  const std::string pipe = TempPath("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(ParseJsonFile(pipe, 100).status().what().find("a pipe"), std::string::npos);
  unlink(pipe.c_str());
  unlink(path.c_str());
}

TEST(JsonTest, PrintableEscapesWhatATerminalMustNotSee) {
  EXPECT_EQ(Printable("plain é \xF0\x9F\x98\x80"), "plain é \xF0\x9F\x98\x80");
  EXPECT_EQ(Printable("a\x1B[31m\n"), "a\\x1b[31m\\x0a");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\xFF\xC3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\xC2\x9B"), "\\xc2\\x9b");
  EXPECT_EQ(Printable("\xE2\x80\xAE"), "\\xe2\\x80\\xae");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace attend
