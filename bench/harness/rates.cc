#include "bench/harness/rates.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "bench/harness/machine.h"
#include "bench/harness/onednn_gemm.h"
#include "bench/harness/read_rate.h"
#include "bench/harness/timing.h"
#include "engine/config.h"
#include "engine/parallel.h"
#include "kernels/aligned.h"
#include "kernels/gemm.h"

namespace attend::bench {
namespace {

constexpr int64_t kRows = 64;  // of a tile
// Panels as plans cut them; packed they are 131 to 393 KB.
constexpr struct { int64_t n, k; } kShapes[] = {{192, 384}, {64, 512}, {64, 1536}, {128, 768}};

// One piece of work of `amount` FLOPs or bytes.
struct Work {
  std::function<void()> run;
  double amount = 0;
};

// The rate of the best window of about 2 ms within `seconds`, but of five at least: others may take
// the core away.
double BestRate(const Work& work, double seconds) {
  const double first = std::min(Timed(work.run), Timed(work.run));
  const int repeats = static_cast<int>(std::clamp(2e-3 / std::max(first, 1e-9), 1.0, 1e6));
  double best = 0;
  const double end = Now() + seconds;
  int windows = 0;
  do {
    ++windows;
    const double taken = Timed([&] {
      for (int i = 0; i < repeats; ++i) work.run();
    });
    best = std::max(best, work.amount * repeats / taken);
  } while (Now() < end || windows < 5);
  return best;
}

// The sum of the best rates of `threads` threads that work at the same time.
double RateOfAll(int threads, double seconds, const std::function<Work()>& make) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::atomic<int> ready{0};
  const auto work = [&](int i) {
    const OneOpenMpThread guard;
    const Work mine = make();
    mine.run();
    ++ready;
    while (ready.load() < threads) std::this_thread::yield();
    rates[static_cast<size_t>(i)] = BestRate(mine, seconds);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

// Values between -1 and 1: what they are does not matter, but that none is a denormal.
AlignedFloats SomeFloats(int64_t count) {
  AlignedFloats floats(static_cast<size_t>(count));
  for (size_t i = 0; i < floats.size(); ++i) {
    floats.data()[i] = static_cast<float>(i * 37 % 101) / 50.5f - 1;
  }
  return floats;
}

struct Matrices {
  AlignedFloats a, c, prepared;
  Matrices(int64_t n, int64_t k, int64_t prepared_floats = 0)
      : a(SomeFloats(kRows * k)),
        c(static_cast<size_t>(kRows * n)),
        prepared(static_cast<size_t>(kRows * prepared_floats)) {}
};

// A LinearKernel with its weights, which threads share.
struct SharedGemm {
  std::shared_ptr<const LinearKernel> kernel;
  std::shared_ptr<const PackedLinear> weights;
};

Result<SharedGemm> MakeGemm(GemmType type, int64_t n, int64_t k) {
  Result<std::shared_ptr<const LinearKernel>> kernel =
      LinearKernel::Create(n, k, CutPanels(n, k, n), type);
  if (!kernel.ok()) return kernel.status();
  const auto fill = [k](int64_t, int64_t columns, float* out) {
    const AlignedFloats some = SomeFloats(columns * k);
    std::copy_n(some.data(), columns * k, out);
  };
  Result<std::shared_ptr<const PackedLinear>> weights = PackedLinear::Pack(**kernel, fill, {});
  if (!weights.ok()) return weights.status();
  return SharedGemm{*kernel, *weights};
}

double GemmFlops(int64_t n, int64_t k) { return 2.0 * static_cast<double>(kRows * n * k); }

// What plans run. Rows are rounded or quantised before: that is no arithmetic of the GEMM.
Result<GemmRate> MeasureEngineGemm(GemmType type, int threads, double seconds, int64_t n,
                                   int64_t k) {
  const OneOpenMpThread guard;
  const Result<SharedGemm> gemm = MakeGemm(type, n, k);
  if (!gemm.ok()) return gemm.status();
  const Result<std::unique_ptr<LinearRunner>> probe = LinearRunner::Create(gemm->kernel);
  if (!probe.ok()) return probe.status();
  const auto make = [&gemm, n, k] {
    Result<std::unique_ptr<LinearRunner>> made = LinearRunner::Create(gemm->kernel);
    const auto matrices = std::make_shared<Matrices>(n, k, gemm->kernel->prepared_floats());
    if (!made.ok()) return Work{[] {}, 0};  // memory has just run out
    const std::shared_ptr<LinearRunner> runner = *std::move(made);
    const float* const rows =
        gemm->kernel->Prepare(kRows, matrices->a.data(), matrices->prepared.data());
    return Work{[runner, matrices, rows, &gemm] {
                  runner->RunPanel(*gemm->weights, 0, kRows, rows, matrices->c.data());
                },
                GemmFlops(n, k)};
  };
  GemmRate rate{.implementation = gemm->kernel->implementation(), .n = n, .k = k};
  rate.one_core = RateOfAll(1, seconds, make);
  rate.all = threads == 1 ? rate.one_core : RateOfAll(threads, seconds, make);
  return rate;
}

// oneDNN's, of which the rate of nothing is 0.
GemmRate MeasureOneDnn(Precision precision, int threads, double seconds, int64_t n, int64_t k) {
  const OneOpenMpThread guard;
  const std::unique_ptr<OneDnnGemm> probe = OneDnnGemm::Create(precision, kRows, n, k);
  if (probe == nullptr) return {};
  const auto make = [=] {
    const std::shared_ptr<OneDnnGemm> gemm = OneDnnGemm::Create(precision, kRows, n, k);
    return Work{[gemm] { gemm->Run(); }, GemmFlops(n, k)};
  };
  GemmRate rate{.implementation = probe->name(), .n = n, .k = k};
  rate.one_core = RateOfAll(1, seconds, make);
  rate.all = threads == 1 ? rate.one_core : RateOfAll(threads, seconds, make);
  return rate;
}

// The best of all shapes and of both implementations.
Result<GemmRate> MeasureGemm(GemmType type, Precision precision, int threads, double seconds) {
  GemmRate best;
  for (const auto& [n, k] : kShapes) {
    const Result<GemmRate> engine = MeasureEngineGemm(type, threads, seconds, n, k);
    if (!engine.ok()) return engine.status();
    if (engine->all > best.all) best = *engine;
    const GemmRate library = MeasureOneDnn(precision, threads, seconds, n, k);
    if (library.all > best.all) best = library;
  }
  return best;
}

ReadRate MeasureRead(int threads, double seconds, ReadRate rate) {
  const int64_t count = std::max<int64_t>(rate.bytes / 4 / 128, 1) * 128;
  const SumFloatsFn sum = BindSumFloats();
  const auto make = [sum, count] {
    const auto values = std::make_shared<AlignedFloats>(SomeFloats(count));
    return Work{[sum, values] {
                  static std::atomic<float> sink;  // so that nobody leaves the sum out
                  sink = sum(values->data(), static_cast<int64_t>(values->size()));
                },
                static_cast<double>(values->size()) * 4};
  };
  rate.one_core = RateOfAll(1, seconds, make);
  rate.all = threads == 1 ? rate.one_core : RateOfAll(threads, seconds, make);
  return rate;
}

}  // namespace

const GemmRate* Rates::Gemm(Precision precision) const {
  for (const GemmRate& rate : gemm) {
    if (rate.precision == precision) return &rate;
  }
  return nullptr;
}

const ReadRate& Rates::HomeOf(double bytes) const {
  for (const ReadRate& rate : read) {
    if (bytes <= static_cast<double>(rate.holds)) return rate;
  }
  return read.back();
}

Json Rates::ToJson() const {
  Json gemms = Json::array(), reads = Json::array();
  for (const GemmRate& rate : gemm) {
    gemms.push_back({{"precision", Name(rate.precision)},
                     {"implementation", rate.implementation},
                     {"rows", kRows},
                     {"n", rate.n},
                     {"k", rate.k},
                     {"one_core_flops", rate.one_core},
                     {"flops", rate.all}});
  }
  for (const ReadRate& rate : read) {
    reads.push_back({{"level", rate.level},
                     {"bytes_a_thread", rate.bytes},
                     {"one_core_bytes_per_s", rate.one_core},
                     {"bytes_per_s", rate.all}});
  }
  return {{"threads", threads}, {"gemm", gemms}, {"read", reads}};
}

Result<Rates> MeasureRates(int threads, double seconds) {
  Rates rates{.threads = threads};
  for (const auto& [type, precision] :
       {std::pair(GemmType::kF32, Precision::kF32), std::pair(GemmType::kBf16, Precision::kBf16),
        std::pair(GemmType::kInt8, Precision::kInt8)}) {
    Result<GemmRate> rate = MeasureGemm(type, precision, threads, seconds);
    if (!rate.ok()) return rate.status();
    rate->precision = precision;
    rates.gemm.push_back(*std::move(rate));
  }
  const std::vector<Cache> caches = Caches();
  const int64_t l1 = CacheBytes(caches, 1, 32 << 10), l2 = CacheBytes(caches, 2, 512 << 10);
  const int64_t l3 = CacheBytes(caches, 3, 0);
  // Half of a cache is read, so that what else is in it does no harm. Weights are counted as living
  // in L2 if all of them fit into the L2s together, in L3 if they fill at most three quarters of
  // it.
  rates.read.push_back(
      MeasureRead(threads, seconds, {.level = "L1", .bytes = l1 / 2, .holds = l1 * threads / 2}));
  rates.read.push_back(
      MeasureRead(threads, seconds, {.level = "L2", .bytes = l2 / 2, .holds = l2 * threads}));
  if (l3 > 0) {
    const int64_t bytes = std::max(l3 / 4 / threads, 2 * l2);
    rates.read.push_back(
        MeasureRead(threads, seconds, {.level = "L3", .bytes = bytes, .holds = l3 / 4 * 3}));
  }
  const int64_t beyond = std::clamp<int64_t>(4 * l3, 64 << 20, 512 << 20) / threads;
  rates.read.push_back(
      MeasureRead(threads, seconds, {.level = "memory", .bytes = beyond, .holds = INT64_MAX}));
  return rates;
}

}  // namespace attend::bench
