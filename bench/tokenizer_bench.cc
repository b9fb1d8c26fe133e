// Bytes a second of the tokenizer: on text as people write it, and on text made to be slow, for
// which the time of twice the length is set beside it (linear: 2).
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/text.h"
#include "engine/text/tokenizer_data.h"

namespace attend {
namespace {

const std::string kData = std::string(ATTEND_SOURCE_DIR) + "/tests/data/minilm/";

TokenizerSpec MiniLmSpec() {
  TokenizerSpec spec;
  std::ifstream file(kData + "vocab.txt");
  for (std::string line; std::getline(file, line);) spec.vocabulary.push_back(line);
  for (int32_t id : {0, 100, 101, 102, 103}) {
    spec.added_tokens.push_back(
        {.content = spec.vocabulary.at(static_cast<size_t>(id)), .id = id, .special = true});
  }
  spec.unk_id = 100;
  spec.single = {
      {PartKind::kToken, 101, 0}, {PartKind::kSequenceA, 0, 0}, {PartKind::kToken, 102, 0}};
  return spec;
}

const Tokenizer& MiniLm() {
  static const Tokenizer tokenizer = *Tokenizer::FromBytes(SerializeTokenizer(MiniLmSpec()));
  return tokenizer;
}

// The English sentences of the stored cases, one a line.
std::vector<std::string> Sentences() {
  std::vector<std::string> sentences;
  std::ifstream file(kData + "cases.jsonl");
  for (std::string line; std::getline(file, line);) {
    const std::string text = nlohmann::json::parse(line)["text"];
    const bool is_ascii = std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
    // The first cases are strings that are made to be hard.
    if (is_ascii && text.size() > 20 && text.find(' ') < 16) sentences.push_back(text + "\n");
  }
  return sentences;
}

std::string Repeat(const std::string& text, size_t bytes) {
  std::string repeated;
  while (repeated.size() < bytes) repeated += text;
  return repeated;
}

struct Text {
  const char* name;
  std::string unit;
};

std::vector<Text> Texts() {
  std::string english;
  for (const std::string& sentence : Sentences()) english += sentence;
  return {{"english", english},
          {"accents", "Café naïve Ångström façade, Việt Nam đẹp lắm. "},
          {"cyrillic", "Здравствуй, мир! Ёлка стоит в лесу. "},
          {"cjk_prose", "我看見一把鋸子，它在看著我。"},
          {"one_letter", "a"},
          {"one_accented_letter", "é"},
          {"combining_marks", "\u0301"},
          {"marks_out_of_order", "\u302E\U0001D165\u0301"},
          {"cjk", "中"},
          {"punctuation", "."},
          {"unknown_words", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\u0378 "},
          {"brackets", "[MASK"},
          {"nul", std::string(1, '\0')}};
}

// Of this thread alone, so that neighbours on the machine do not blur the ratio.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double SecondsOf(const std::string& text, Encoding* encoding) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start = ThreadSeconds();
    if (!MiniLm().EncodeInto(text, {}, encoding).ok()) return 0;
    best = std::min(best, ThreadSeconds() - start);
  }
  return best;
}

void Encode4MiB(benchmark::State& state, const std::string& unit) {
  const std::string text = Repeat(unit, size_t{4} << 20);
  Encoding encoding;
  for (auto _ : state) {
    if (!MiniLm().EncodeInto(text, {}, &encoding).ok()) state.SkipWithError("refused");
    benchmark::DoNotOptimize(encoding.ids.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["tokens"] = static_cast<double>(encoding.ids.size());
  const double half = SecondsOf(Repeat(unit, size_t{2} << 20), &encoding);
  state.counters["t(2n)/t(n)"] = SecondsOf(text, &encoding) / half;
}

// As a server does it: one short text after the other.
void EncodeSentences(benchmark::State& state) {
  const std::vector<std::string> sentences = Sentences();
  size_t bytes = 0;
  Encoding encoding;
  for (auto _ : state) {
    for (const std::string& sentence : sentences) {
      if (!MiniLm().EncodeInto(sentence, {}, &encoding).ok()) state.SkipWithError("refused");
      bytes += sentence.size();
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(EncodeSentences)->Unit(benchmark::kMicrosecond);

void Load(benchmark::State& state) {
  const std::vector<std::byte> bytes = SerializeTokenizer(MiniLmSpec());
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::FromBytes(bytes));
}
BENCHMARK(Load)->Unit(benchmark::kMillisecond);

const bool kRegistered = [] {
  for (const Text& text : Texts()) {
    benchmark::RegisterBenchmark((std::string("Encode4MiB/") + text.name).c_str(), Encode4MiB,
                                 text.unit)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace attend
