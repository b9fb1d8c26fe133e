// What it costs to look inside: runs with a trace, and with telemetry, beside plain ones in turn,
// and beside other plain ones, which is what the machine's noise comes to.
//
//   seeing_inside [MODEL] [ROUNDS]
//   seeing_inside MODEL count     plain runs alone, in a function of their own, for callgrind:
//     valgrind --tool=callgrind --toggle-collect='*CountedRuns*' seeing_inside MODEL count
//
// Prints a line for each batch: the plain run's time, and the others' by it. They run in ROUNDS
// turns of some 20 ms each; what counts is the shortest run of all, which other programs on the
// machine disturb least. Behind it how many spans a run has, and how much of its time it takes to
// note them, counted one by one: below what can be seen in the run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/trace.h"
#include "engine/trace_buffer.h"

namespace attend {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}

struct LookedAt {
  LookedAt(const Model& model, int32_t sequences, int32_t length) : offsets{0} {
    for (int32_t i = 0; i < sequences * length; ++i) {
      ids.push_back(i * 7919 % model.info().vocab_size);
    }
    for (int32_t b = 0; b < sequences; ++b) offsets.push_back((b + 1) * length);
  }
  void Run(Session* session) const {
    Must(session->Run(TokenBatch{.ids = ids, .offsets = offsets}));
  }
  std::vector<int32_t> ids, offsets;
};

// The shortest of `runs`, in seconds.
double Shortest(const LookedAt& batch, int runs, Session* session) {
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    batch.Run(session);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count());
  }
  return least;
}

// What a walk takes to note one, at its shortest.
double SecondsOfASpan() {
  static const double seconds = [] {
    Trace trace = Must(Trace::Create(10'000));
    PlanTrace plan;
    plan.buffer = trace.buffer();
    plan.steps = {plan.buffer->Name("step")};
    double least = 1e9;
    for (int round = 0; round < 100; ++round) {
      trace.Clear();
      TraceClock clock(&plan, nullptr);
      const int64_t begin = TraceNow();
      for (int i = 0; i < 10'000; ++i) clock.Ran(0);
      least = std::min(least, static_cast<double>(TraceNow() - begin) * 1e-9 / 10'000);
    }
    return least;
  }();
  return seconds;
}

void Compare(const Model& model, int threads, int32_t sequences, int32_t length, int rounds) {
  Trace trace = Must(Trace::Create());
  const SessionOptions plain = {.num_threads = threads, .max_tokens = 4096};
  SessionOptions traced = plain, timed = plain;
  traced.trace = &trace;
  timed.telemetry = true;
  std::vector<Session> sessions;
  for (const SessionOptions& options : {plain, plain, traced, timed}) {
    sessions.push_back(Must(Session::Create(model, options)));
  }
  const LookedAt batch(model, sequences, length);
  for (Session& session : sessions) Shortest(batch, 2, &session);
  const double once = Shortest(batch, 3, &sessions[0]);
  const int runs = std::clamp(static_cast<int>(0.02 / once), 3, 200);
  double least[4] = {1e9, 1e9, 1e9, 1e9};
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 4; ++i) {
      const auto which = static_cast<size_t>((i + round) % 4);  // nobody is always first
      least[which] = std::min(least[which], Shortest(batch, runs, &sessions[which]));
    }
    trace.Clear();
  }
  batch.Run(&sessions[2]);
  const double spans = static_cast<double>(trace.num_events());
  std::printf("%7d %6d x %-6d %10.1f %9.4f %9.4f %10.4f %8.0f %9.3f %%\n", threads, sequences,
              length, least[0] * 1e6, least[1] / least[0], least[2] / least[0], least[3] / least[0],
              spans, 100 * spans * SecondsOfASpan() / threads / least[0]);
  std::fflush(stdout);
}

[[gnu::noinline]] void CountedRuns(const LookedAt& batch, Session* session) {
  for (int i = 0; i < 3; ++i) batch.Run(session);
}

int Main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : ATTEND_SOURCE_DIR "/models/pos-en.attend";
  const Model model = Must(Model::Load(path));
  if (argc > 2 && std::strcmp(argv[2], "count") == 0) {
    Session session = Must(Session::Create(model, {.max_tokens = 512}));
    const LookedAt batch(model, 2, 30);
    batch.Run(&session);
    CountedRuns(batch, &session);
    return 0;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 41;
  std::printf("%s, %d rounds, %.1f ns a span\n", CurrentIsa().c_str(), rounds,
              SecondsOfASpan() * 1e9);
  std::printf(
      "threads  batch           plain us     plain     trace  telemetry    spans  their time\n");
  for (const int threads : {1, 2}) {
    for (const auto& [sequences, length] : {std::pair(1, 8), {1, 32}, {1, 128}, {16, 32}}) {
      Compare(model, threads, sequences, length, rounds);
    }
  }
  return 0;
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) { return attend::Main(argc, argv); }
