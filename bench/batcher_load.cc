// Batcher under an open load: English sentences come as a Poisson process, whether or not earlier
// ones are answered, and their latency is counted from the moment they were due. Beside it, the
// same queue with one request a run.
//
//   batcher_load [MODEL] [--seconds S] [--workers N] [--threads N] [--max-tokens N]
//
// Prints a table of p50, p99 and p99.9 at 30, 50, 70 and 85 % of the Batcher's capacity, and what
// it does with four times as much.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "attend/attend.h"
#include "attend/batcher.h"
#include "attend/text.h"
#include "engine/runner.h"
#include "tests/testing.h"

namespace attend {
namespace {

struct Settings {
  std::string model = ATTEND_SOURCE_DIR "/models/pos-en.attend";
  double seconds = 5;
  int32_t workers = 0, threads = 1, max_tokens = 512;
};

template <typename T>
T Must(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}

// The first column of every line.
std::vector<std::vector<int32_t>> Sentences(const Model& model) {
  const Tokenizer tokenizer = Must(Tokenizer::FromModel(model));
  std::ifstream file(ATTEND_TEST_DATA "/ud_english_ewt/en_ewt.dev.text.tsv");
  std::vector<std::vector<int32_t>> all;
  const EncodeOptions options{.max_tokens = model.info().max_length};
  for (std::string line; std::getline(file, line);) {
    all.push_back(Must(tokenizer.Encode(line.substr(0, line.find('\t')), options)).ids);
  }
  return all;
}

struct Load {
  const Settings& settings;
  const Model& model;
  const std::vector<std::vector<int32_t>>& sentences;

  BatcherOptions Options(bool one_a_run) const {
    BatcherOptions options;
    options.session.num_threads = settings.threads;
    options.session.max_tokens = settings.max_tokens;
    if (one_a_run) options.session.max_sequences = 1;
    options.num_workers = settings.workers;
    return options;
  }

  // Sentences a second of as many Sessions as there are workers, in full batches, without a queue.
  double Offline(int workers) const {
    std::atomic<int64_t> done{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    const SessionOptions options = Options(false).session;
    std::atomic<int> ready{0};
    for (int w = 0; w < workers; ++w) {
      threads.emplace_back([&, w] {
        Session session = Must(Session::Create(model, options));
        ++ready;
        size_t next = static_cast<size_t>(w) * sentences.size() / static_cast<size_t>(workers);
        std::vector<int32_t> ids, offsets;
        while (!stop) {
          ids.clear();
          offsets.assign(1, 0);
          while (offsets.size() <= static_cast<size_t>(options.max_sequences) &&
                 ids.size() + sentences[next].size() <= static_cast<size_t>(options.max_tokens)) {
            ids.insert(ids.end(), sentences[next].begin(), sentences[next].end());
            offsets.push_back(static_cast<int32_t>(ids.size()));
            next = (next + 1) % sentences.size();
          }
          Must(session.Run(TokenBatch{.ids = ids, .offsets = offsets}));
          done += static_cast<int64_t>(offsets.size()) - 1;
        }
      });
    }
    while (ready < workers) std::this_thread::yield();
    const int64_t before = done, begin = SteadyMicroseconds();
    Sleep(begin + static_cast<int64_t>(settings.seconds * 1e6));
    const double rate = Rate(done - before, SteadyMicroseconds() - begin);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    return rate;
  }

  // Sentences a second of a Batcher whose queue is never empty, by one thread that brings them.
  double Capacity(bool one_a_run) const {
    Batcher batcher = Must(Batcher::Create(model, Options(one_a_run)));
    const int64_t begin = SteadyMicroseconds();
    const int64_t end = begin + static_cast<int64_t>(settings.seconds * 1e6);
    for (size_t i = 0; SteadyMicroseconds() < end; ++i) {
      Must(batcher.Submit({.ids = sentences[i % sentences.size()],
                           .block_us = 10'000'000,
                           .done = [](Result<BatchAnswer>) {}}));
    }
    return Rate(batcher.statistics().answered, SteadyMicroseconds() - begin);
  }

  // The median of runs of one sentence, when there is nothing else to do.
  double ServiceUs() const {
    SessionOptions options = Options(true).session;
    Session session = Must(Session::Create(model, options));
    std::vector<int64_t> us;
    for (const std::vector<int32_t>& ids : sentences) {
      const int32_t offsets[] = {0, static_cast<int32_t>(ids.size())};
      const int64_t begin = SteadyMicroseconds();
      Must(session.Run(TokenBatch{.ids = ids, .offsets = offsets}));
      us.push_back(SteadyMicroseconds() - begin);
    }
    std::sort(us.begin(), us.end());
    return static_cast<double>(us[us.size() / 2]);
  }

  struct Curve {
    double p50 = 0, p99 = 0, p999 = 0;  // ms
    double goodput = 0;                 // answered sentences a second
    double batch = 0;                   // sentences
    int64_t refused = 0, most_bytes = 0;
    double refusal_p99_us = 0, refusal_max_us = 0;
  };

  // Sentences at `rate` a second.
  Curve Open(double rate, bool one_a_run) const {
    const size_t count = static_cast<size_t>(rate * settings.seconds);
    Batcher batcher = Must(Batcher::Create(model, Options(one_a_run)));
    std::vector<int64_t> latency(count, -1), refusals;
    testing::Random random(1);
    Curve curve;
    const int64_t begin = SteadyMicroseconds() + 1000;
    double due = static_cast<double>(begin);
    for (size_t i = 0; i < count; ++i) {
      due += -std::log(1 - random.Uniform()) * 1e6 / rate;
      const int64_t at = static_cast<int64_t>(due);
      Sleep(at);
      const int64_t before = SteadyMicroseconds();
      const Result<PendingAnswer> pending = batcher.Submit(
          {.ids =
               sentences[static_cast<size_t>(random.Below(static_cast<int64_t>(sentences.size())))],
           .done = [&latency, i, at](Result<BatchAnswer> answer) {
             if (answer.ok()) latency[i] = SteadyMicroseconds() - at;
           }});
      if (!pending.ok()) refusals.push_back(SteadyMicroseconds() - before);
      if (i % 64 == 0) {
        curve.most_bytes = std::max(curve.most_bytes, batcher.statistics().bytes);
      }
    }
    const int64_t answered = batcher.statistics().answered;
    curve.goodput = Rate(answered, SteadyMicroseconds() - begin);
    batcher.Drain();
    const BatcherStatistics s = batcher.statistics();
    curve.batch = static_cast<double>(s.batch_sequences) / static_cast<double>(s.batches);
    curve.refused = static_cast<int64_t>(refusals.size());
    std::erase(latency, -1);
    curve.p50 = Quantile(&latency, 0.5) * 1e-3;
    curve.p99 = Quantile(&latency, 0.99) * 1e-3;
    curve.p999 = Quantile(&latency, 0.999) * 1e-3;
    curve.refusal_p99_us = Quantile(&refusals, 0.99);
    curve.refusal_max_us = Quantile(&refusals, 1);
    return curve;
  }

  static double Quantile(std::vector<int64_t>* values, double part) {
    if (values->empty()) return 0;
    std::sort(values->begin(), values->end());
    return static_cast<double>(
        (*values)[static_cast<size_t>(part * static_cast<double>(values->size() - 1))]);
  }
  static double Rate(int64_t count, int64_t us) {
    return static_cast<double>(count) * 1e6 / static_cast<double>(us);
  }
  static void Sleep(int64_t until_us) {
    const timespec time{until_us / 1'000'000, until_us % 1'000'000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
    }
  }
};

void Run(const Settings& settings) {
  const Model model = Must(Model::Load(settings.model));
  const auto sentences = Sentences(model);
  const Load load{settings, model, sentences};
  const int workers = Must(Batcher::Create(model, load.Options(false))).num_workers();
  const double service = load.ServiceUs();
  const double offline = load.Offline(workers);
  const double capacity = load.Capacity(false), lone = load.Capacity(true);
  std::printf("%s, %zu sentences, ISA %s, %d workers of %d threads, budget %d tokens\n",
              settings.model.c_str(), sentences.size(), CurrentIsa().c_str(), workers,
              settings.threads, settings.max_tokens);
  std::printf("service of one sentence alone: %.2f ms (median)\n", service * 1e-3);
  std::printf("sentences a second: offline %.0f, Batcher %.0f (%.0f %%), one a run %.0f\n", offline,
              capacity, 100 * capacity / offline, lone);
  std::printf("%6s %8s | %8s %8s %8s %6s | %8s %8s %8s  (ms)\n", "load", "rate", "p50", "p99",
              "p99.9", "batch", "p50", "p99", "p99.9");
  for (const double part : {0.30, 0.50, 0.70, 0.85}) {
    const Load::Curve batched = load.Open(part * capacity, false);
    const Load::Curve one = load.Open(part * capacity, true);
    std::printf(
        "%5.0f %% %8.0f | %8.2f %8.2f %8.2f %6.2f | %8.2f %8.2f %8.2f  (refused %lld, %lld)\n",
        part * 100, part * capacity, batched.p50, batched.p99, batched.p999, batched.batch, one.p50,
        one.p99, one.p999, static_cast<long long>(batched.refused),
        static_cast<long long>(one.refused));
  }
  const Load::Curve over = load.Open(4 * capacity, false);
  std::printf(
      "four times the capacity: %.0f a second answered (%.0f %% of capacity), p99 %.1f ms; "
      "%lld refused, in %.0f us (p99), %.0f at most; %lld bytes held of %lld\n",
      over.goodput, 100 * over.goodput / capacity, over.p99, static_cast<long long>(over.refused),
      over.refusal_p99_us, over.refusal_max_us, static_cast<long long>(over.most_bytes),
      static_cast<long long>(load.Options(false).max_bytes));
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  attend::Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (!name.starts_with("--")) {
      settings.model = name;
      continue;
    }
    const char* const value = i + 1 < argc ? argv[++i] : "";
    if (name == "--seconds") settings.seconds = std::atof(value);
    if (name == "--workers") settings.workers = std::atoi(value);
    if (name == "--threads") settings.threads = std::atoi(value);
    if (name == "--max-tokens") settings.max_tokens = std::atoi(value);
  }
  attend::Run(settings);
}
