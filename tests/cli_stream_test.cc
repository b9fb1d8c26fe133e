// The program as a filter and as a co-process: order, waiting, memory, signals.
#include <gtest/gtest.h>

#include <thread>

#include "tests/child.h"
#include "tests/process.h"

namespace attend::testing {
namespace {

using nlohmann::json;

std::vector<json> Lines(const std::string& text) {
  Outcome outcome;
  outcome.out = text;
  return outcome.objects();
}

TEST(Stream, OrderIsKeptAndEmptyLinesCount) {
  std::string input;
  std::vector<std::string> expected;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (int j = 0; j < i % 7; ++j) text += (j == 0 ? "" : " ") + std::to_string(i);
    expected.push_back(text);
    input += text + (i % 2 == 0 ? "\n" : "\r\n");
  }
  input += "last, without a line end";
  expected.push_back("last, without a line end");
  for (const std::string tokens : {"8192", "64", "1"}) {
    const Outcome outcome =
        Attend({"tag", "--json", "--batch-tokens", tokens, "-m", Models::Get().tagger}, input);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> texts;
    for (const json& object : outcome.objects()) texts.push_back(object.at("text"));
    EXPECT_EQ(texts, expected) << tokens;
  }
}

TEST(Stream, BatchesDoNotChangeResults) {
  std::string input;
  for (int i = 0; i < 300; ++i) input += "some words " + std::to_string(i * i) + "\n";
  const std::string model = Models::Get().tagger;
  const Outcome a = Attend({"tag", "--json", "--threads", "1", "-m", model}, input);
  const Outcome b =
      Attend({"tag", "--json", "--threads", "2", "--batch-tokens", "100", "-m", model}, input);
  ASSERT_EQ(a.code, 0) << a.err;
  ASSERT_EQ(b.code, 0) << b.err;
  EXPECT_EQ(a.out, b.out);
}

TEST(Stream, NoInputGivesNothing) {
  const Outcome outcome = Attend({"tag", "--json", "-m", Models::Get().tagger}, "");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
}

class CoProcess : public ::testing::TestWithParam<const char*> {};

// Every line is answered before the next is sent, in pieces that do not end with lines.
TEST_P(CoProcess, AnswersEveryLineAtOnce) {
  const Models& models = Models::Get();
  const std::string command = GetParam();
  std::vector<std::string> arguments = {ProgramPath(), command, "--json"};
  std::string line = "I saw a saw";
  if (command == "run") {
    arguments.push_back(models.tagger);
    line = "{\"ids\": [2, 5, 3]}";
  } else {
    arguments.push_back("-m");
    arguments.push_back(command == "embed"      ? models.embedder
                        : command == "classify" ? models.classifier
                                                : models.tagger);
  }
  Child child(arguments);
  size_t lines = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_GE(child.Pump(line.substr(0, 3), 20000), 0);
    ASSERT_GE(child.Pump(line.substr(3) + "\n", 20000), 0);
    ASSERT_TRUE(child.WaitLines(++lines))
        << command << " did not answer line " << lines << child.err();
  }
  // Two lines and a half: the two are answered though the third is not there yet.
  ASSERT_GE(child.Pump(line + "\n" + line + "\n" + line.substr(0, 5), 20000), 0);
  lines += 2;
  ASSERT_TRUE(child.WaitLines(lines)) << child.err();
  EXPECT_EQ(child.Finish(line.substr(5) + "\n"), 0) << child.err();
  EXPECT_EQ(child.Lines(), lines + 1);
}

INSTANTIATE_TEST_SUITE_P(Commands, CoProcess,
                         ::testing::Values("tag", "tokenize", "classify", "embed", "run"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Stream, MemoryIsConstant) {
  Child child({ProgramPath(), "tag", "--threads", "1", "-m", Models::Get().tagger});
  constexpr size_t kLines = 200000;
  std::string block;
  for (int i = 0; i < 1000; ++i) block += "a few short words " + std::to_string(i) + "\n";
  int64_t early = 0;
  for (size_t sent = 0; sent < kLines; sent += 1000) {
    std::string_view rest = block;
    while (!rest.empty()) {
      const ssize_t written = child.Pump(rest, 60000);
      ASSERT_GE(written, 0) << "stopped at line " << sent << child.err();
      rest.remove_prefix(static_cast<size_t>(written));
    }
    if (sent == kLines / 10) {
      ASSERT_TRUE(child.WaitLines(sent / 2));
      early = testing::StatusBytes("VmHWM", child.pid());
    }
  }
  ASSERT_TRUE(child.WaitLines(kLines - 1000)) << child.Lines();
  const int64_t late = testing::StatusBytes("VmHWM", child.pid());
  EXPECT_EQ(child.Finish(), 0) << child.err();
  EXPECT_EQ(child.Lines(), kLines);
  ASSERT_GT(early, 0);
  EXPECT_LT(late - early, 2 << 20) << "from " << early << " to " << late << " bytes";
}

TEST(Stream, TextOfAMegabyteLosesNoWord) {
  std::string text;
  constexpr size_t kWords = 100000;
  for (size_t i = 0; i < kWords; ++i) text += "word" + std::to_string(i % 97) + " ";
  const Outcome outcome = Attend({"tag", "--words", "--json", "-m", Models::Get().tagger},
                                 text.substr(0, text.size() - 1) + "\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json object = outcome.objects()[0];
  ASSERT_EQ(object.at("words").size(), kWords);
  for (const json& word : object.at("words")) ASSERT_NE(word.at("label"), "");
  EXPECT_EQ(object.at("windowed"), true);
}

TEST(Signals, InterruptGives130AndWritesWhatIsDone) {
  for (const int number : {SIGINT, SIGTERM}) {
    Child child({ProgramPath(), "tag", "--json", "-m", Models::Get().tagger});
    ASSERT_GE(child.Pump("one line\n", 20000), 0);
    ASSERT_TRUE(child.WaitLines(1)) << child.err();
    kill(child.pid(), number);
    while (child.Pump("", 20000) >= 0 && child.err().find('\n') == std::string::npos) {
    }
    EXPECT_EQ(child.Finish(), 130) << child.err();
    EXPECT_EQ(Lines(child.err())[0].at("error").at("code"), "CANCELLED");
  }
}

TEST(Signals, InterruptLeavesNoFileBehind) {
  TemporaryFolder folder;
  Child child({ProgramPath(), "embed", "-m", Models::Get().embedder, "-o", folder / "x.npy"});
  ASSERT_GE(child.Pump("one line\n", 20000), 0);
  // The file has no name before it is whole, but the program has it open.
  const auto is_writing = [&] {
    for (const auto& fd :
         std::filesystem::directory_iterator("/proc/" + std::to_string(child.pid()) + "/fd")) {
      std::error_code gone;
      const std::string target = std::filesystem::read_symlink(fd, gone).string();
      if (target.starts_with(folder.path() + "/")) return true;
    }
    return false;
  };
  for (int i = 0; i < 2000 && !is_writing(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(is_writing());
  kill(child.pid(), SIGINT);
  // The input stays open until the signal has been seen: its end would be a regular one.
  while (child.Pump("", 20000) >= 0 && child.err().find('\n') == std::string::npos) {
  }
  EXPECT_EQ(child.Finish(), 130) << child.err();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// The end of the input must not hide a signal that came before it.
TEST(Signals, InterruptJustBeforeTheEndOfTheInput) {
  for (int i = 0; i < 20; ++i) {
    Child child({ProgramPath(), "tokenize", "--json", "-m", Models::Get().tagger});
    ASSERT_GE(child.Pump("one line\n", 20000), 0);
    ASSERT_TRUE(child.WaitLines(1)) << child.err();
    kill(child.pid(), SIGINT);
    EXPECT_EQ(child.Finish(), 130) << "round " << i << child.err();
  }
}

// A file that is opened later must not become what messages are written to.
TEST(Stream, ClosedStandardStreamsStayTaken) {
  Child child(
      {"bash", "-c",
       "exec '" + ProgramPath() + "' tokenize -m '" + Models::Get().tagger + "' 1>&- 2>&-"});
  const std::string fds = "/proc/" + std::to_string(child.pid()) + "/fd/";
  std::error_code error;
  for (int i = 0; i < 2000 && std::filesystem::read_symlink(fds + "1", error) != "/dev/null"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(std::filesystem::read_symlink(fds + "1", error), "/dev/null");
  EXPECT_EQ(std::filesystem::read_symlink(fds + "2", error), "/dev/null");
  EXPECT_EQ(child.Finish("a line\n"), 4);  // and writing to them is an error still
}

TEST(Signals, ClosedPipeEndsQuietly) {
  Child child({"bash", "-c",
               "yes 'some words' | '" + ProgramPath() + "' tag -m '" + Models::Get().tagger +
                   "' | head -n 3"});
  EXPECT_EQ(child.Finish(), 0);
  EXPECT_EQ(child.Lines(), 3u);
  EXPECT_EQ(child.err(), "");
}

TEST(Stream, ProgressIsForTerminalsOnly) {
  std::string input;
  for (int i = 0; i < 5000; ++i) input += "x\n";
  EXPECT_EQ(Attend({"tag", "-m", Models::Get().tagger}, input).err, "");
}

}  // namespace
}  // namespace attend::testing
