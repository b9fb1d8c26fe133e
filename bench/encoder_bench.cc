// A whole encoder of MiniLM's size with random weights: a grid of batch and length, and batches of
// 32 English sentences as they come, in every precision. ATTEND_ISA=NAME chooses the ISA,
// ATTEND_THREADS=N the threads (without it 1 and 2). To compare precisions, let them take turns:
// --benchmark_enable_random_interleaving=true.
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/text.h"
#include "bench/bench.h"
#include "tests/random_model.h"

namespace attend {
namespace {

constexpr int64_t kWidth = 384, kLayers = 6, kHeads = 12, kFfn = 1536;
constexpr int32_t kVocabulary = 30522;
constexpr int32_t kMaxTokens = 32 * 512;

struct Batch {
  std::vector<int32_t> ids;
  std::vector<int32_t> offsets = {0};

  void Add(int32_t length) {
    for (int32_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<int32_t>(ids.size() * 7919 % kVocabulary));
    }
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
};

// Two FLOPs for each weight of a linear layer and token; four for each pair of a query and a key
// and column of attention. What lies between counts as time, not as work.
double Flops(const Batch& batch) {
  double flops = 0;
  for (size_t b = 0; b + 1 < batch.offsets.size(); ++b) {
    const double length = batch.offsets[b + 1] - batch.offsets[b];
    flops += kLayers *
             (length * (2.0 * kWidth * (4 * kWidth + 2 * kFfn)) + 4.0 * length * length * kWidth);
  }
  return flops;
}

const Result<Model>& MiniLmSized() {
  static const Result<Model> model = [] {
    ModelConfig config = testing::EncoderConfig(kWidth, kLayers, kHeads, kFfn);
    config.vocab_size = kVocabulary;
    return testing::RandomModel(config, 1);
  }();
  return model;
}

// The batches, one after the other, an iteration.
void Run(benchmark::State& state, int threads, Precision precision,
         const std::vector<Batch>& batches) {
  if (!bench::BindIsa(state)) return;
  if (!MiniLmSized().ok()) {
    return state.SkipWithError(MiniLmSized().status().ToString().c_str());
  }
  Result<Session> session = Session::Create(
      *MiniLmSized(), {.num_threads = threads, .max_tokens = kMaxTokens, .precision = precision});
  if (!session.ok()) return state.SkipWithError(session.status().ToString().c_str());
  double flops = 0, tokens = 0;
  for (const Batch& batch : batches) {
    flops += Flops(batch);
    tokens += batch.offsets.back();
  }
  for (auto _ : state) {
    for (const Batch& batch : batches) {
      const auto output = session->Run(TokenBatch{.ids = batch.ids, .offsets = batch.offsets});
      if (!output.ok()) return state.SkipWithError(output.status().ToString().c_str());
      benchmark::DoNotOptimize(output->hidden.data());
    }
  }
  bench::CountFlops(state, flops);
  state.counters["tokens"] =
      benchmark::Counter(tokens, benchmark::Counter::kIsIterationInvariantRate);
}

void BM_Grid(benchmark::State& state, int threads, Precision precision, int32_t sequences,
             int32_t length) {
  Batch batch;
  for (int32_t b = 0; b < sequences; ++b) batch.Add(length);
  Run(state, threads, precision, {batch});
}

// Lengths of the treebank's dev sentences in tokens of the shipped tagger, in the file's order.
Result<std::vector<int32_t>> SentenceLengths() {
  const std::string source(ATTEND_SOURCE_DIR);
  const Result<Tokenizer> tokenizer = Tokenizer::Load(source + "/models/pos-en.attend");
  if (!tokenizer.ok()) return tokenizer.status();
  std::vector<int32_t> lengths;
  std::ifstream file(std::string(ATTEND_TEST_DATA) + "/ud_english_ewt/en_ewt.dev.text.tsv");
  Encoding encoding;
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = std::string_view(line).substr(0, line.find('\t'));
    ATTEND_RETURN_IF_ERROR(tokenizer->EncodeInto(text, {}, &encoding));
    lengths.push_back(static_cast<int32_t>(encoding.ids.size()));
  }
  return lengths;
}

void BM_Sentences(benchmark::State& state, int threads, Precision precision) {
  const Result<std::vector<int32_t>> lengths = SentenceLengths();
  if (!lengths.ok()) return state.SkipWithError(lengths.status().ToString().c_str());
  if (lengths->empty()) return state.SkipWithError("the sentences are not there");
  std::vector<Batch> batches;
  for (size_t i = 0; i < lengths->size(); ++i) {
    if (i % 32 == 0) batches.emplace_back();
    batches.back().Add((*lengths)[i]);
  }
  Run(state, threads, precision, batches);
}

void Register(int threads, Precision precision) {
  const std::string prefix = std::string("encoder/") + Name(precision);
  const std::string suffix = "/threads:" + std::to_string(threads);
  for (const int32_t sequences : {1, 8, 32}) {
    for (const int32_t length : {8, 16, 32, 64, 128, 256, 512}) {
      const std::string name =
          prefix + "/B:" + std::to_string(sequences) + "/L:" + std::to_string(length) + suffix;
      benchmark::RegisterBenchmark(name.c_str(), BM_Grid, threads, precision, sequences, length)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
  benchmark::RegisterBenchmark((prefix + "/sentences" + suffix).c_str(), BM_Sentences, threads,
                               precision)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

const bool kRegistered = [] {
  for (const int threads : bench::ThreadCounts()) {
    for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
      Register(threads, precision);
    }
  }
  return true;
}();

}  // namespace
}  // namespace attend
