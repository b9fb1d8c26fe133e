// Decoding, token by token: tokens a second at batch 1 and 16, of a decoder alone (Llama's manner)
// and of an encoder-decoder (T5's manner), with random weights. ATTEND_ISA=NAME chooses the ISA,
// ATTEND_THREADS=N the threads (without it 1 and 2), ATTEND_PRECISION=bf16 or int8 the arithmetic.
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "bench/bench.h"
#include "engine/decoder.h"
#include "tests/decoder_testing.h"

namespace attend {
namespace {

constexpr int32_t kSteps = 64;  // an iteration, behind `length` tokens
constexpr int32_t kVocabulary = 8000;

ModelConfig DecoderOf512() {
  ModelConfig config = testing::DecoderConfig();
  config.hidden_size = config.embedding_size = 512;
  config.num_layers = 6;
  config.num_heads = 8;
  config.num_kv_heads = 8;
  config.head_dim = 64;
  config.intermediate_size = 1376;
  config.vocab_size = kVocabulary;
  config.max_length = 1024;
  return config;
}

ModelConfig PairOf512() {
  ModelConfig config = testing::EncoderDecoderConfig();
  config.hidden_size = config.embedding_size = 512;
  config.num_layers = config.decoder_layers = 6;
  config.num_heads = config.num_kv_heads = config.decoder_heads = 8;
  config.head_dim = config.decoder_head_dim = 64;
  config.intermediate_size = config.decoder_intermediate_size = 2048;
  config.vocab_size = kVocabulary;
  config.relative_max_distance = 128;
  return config;
}

const Result<Model>& ModelOf(bool pair) {
  static const Result<Model> decoder = testing::RandomModel(DecoderOf512(), 1);
  static const Result<Model> both = testing::RandomModel(PairOf512(), 1);
  return pair ? both : decoder;
}

// Starts `rows` sequences of `length` tokens (and as long a source, if there is an encoder).
Status Start(DecodeSession* session, const std::vector<int32_t>& rows, int32_t length) {
  std::vector<int32_t> ids(rows.size() * static_cast<size_t>(length)), offsets = {0};
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7919 % kVocabulary);
  for (size_t b = 0; b < rows.size(); ++b) offsets.push_back(offsets.back() + length);
  DecodeStart start{.rows = rows, .ids = ids, .offsets = offsets};
  if (session->has_encoder()) {
    start.source_ids = ids;
    start.source_offsets = offsets;
  }
  return session->Start(start).status();
}

Precision PrecisionAsked() {
  const char* name = std::getenv("ATTEND_PRECISION");
  if (name == nullptr) return Precision::kF32;
  return std::string(name) == "bf16" ? Precision::kBf16 : Precision::kInt8;
}

void BM_Decode(benchmark::State& state, bool pair, int threads, int32_t batch, int32_t length) {
  if (!bench::BindIsa(state)) return;
  if (!ModelOf(pair).ok()) return state.SkipWithError(ModelOf(pair).status().ToString().c_str());
  Result<DecodeSession> session =
      DecodeSession::Create(*ModelOf(pair), {.num_threads = threads,
                                             .max_rows = batch,
                                             .max_length = 1024,
                                             .max_source_tokens = 1024,
                                             .precision = PrecisionAsked()});
  if (!session.ok()) return state.SkipWithError(session.status().ToString().c_str());
  std::vector<int32_t> rows(static_cast<size_t>(batch)), ids(static_cast<size_t>(batch), 5);
  std::iota(rows.begin(), rows.end(), 0);
  for (auto _ : state) {
    state.PauseTiming();
    Status status = session->Step({}, {}, {}).status();
    if (status.ok()) status = Start(&*session, rows, length);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
    state.ResumeTiming();
    for (int32_t i = 0; i < kSteps; ++i) {
      const auto logits = session->Step(rows, rows, ids);
      if (!logits.ok()) return state.SkipWithError(logits.status().ToString().c_str());
      benchmark::DoNotOptimize(logits->data());
    }
  }
  state.counters["tokens"] =
      benchmark::Counter(kSteps * batch, benchmark::Counter::kIsIterationInvariantRate);
}

const bool kRegistered = [] {
  for (const bool pair : {false, true}) {
    for (const int threads : bench::ThreadCounts()) {
      for (const int32_t batch : {1, 16}) {
        for (const int32_t length : {16, 256}) {
          const std::string name =
              std::string(pair ? "encoder_decoder" : "decoder") + "/B:" + std::to_string(batch) +
              "/cached:" + std::to_string(length) + "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(), BM_Decode, pair, threads, batch, length)
              ->Unit(benchmark::kMillisecond)
              ->UseRealTime();
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace attend
