// The price of every part of the attention family: each is timed in turns with plain scaled-dot
// softmax of the same shape, and `price` is the median of the ratios of the pairs. Additive also
// says what share of the rate of tanh on an array in L1 it reaches, in turns again (`of_tanh`).
// ATTEND_ISA=NAME chooses the ISA.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "kernels/activation.h"
#include "kernels/attention.h"

namespace attend {
namespace {

using bench::Floats;
using Normalizer = AttentionNormalizer;

struct Shape {
  int64_t length, heads, width;
  int64_t rounds;  // pairs of turns
};
constexpr Shape kShapes[] = {
    {16, 12, 32, 300}, {128, 12, 32, 100}, {512, 12, 32, 21}, {4096, 1, 32, 5}};

// A call of a given shape with everything that an option may need.
struct Call {
  Shape shape;
  Floats q, k, v, out, scratch, additive, distances, dense;
  std::vector<float> slopes;
  std::vector<int32_t> edge_offsets, edge_keys;
  AttentionSpec spec;
  AttentionArgs args;

  explicit Call(const Shape& s)
      : shape(s),
        q(s.length * s.heads * s.width),
        k(s.length * s.heads * s.width),
        v(s.length * s.heads * s.width),
        out(s.length * s.heads * s.width),
        scratch(AttentionScratchFloats(s.length)),
        additive(s.heads * s.width),
        distances(s.heads * DistanceBiasWidth(128)),
        dense(s.heads * s.length * s.length),
        slopes(static_cast<size_t>(s.heads), 0.01f) {
    spec.heads = spec.kv_heads = s.heads;
    spec.key_dim = spec.value_dim = s.width;
    spec.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.width)));
    args.q = q.data();
    args.packed_k = k.data();
    args.packed_v = v.data();
    args.out = out.data();
    args.query_count = args.num_keys = s.length;
    args.ldq = args.ld_out = s.heads * s.width;
    args.head_end = s.heads;
    args.scratch = scratch.data();
  }

  // `count` edges a row, near the diagonal (`spread` keys to either side) or anywhere.
  void SetEdges(int64_t count, int64_t spread) {
    uint64_t x = 1;
    edge_offsets.assign(1, 0);
    for (int64_t i = 0; i < shape.length; ++i) {
      std::vector<int32_t> keys;
      while (static_cast<int64_t>(keys.size()) < std::min(count, shape.length)) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const int64_t at = static_cast<int64_t>((x >> 33) % (2 * static_cast<uint64_t>(spread)));
        const int64_t key = (i + at - spread + 2 * shape.length) % shape.length;
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
          keys.push_back(static_cast<int32_t>(key));
        }
      }
      std::sort(keys.begin(), keys.end());
      edge_keys.insert(edge_keys.end(), keys.begin(), keys.end());
      edge_offsets.push_back(static_cast<int32_t>(edge_keys.size()));
    }
    args.edge_offsets = edge_offsets.data();
    args.edge_keys = edge_keys.data();
  }
};

using Option = void (*)(Call&);

// What the thread has used of a core: others on the machine do not count.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double SecondsOf(const std::function<void()>& work, int repeats) {
  const double begin = ThreadSeconds();
  for (int i = 0; i < repeats; ++i) work();
  return ThreadSeconds() - begin;
}

double Median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

// Times `work` in turns with `yardstick`; the median of work / yardstick.
double TimeInTurns(benchmark::State& state, const std::function<void()>& work,
                   const std::function<void()>& yardstick) {
  const auto repeats_of = [](const std::function<void()>& f) {
    SecondsOf(f, 1);
    return std::max(1, static_cast<int>(2e-4 / SecondsOf(f, 1)));
  };
  const int repeats = repeats_of(work), base_repeats = repeats_of(yardstick);
  std::vector<double> ratios;
  for (auto _ : state) {
    const double base = SecondsOf(yardstick, base_repeats) / base_repeats;
    const double seconds = SecondsOf(work, repeats) / repeats;
    state.SetIterationTime(seconds);
    ratios.push_back(seconds / base);
  }
  return Median(std::move(ratios));
}

void BM_Price(benchmark::State& state, Option option, const Shape& shape) {
  if (!bench::BindIsa(state)) return;
  Call plain(shape), call(shape);
  option(call);
  plain.args.spec = &plain.spec;
  call.args.spec = &call.spec;
  const AttentionFn attention = BindAttention();
  state.counters["price"] = TimeInTurns(
      state, [&] { attention(call.args); }, [&] { attention(plain.args); });
}

void BM_AdditiveRate(benchmark::State& state, const Shape& shape) {
  if (!bench::BindIsa(state)) return;
  Call call(shape);
  call.spec.additive = call.additive.data();
  call.args.spec = &call.spec;
  constexpr int64_t kArray = 4096;  // 16 KiB
  Floats array(kArray);
  const AttentionFn attention = BindAttention();
  const ActivationFn tanh = BindTanh();
  const double values =
      static_cast<double>(shape.length * shape.length * shape.heads * shape.width);
  const double ratio = TimeInTurns(
      state, [&] { attention(call.args); },
      [&] {
        tanh({.x = array.data(),
              .out = array.data(),
              .rows = 1,
              .width = kArray,
              .ldx = kArray,
              .ld_out = kArray});
      });
  state.counters["values"] =
      benchmark::Counter(values, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_tanh"] = values / static_cast<double>(kArray) / ratio;
}

const struct {
  const char* name;
  Option option;
} kOptions[] = {
    {"softmax", [](Call&) {}},
    {"softmax1", [](Call& c) { c.spec.normalizer = Normalizer::kSoftmax1; }},
    {"relu", [](Call& c) { c.spec.normalizer = Normalizer::kRelu; }},
    {"relu2", [](Call& c) { c.spec.normalizer = Normalizer::kRelu2; }},
    {"sigmoid", [](Call& c) { c.spec.normalizer = Normalizer::kSigmoid; }},
    {"none", [](Call& c) { c.spec.normalizer = Normalizer::kNone; }},
    {"relu_by_length",
     [](Call& c) { c.spec.normalizer = Normalizer::kRelu, c.spec.divide_by_seen = true; }},
    {"alibi", [](Call& c) { c.spec.alibi_slopes = c.slopes.data(); }},
    {"t5_bias",
     [](Call& c) { c.spec.distance_bias = c.distances.data(), c.spec.max_distance = 128; }},
    {"dense_bias",
     [](Call& c) {
       c.args.dense_bias = c.dense.data();
       c.args.ld_bias = c.shape.length;
       c.args.bias_head = c.shape.length * c.shape.length;
     }},
    {"causal", [](Call& c) { c.spec.causal = true; }},
    {"causal_alibi", [](Call& c) { c.spec.causal = true, c.spec.alibi_slopes = c.slopes.data(); }},
    {"window_128", [](Call& c) { c.spec.window_left = 64, c.spec.window_right = 63; }},
    {"window_128_global_1",
     [](Call& c) { c.spec.window_left = 64, c.spec.window_right = 63, c.spec.global_tokens = 1; }},
    {"edges_8_near", [](Call& c) { c.SetEdges(8, 16); }},
    {"edges_8_anywhere", [](Call& c) { c.SetEdges(8, c.shape.length); }},
    {"edges_64_anywhere", [](Call& c) { c.SetEdges(64, c.shape.length); }},
    {"additive", [](Call& c) { c.spec.additive = c.additive.data(); }},
};

const int kRegistered = [] {
  for (const Shape& shape : kShapes) {
    const std::string suffix = "/L:" + std::to_string(shape.length) +
                               "/H:" + std::to_string(shape.heads) +
                               "/E:" + std::to_string(shape.width);
    for (const auto& o : kOptions) {
      benchmark::RegisterBenchmark((o.name + suffix).c_str(), BM_Price, o.option, shape)
          ->UseManualTime()
          ->Iterations(shape.rounds);
    }
    benchmark::RegisterBenchmark(("additive_rate" + suffix).c_str(), BM_AdditiveRate, shape)
        ->UseManualTime()
        ->Iterations(shape.rounds);
  }
  return 0;
}();

}  // namespace
}  // namespace attend
