// The manners of a library in somebody's process: what it must not call, print or change, whatever
// is asked of it, errors included; and that it holds no more memory after a million runs of varying
// shapes, and as many requests of a Batcher as ATTEND_SOAK says.
#include <fenv.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <locale>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
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
#include "tests/testing.h"
#include "tests/tiny_text_model.h"

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

// How many requests a soak makes, and how much what is resident grew from after the first twentieth
// of them until the end. `request` makes one.
void ExpectNoGrowth(const char* name, int64_t count, const std::function<void()>& request) {
  const auto make = [&](int64_t requests) {
    for (int64_t i = 0; i < requests; ++i) request();
    return testing::StatusBytes("VmRSS");
  };
  const int64_t before = make(std::max<int64_t>(count / 20, 20'000));
  const int64_t after = make(count);
  std::printf("%s: %" PRId64 " requests, %" PRId64 " bytes before, %+" PRId64 " after (%+.2f %%)\n",
              name, count, before, after - before,
              100 * static_cast<double>(after - before) / static_cast<double>(before));
  ASSERT_GT(before, 0);
  EXPECT_LE(after, before + before / 100) << "bytes";
}

// From 1 to 8 sequences, of 64 tokens together at most; now and then an error (an empty sequence,
// an id out of range), which must not hold anything either.
TEST(Manners, AMillionRunsHoldNoMoreMemory) {
  if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "a sanitizer keeps what was freed";
  const Result<Model> model = testing::RandomModel(testing::EncoderConfig(16, 1, 2, 32), 1);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = Session::Create(*model, {.max_tokens = 64, .max_sequences = 8});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  std::vector<int32_t> ids(64, 3);
  std::set<std::vector<int32_t>> shapes;
  int64_t good = 0, bad = 0;
  testing::Random random(1);
  ExpectNoGrowth("runs", 1'000'000, [&] {
    std::array<int32_t, 9> offsets = {};
    const int64_t sequences = 1 + random.Below(8);
    const int64_t longest = 1 + random.Below(64 / sequences);
    for (int64_t b = 0; b < sequences; ++b) {
      const bool empty = random.Below(200) == 0;
      offsets[b + 1] = offsets[b] + (empty ? 0 : 1 + static_cast<int32_t>(random.Below(longest)));
    }
    ids[0] = random.Below(100) == 0 ? 1 << 20 : 3;
    const auto borders = static_cast<size_t>(sequences) + 1;
    const auto tokens = static_cast<size_t>(offsets[borders - 1]);
    const Result<Output> output = session->Run(TokenBatch{
        .ids = std::span(ids).first(tokens), .offsets = std::span(offsets).first(borders)});
    ++(output.ok() ? good : bad);
    if (good + bad <= 1000) shapes.insert({offsets.begin(), offsets.end()});
  });
  EXPECT_GT(good, 900'000);
  EXPECT_GT(bad, 10'000);
  EXPECT_GT(shapes.size(), 800u) << "shapes in a thousand runs";
}

// ATTEND_SOAK=N requests (100,000): ids and texts of any length, some cancelled, too late or wrong;
// two workers put them into batches.
TEST(Manners, RequestsOfABatcherHoldNoMoreMemory) {
  if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "a sanitizer keeps what was freed";
  const char* const asked = std::getenv("ATTEND_SOAK");
  const Result<Model> model = Model::FromBytes(testing::TinyModelBytes(Task::kSequence));
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Batcher> batcher = Batcher::Create(
      *model, {.session = {.max_tokens = 256, .telemetry = true}, .num_workers = 2});
  ASSERT_TRUE(batcher.ok()) << batcher.status().ToString();
  const std::vector<int32_t> ids(64, 3);
  std::string words;
  while (words.size() < 64) words += "I saw a saw ";
  // What was asked for and not waited for yet: the oldest is when its place is needed.
  std::array<std::optional<PendingAnswer>, 16> waiting;
  size_t next = 0;
  int64_t good = 0, bad = 0;
  testing::Random random(1);
  ExpectNoGrowth("a Batcher", asked == nullptr ? 100'000 : std::atoll(asked), [&] {
    std::optional<PendingAnswer>& place = waiting[next++ % waiting.size()];
    if (place) ++(place->Wait().ok() ? good : bad);
    place.reset();
    BatchRequest request;
    request.priority = static_cast<int32_t>(random.Below(3));
    request.want_hidden = random.Below(2) == 0;
    const auto length = static_cast<size_t>(1 + random.Below(60));
    if (random.Below(2) == 0) {
      request.ids = std::span(ids).first(length);
    } else {
      request.text = std::string_view(words).substr(0, length);
    }
    const int64_t fate = random.Below(50);
    if (fate == 0) request.deadline_us = 1 + random.Below(100);
    if (fate == 1) request.type_ids = ids;  // of another number, or beside a text
    Result<PendingAnswer> pending = batcher->Submit(request);
    if (!pending.ok()) {
      ++bad;
      return;
    }
    if (fate == 2) pending->Cancel();
    place = *std::move(pending);
  });
  EXPECT_GT(good, 90'000);
  EXPECT_GT(bad, 1000);
}

}  // namespace
}  // namespace attend
