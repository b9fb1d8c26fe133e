// The manners of a library in somebody's process: what it must not call, print or change, whatever
// is asked of it, errors included; and that it holds no more memory after a million runs.
#include <fenv.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <array>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <locale>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/attention.h"
#include "attend/batcher.h"
#include "attend/text.h"
#include "tests/child.h"
#include "tests/process.h"
#include "tests/random_model.h"
#include "tests/sanitized.h"

namespace attend {
namespace {

const std::string kModels = ATTEND_SOURCE_DIR "/models/";

TEST(Manners, NeverCallsWhatALibraryMustNot) {
  const std::string library = ATTEND_BINARY_DIR "/libattend.so";
  if (!std::filesystem::exists(library)) GTEST_SKIP() << "no shared library in this build";
  if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "a sanitizer calls what it likes";
  const auto [status, output] = testing::RunCommand("nm -D --undefined-only '" + library + "'");
  if (status != 0) GTEST_SKIP() << "no nm here: " << output;
  std::istringstream lines(output);
  const std::set<std::string> forbidden = {
      // ends the process
      "exit", "_exit", "_Exit", "quick_exit", "abort", "__assert_fail", "raise", "kill",
      "__stack_chk_fail_local",
      // changes it
      "signal", "sigaction", "sigprocmask", "pthread_sigmask", "setlocale", "newlocale",
      "uselocale", "chdir", "fchdir", "umask", "setenv", "putenv", "unsetenv", "srand", "srandom",
      "rand", "random", "fesetround", "fesetenv", "feenableexcept", "atexit", "at_quick_exit",
      "pthread_atfork", "fork", "system", "popen", "execve", "sched_setaffinity",
      "pthread_setaffinity_np", "setpriority", "setrlimit", "prctl", "omp_set_nested",
      "omp_set_max_active_levels", "omp_set_schedule", "mlockall",
      // prints
      "printf", "__printf_chk", "fprintf", "__fprintf_chk", "vprintf", "puts", "putchar", "fputs",
      "fputc", "fwrite", "write", "perror", "syslog", "stdout", "stderr", "_ZSt4cout", "_ZSt4cerr",
      "_ZSt4clog"};
  int symbols = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    ++symbols;
    name = name.substr(0, name.find('@'));
    EXPECT_EQ(forbidden.count(name), 0u) << library << " calls " << name;
  }
  EXPECT_GT(symbols, 50) << output;
}

// Calls every part of the interface, well and badly. What came out, as text.
std::string Workout() {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  const auto say = [&](const Status& status) { out << status.ToString() << "\n"; };

  say(Model::Load("no/such/file.attend").status());
  say(Model::FromBytes(std::as_bytes(std::span("not a model"))).status());
  out << AdviseThreads().reason.empty() << CurrentIsa() << AvailableIsas().size() << "\n";

  const Result<Model> model = testing::RandomModel(testing::EncoderConfig(64, 2, 4, 128), 1);
  Result<Session> session = Session::Create(*model, {.num_threads = 2, .max_tokens = 64});
  say(Session::Create(*model, {.num_threads = -1}).status());
  const std::vector<int32_t> ids(40, 5), offsets = {0, 7, 40}, wrong = {0, 40, 7};
  const Result<Output> output = session->Run(TokenBatch{.ids = ids, .offsets = offsets});
  for (size_t i = 0; i < 64; ++i) out << output->hidden[i] << " ";
  say(session->Run(TokenBatch{.ids = ids, .offsets = wrong}).status());
  out << session->Describe() << "\n";

  Result<Batcher> batcher = Batcher::Create(*model, {.session = {.max_tokens = 64}});
  Result<PendingAnswer> pending = batcher->Submit({.ids = ids});
  out << pending->Wait()->hidden[3] << "\n";
  say(batcher->Submit({.ids = ids, .deadline_us = -1}).status());

  Result<Tagger> tagger = Tagger::Load(kModels + "pos-en.attend");
  const Result<Tags> tags = tagger->Tag("I saw 3,5 saws in IRAQ.");
  for (const TaggedWord& word : tags->words) {
    out << word.label << " " << word.score << "\n";
  }
  say(tagger->Tag("\xff").status());
  Result<Classifier> classifier = Classifier::Load(kModels + "sentiment-en.attend");
  out << classifier->Classify("You are very good")->label << "\n";
  say(Embedder::Load(kModels + "pos-en.attend").status());
  Result<Generator> generator = Generator::Load(kModels + "g2p-en.attend");
  out << generator->Generate("attention")->outputs[0].text << "\n";
  Result<AttentionMap> map = AttentionMap::Create(*model);
  out << map.ok() << "\n";
  return out.str();
}

// What belongs to the process and not to a library in it.
struct ProcessState {
  unsigned mxcsr;
  unsigned short x87;
  std::string locale, cpp_locale, cwd;
  mode_t mask;
  int omp_threads, omp_dynamic, omp_levels;
  std::vector<std::pair<void (*)(int), int>> signals;
  int random;

  static ProcessState Now() {
    ProcessState now;
    now.mxcsr = _mm_getcsr() & ~0x3fu;  // without the flags that arithmetic raises
    asm volatile("fnstcw %0" : "=m"(now.x87));
    now.locale = std::setlocale(LC_ALL, nullptr);
    now.cpp_locale = std::locale().name();
    now.cwd = std::filesystem::current_path();
    now.mask = umask(022);
    umask(now.mask);
    now.omp_threads = omp_get_max_threads();
    now.omp_dynamic = omp_get_dynamic();
    now.omp_levels = omp_get_max_active_levels();
    for (int number = 1; number < 32; ++number) {
      struct sigaction action;
      if (sigaction(number, nullptr, &action) != 0) continue;
      now.signals.emplace_back(action.sa_handler, action.sa_flags);
    }
    srand(1);
    now.random = rand();
    return now;
  }
  bool operator==(const ProcessState&) const = default;
};

TEST(Manners, LeavesTheProcessAsItWas) {
  const ProcessState before = ProcessState::Now();
  srand(1);
  Workout();
  const int random = rand();
  EXPECT_EQ(random, before.random) << "somebody has drawn from rand()";
  EXPECT_TRUE(ProcessState::Now() == before);
}

// A host may compute with flushed denormals or other rounding: that stays, too.
TEST(Manners, LeavesTheHostsArithmeticAsItWas) {
  const unsigned usual = _mm_getcsr();
  _mm_setcsr(usual | 0x8040u);  // flush to zero, denormals are zero
  fesetround(FE_DOWNWARD);
  const ProcessState before = ProcessState::Now();
  Workout();
  const ProcessState after = ProcessState::Now();
  fesetround(FE_TONEAREST);
  _mm_setcsr(usual);
  EXPECT_TRUE(after == before);
}

TEST(Manners, PrintsNothing) {
  const testing::TemporaryFolder folder;
  std::fflush(nullptr);
  const std::string file = folder / "printed";
  const int saved[2] = {dup(1), dup(2)};
  std::FILE* const caught = std::fopen(file.c_str(), "w");
  ASSERT_NE(caught, nullptr);
  for (const int fd : {1, 2}) dup2(fileno(caught), fd);
  const std::string said = Workout();
  std::fflush(nullptr);
  for (const int fd : {1, 2}) dup2(saved[fd - 1], fd);
  for (const int fd : saved) close(fd);
  std::fclose(caught);
  EXPECT_FALSE(said.empty());
  EXPECT_EQ(testing::ReadFile(file), "");
}

// "3,5" for 3.5, and letters whose capitals are others.
struct CommaPunct : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Manners, SaysTheSameInAnyCppLocale) {
  const std::string expected = Workout();
  const std::locale before = std::locale::global(std::locale(std::locale(), new CommaPunct));
  const std::string said = Workout();
  std::locale::global(before);
  EXPECT_EQ(said, expected);
}

class CLocale : public ::testing::TestWithParam<const char*> {};

TEST_P(CLocale, SaysTheSame) {
  const std::string name = GetParam();
  const testing::TemporaryFolder folder;
  if (std::setlocale(LC_ALL, (name + ".UTF-8").c_str()) == nullptr) {
    // Not installed: made here, if the means are.
    const std::string command =
        "localedef -i " + name + " -f UTF-8 '" + (folder / (name + ".UTF-8")) + "' 2> /dev/null";
    if (std::system(command.c_str()) != 0) GTEST_SKIP() << "neither " << name << " nor localedef";
    setenv("LOCPATH", folder.path().c_str(), 1);
    const bool set = std::setlocale(LC_ALL, (name + ".UTF-8").c_str()) != nullptr;
    unsetenv("LOCPATH");
    if (!set) GTEST_SKIP() << name << " cannot be set";
  }
  EXPECT_STREQ(std::localeconv()->decimal_point, ",");
  const std::string said = Workout();
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(said, Workout());
}

INSTANTIATE_TEST_SUITE_P(Names, CLocale, ::testing::Values("de_DE", "tr_TR"));

TEST(Manners, AMillionRunsHoldNoMoreMemory) {
  if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "a sanitizer keeps what was freed";
  ModelConfig config = testing::EncoderConfig(16, 1, 2, 32);
  const Result<Model> model = testing::RandomModel(config, 1);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = Session::Create(*model, {.max_tokens = 64, .max_sequences = 8});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<int32_t> ids(64, 3);
  uint32_t random = 1;
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      std::array<int32_t, 9> offsets = {};
      random = random * 1664525 + 1013904223;
      const size_t sequences = 1 + (random >> 28) % 3;
      for (size_t b = 0; b < sequences; ++b) {
        random = random * 1664525 + 1013904223;
        // Now and then an error, which must not hold anything either.
        const int32_t length = static_cast<int32_t>((random >> 24) % 8);
        offsets[b + 1] = offsets[b] + length;
      }
      const size_t tokens = static_cast<size_t>(offsets[sequences]);
      (void)session->Run(TokenBatch{.ids = std::span(ids).first(tokens),
                                    .offsets = std::span(offsets).first(sequences + 1)});
    }
  };
  run(50'000);
  const int64_t before = testing::StatusBytes("VmRSS");
  run(1'000'000);
  const int64_t after = testing::StatusBytes("VmRSS");
  ASSERT_GT(before, 0);
  EXPECT_LE(after, before + before / 100) << "bytes";
}

}  // namespace
}  // namespace attend
