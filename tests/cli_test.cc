// The command line as scripts see it: exit codes, objects, and what bad input is answered with.
#include <gtest/gtest.h>

#include "attend/attend.h"
#include "tests/child.h"

namespace attend::testing {
namespace {

using nlohmann::json;

const char* const kCommands[] = {"tag",      "classify", "embed",     "rank",    "attention",
                                 "generate", "tokenize", "run",       "convert", "inspect",
                                 "verify",   "info",     "completion"};

TEST(Usage, EveryCommandHasHelp) {
  const Outcome all = Attend({"--help"});
  EXPECT_EQ(all.code, 0);
  for (const std::string command : kCommands) {
    EXPECT_TRUE(Has(all.out, command)) << command;
    for (const Outcome& help : {Attend({command, "--help"}), Attend({"help", command})}) {
      EXPECT_EQ(help.code, 0) << command;
      EXPECT_TRUE(Has(help.out, "Usage: attend " + command)) << help.out;
      EXPECT_TRUE(Has(help.out, "--json")) << command;
      EXPECT_EQ(help.err, "") << command;
    }
  }
}

TEST(Usage, Version) {
  const Outcome outcome = Attend({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(Has(outcome.out, std::string("attend ") + Version())) << outcome.out;
  EXPECT_TRUE(Has(outcome.out, "oneDNN")) << outcome.out;
}

struct UsageCase {
  const char* name;
  std::vector<std::string> arguments;
  const char* message;  // part of standard error
};

class UsageError : public ::testing::TestWithParam<UsageCase> {};

TEST_P(UsageError, IsExplained) {
  const Outcome outcome = Attend(GetParam().arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(Has(outcome.err, GetParam().message)) << outcome.err;
}

TEST_P(UsageError, IsOneObjectWithJson) {
  std::vector<std::string> arguments = GetParam().arguments;
  if (arguments.empty()) return;
  arguments.insert(arguments.begin() + 1, "--json");
  const Outcome outcome = Attend(arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  const json error = outcome.error();
  EXPECT_EQ(error.at("code"), "USAGE");
  for (const char* key : {"what", "where", "hint"}) EXPECT_TRUE(error.at(key).is_string()) << key;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, UsageError,
    ::testing::Values(
        UsageCase{"NoCommand", {}, "a command is missing"},
        UsageCase{"UnknownCommand", {"tagg"}, "did you mean `attend tag`?"},
        UsageCase{"StrangeCommand", {"frobnicate"}, "no such command"},
        UsageCase{"UnknownOption", {"tag", "--jsn", "x"}, "did you mean --json?"},
        UsageCase{"UnknownOptionWithValue", {"tag", "--thread=2", "x"}, "did you mean --threads?"},
        UsageCase{"ValueOfNoSet", {"tag", "--precision", "f64", "x"}, "--precision"},
        UsageCase{"NotANumber", {"tag", "--threads", "two", "x"}, "--threads"},
        UsageCase{"NumberOutOfRange", {"tag", "--threads", "-1", "x"}, "--threads"},
        UsageCase{"ZeroBatch", {"tag", "--batch-tokens", "0", "x"}, "--batch-tokens"},
        UsageCase{"MissingValue", {"tag", "-m"}, "--model"},
        UsageCase{"EmptyValue", {"tag", "-m", "", "x"}, "--model: the value is empty"},
        UsageCase{"EmptyValueByEquals", {"tag", "--model=", "x"}, "--model: the value is empty"},
        UsageCase{"EmptyNumber", {"tag", "--threads=", "2"}, "--threads"},
        UsageCase{"OptionTwice", {"tag", "--threads", "1", "--threads", "2", "x"}, "--threads"},
        UsageCase{"MissingArgument", {"inspect"}, "an argument is missing"},
        UsageCase{"TooManyArguments", {"verify", "a", "b"}, "unexpected argument 'b'"},
        UsageCase{"MissingOutput", {"convert", "folder"}, "--output"},
        UsageCase{"NoSuchPicture", {"attention", "--output", "a.png", "x"}, ".svg or .html"},
        UsageCase{"RawText", {"attention", "--raw", "x"}, "standard input"},
        UsageCase{"NegativeLayer", {"attention", "--layer", "-1", "x"}, "--layer"},
        UsageCase{"NoModelToRun", {"run"}, "name one model"},
        UsageCase{"NoSuchIsa", {"info", "--isa", "avx3"}, "avx3"},
        UsageCase{"NoSuchShell", {"completion", "tcsh"}, "expected bash, zsh or fish"},
        UsageCase{"NoSuchWant", {"run", "x.attend", "--want", "attention"}, "--want"}),
    [](const auto& test) { return test.param.name; });

// What is given instead of a model.
struct BadFile {
  const char* name;
  std::string bytes;
  int exit_code;
  const char* code;
  const char* message;
};

std::string Pickle() {
  return std::string("\x80\x02}q\x00(X\x01\x00\x00\x00", 12) + std::string(200, 'x');
}

class BadModel : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadModel, IsExplainedByEveryCommand) {
  const BadFile& bad = GetParam();
  TemporaryFolder folder;
  const std::string path = folder.Write("model.attend", bad.bytes);
  const std::vector<std::vector<std::string>> commands = {{"tag", "--json", "-m", path, "x"},
                                                          {"embed", "--json", "-m", path, "x"},
                                                          {"classify", "--json", "-m", path, "x"},
                                                          {"rank", "--json", "-m", path, "x", "y"},
                                                          {"attention", "--json", "-m", path, "x"},
                                                          {"generate", "--json", "-m", path, "x"},
                                                          {"tokenize", "--json", "-m", path, "x"},
                                                          {"run", "--json", path},
                                                          {"inspect", "--json", path}};
  for (const std::vector<std::string>& command : commands) {
    const Outcome outcome = Attend(command);
    EXPECT_EQ(outcome.code, bad.exit_code) << command[0] << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const json error = outcome.error();
    EXPECT_EQ(error.at("code"), bad.code) << command[0];
    EXPECT_TRUE(Has(error.dump(), bad.message)) << command[0] << ": " << error;
    EXPECT_TRUE(Has(error.at("where").get<std::string>(), path)) << command[0] << ": " << error;
    EXPECT_NE(error.at("hint"), "") << command[0] << ": " << error;
  }
  const Outcome verify = Attend({"verify", path});
  EXPECT_EQ(verify.code, 6) << verify.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadModel,
    ::testing::Values(
        BadFile{"LfsPointer",
                "version https://git-lfs.github.com/spec/v1\noid sha256:"
                "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
                3, "CORRUPT", "LFS"},
        BadFile{"Html", "<!DOCTYPE html>\n<html><body>404</body></html>\n", 3, "CORRUPT", "HTML"},
        BadFile{"Pickle", Pickle(), 3, "CORRUPT", "ickle"},
        BadFile{"Empty", "", 3, "CORRUPT", "mpty"},
        BadFile{"Json", "{\"model_type\": \"bert\"}\n", 3, "CORRUPT", "JSON"},
        BadFile{"Vocabulary", "[PAD]\n[UNK]\nthe\n", 3, "CORRUPT", "not an .attend file"},
        BadFile{"Zip", std::string("PK\x03\x04", 4) + std::string(100, '\0'), 3, "CORRUPT", "zip"}),
    [](const auto& test) { return test.param.name; });

TEST(BadPath, MissingFile) {
  const Outcome outcome = Attend({"tag", "--json", "-m", "/nowhere/x.attend", "x"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.error().at("code"), "NOT_FOUND");
  EXPECT_TRUE(Has(outcome.err, "/nowhere/x.attend"));
  EXPECT_EQ(Attend({"verify", "/nowhere/x.attend"}).code, 4);
  EXPECT_EQ(Attend({"convert", "/nowhere", "-o", "/tmp/x"}).code, 4);
}

TEST(BadPath, FolderInsteadOfFile) {
  const Outcome outcome = Attend({"tag", "--json", "-m", Models::Get().folder().path(), "x"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(outcome.error().at("code"), "IO");
  EXPECT_TRUE(Has(outcome.err, "folder")) << outcome.err;
}

TEST(BadPath, FileInsteadOfFolder) {
  const Outcome outcome = Attend({"convert", "--json", Models::Get().tagger, "-o", "/tmp/x"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(Has(outcome.err, "folder")) << outcome.err;
}

TEST(WrongTask, SaysWhatTheModelIsFor) {
  const Models& models = Models::Get();
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"embed", "--json", "-m", models.tagger, "x"}, "attend tag"},
      {{"classify", "--json", "-m", models.tagger, "x"}, "attend tag"},
      {{"rank", "--json", "-m", models.tagger, "x", "y"}, "attend tag"},
      {{"tag", "--json", "-m", models.classifier, "x"}, "attend classify"},
      {{"embed", "--json", "-m", models.classifier, "x"}, "attend classify"},
      {{"rank", "--json", "-m", models.classifier, "x", "y"}, "attend classify"},
      {{"tag", "--json", "-m", models.embedder, "x"}, "attend embed"},
      {{"classify", "--json", "-m", models.embedder, "x"}, "attend embed"}};
  for (const auto& [arguments, use] : cases) {
    const Outcome outcome = Attend(arguments);
    EXPECT_EQ(outcome.code, 3) << arguments[0] << " " << arguments[3];
    EXPECT_EQ(outcome.error().at("code"), "UNSUPPORTED");
    EXPECT_TRUE(Has(outcome.err, use)) << outcome.err;
  }
}

TEST(BadText, InvalidUtf8NamesTheLine) {
  for (const std::string command : {"tag", "tokenize"}) {
    const Outcome outcome = Attend({command, "--json", "-m", Models::Get().tagger},
                                   "good\nbad \xff text\nnever read\n");
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    ASSERT_EQ(outcome.objects().size(), 1u) << command;
    EXPECT_EQ(outcome.objects()[0].at("text"), "good");
    EXPECT_EQ(outcome.error().at("code"), "INVALID_ARGUMENT");
    EXPECT_TRUE(Has(outcome.error().dump(), "line 2")) << outcome.err;
    EXPECT_TRUE(Has(outcome.error().dump(), "UTF-8")) << outcome.err;
  }
}

TEST(BadText, NulBytesAreText) {
  const std::string text("a\0b", 3);
  for (const Outcome& outcome :
       {Attend({"tag", "--json", "-m", Models::Get().tagger}, text + "\n"),
        Attend({"tag", "--json", "--input", "json", "-m", Models::Get().tagger},
               "{\"text\": \"a\\u0000b\"}\n")}) {
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    ASSERT_EQ(outcome.objects().size(), 1u);
    EXPECT_EQ(outcome.objects()[0].at("text").get<std::string>(), text);
  }
}

TEST(BadText, TooLongIsAnErrorUnlessTruncated) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word ";
  const Models& models = Models::Get();
  const std::vector<std::vector<std::string>> commands = {
      {"classify", "--json", "-m", models.classifier},
      {"embed", "--json", "-m", models.embedder},
      {"rank", "x", "--json", "-m", models.embedder}};
  for (std::vector<std::string> command : commands) {
    Outcome outcome = Attend(command, text + "\n");
    EXPECT_EQ(outcome.code, 5) << outcome.err;
    EXPECT_EQ(outcome.error().at("code"), "CAPACITY");
    EXPECT_TRUE(Has(outcome.error().at("hint").get<std::string>(), "--truncate")) << outcome.err;
    EXPECT_TRUE(Has(outcome.error().at("what").get<std::string>(), "64")) << outcome.err;
    command.push_back("--truncate");
    outcome = Attend(command, text + "\nshort\n");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const json& object : outcome.objects()) {
      EXPECT_EQ(object.contains("truncated"), object.at("text") != "short") << object;
    }
  }
}

TEST(BadText, BadJsonLines) {
  const std::vector<std::string> lines = {"not json",
                                          "[1]",
                                          "{}",
                                          "{\"text\": 1}",
                                          "{\"words\": \"a\"}",
                                          "{\"words\": [1]}",
                                          "{\"text\": \"\xff\"}"};
  for (const std::string& line : lines) {
    const Outcome outcome = Attend({"tag", "--json", "--input", "json", "-m", Models::Get().tagger},
                                   "{\"text\": \"ok\"}\n" + line + "\n");
    EXPECT_EQ(outcome.code, 3) << line;
    EXPECT_EQ(outcome.objects().size(), 1u) << line;
    EXPECT_TRUE(Has(outcome.error().at("where").get<std::string>(), "line 2")) << outcome.err;
  }
}

TEST(BadText, JsonErrorsNameThePlaceOnce) {
  const auto where = [](const std::string& line) {
    const Outcome outcome = Attend({"tag", "--json", "--input", "json", "-m", Models::Get().tagger},
                                   "{\"text\": \"ok\"}\n" + line + "\n");
    return outcome.error().at("where").get<std::string>();
  };
  EXPECT_TRUE(where("{\"text\": nonsense}").starts_with("line 2, column 1"));
  EXPECT_EQ(where(""), "line 2");
  EXPECT_EQ(where(" \t"), "line 2");
}

TEST(Info, Objects) {
  const Outcome outcome = Attend({"info", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json object = outcome.objects()[0];
  for (const char* key : {"version", "libraries", "cpu", "isa", "threads_reason"}) {
    EXPECT_NE(object.at(key), "") << key;
  }
  EXPECT_TRUE(object.at("caches").is_object());
  EXPECT_GE(object.at("threads"), 1);
  const std::vector<std::string> isas = object.at("isas");
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), "sse4");
  const Outcome limited = Attend({"info", "--json", "--isa", "sse4", "--threads", "3"});
  EXPECT_EQ(limited.objects()[0].at("isa"), "sse4");
  EXPECT_EQ(limited.objects()[0].at("threads"), 3);
  for (const std::string isa : {"sse4", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}) {
    const bool available = std::find(isas.begin(), isas.end(), isa) != isas.end();
    EXPECT_EQ(Attend({"info", "--isa", isa}).code, available ? 0 : 7) << isa;
  }
}

TEST(Completion, BashCompletesCommandsAndOptions) {
  const std::string script =
      "eval \"$('" + ProgramPath() +
      "' completion bash)\"; "
      "COMP_WORDS=(attend ta); COMP_CWORD=1; _attend; echo \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(attend tag --wor); COMP_CWORD=2; _attend; echo \"${COMPREPLY[@]}\"";
  Child child({"bash", "-c", script});
  EXPECT_EQ(child.Finish(), 0) << child.err();
  EXPECT_EQ(child.err(), "");
  EXPECT_EQ(child.out(), "tag\n--words\n");
  for (const std::string shell : {"zsh", "fish"}) {
    const Outcome outcome = Attend({"completion", shell});
    EXPECT_EQ(outcome.code, 0);
    for (const std::string command : kCommands) EXPECT_TRUE(Has(outcome.out, command)) << shell;
  }
}

TEST(Color, IsAskedFor) {
  const std::string model = Models::Get().tagger;
  EXPECT_FALSE(Has(Attend({"tag", "-m", model, "x"}).out, "\x1b"));
  EXPECT_TRUE(Has(Attend({"tag", "--color", "always", "-m", model, "x"}).out, "\x1b"));
  EXPECT_TRUE(Has(Attend({"tag", "-m", model, "x"}, "", {"CLICOLOR_FORCE=1"}).out, "\x1b"));
  EXPECT_FALSE(
      Has(Attend({"tag", "-m", model, "x"}, "", {"CLICOLOR_FORCE=1", "NO_COLOR=1"}).out, "\x1b"));
  EXPECT_FALSE(Has(
      Attend({"tag", "--color", "never", "-m", model, "x"}, "", {"CLICOLOR_FORCE=1"}).out, "\x1b"));
}

TEST(Output, FullDeviceIsAnIoError) {
  Child child({"bash", "-c", "'" + ProgramPath() + "' info > /dev/full"});
  EXPECT_EQ(child.Finish(), 4) << child.err();
  EXPECT_TRUE(Has(child.err(), "cannot write")) << child.err();
}

}  // namespace
}  // namespace attend::testing
