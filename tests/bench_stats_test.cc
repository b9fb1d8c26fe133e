// The arithmetic of attend bench, against numbers that were worked out elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/harness/limit.h"
#include "bench/harness/machine.h"
#include "bench/harness/plot.h"
#include "bench/harness/print.h"
#include "bench/harness/stats.h"
#include "tests/random_model.h"

namespace attend::bench {
namespace {

TEST(BenchStats, PercentilesByNearestRank) {
  const std::vector<double> values = {40, 15, 50, 20, 35};
  EXPECT_EQ(Percentile(values, 0.05), 15);
  EXPECT_EQ(Percentile(values, 0.30), 20);
  EXPECT_EQ(Percentile(values, 0.40), 20);
  EXPECT_EQ(Percentile(values, 0.50), 35);
  EXPECT_EQ(Percentile(values, 1.00), 50);
  EXPECT_EQ(Percentile(values, 0.00), 15);
  std::vector<double> many;
  for (int i = 1000; i >= 1; --i) many.push_back(i);
  EXPECT_EQ(Percentile(many, 0.99), 990);
  EXPECT_EQ(Percentile(many, 0.999), 999);
  EXPECT_EQ(Percentile(many, 0.9), 900);
  EXPECT_EQ(Percentile(std::vector<double>{7}, 0.99), 7);
}

TEST(BenchStats, Medians) {
  EXPECT_EQ(Median(std::vector<double>{3}), 3);
  EXPECT_EQ(Median(std::vector<double>{9, 1, 5}), 5);
  EXPECT_EQ(Median(std::vector<double>{4, 1, 3, 2}), 2.5);
}

TEST(BenchStats, RandomNumbersAreThoseOfSplitMix64) {
  Random random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
  EXPECT_EQ(random.Next(), 9817491932198370423u);
  for (int i = 0; i < 1000; ++i) {
    const double unit = random.NextUnit();
    EXPECT_GE(unit, 0);
    EXPECT_LT(unit, 1);
  }
}

TEST(BenchStats, BootstrapIntervalOfTheMedian) {
  const std::vector<double> same(30, 1.25);
  EXPECT_EQ(BootstrapMedian(same, 500, 1).low, 1.25);
  EXPECT_EQ(BootstrapMedian(same, 500, 1).high, 1.25);
  // Of 1 .. 101 the ranks of the exact interval are 51 -+ 1.96 sqrt(101) / 2: 41 and 61.
  std::vector<double> values;
  for (int i = 1; i <= 101; ++i) values.push_back(i);
  const Interval interval = BootstrapMedian(values, 4000, 1);
  EXPECT_NEAR(interval.low, 41, 2);
  EXPECT_NEAR(interval.high, 61, 2);
  const Interval again = BootstrapMedian(values, 4000, 1);
  EXPECT_EQ(interval.low, again.low);
  EXPECT_EQ(interval.high, again.high);
}

TEST(BenchStats, ArrivalsAreAPoissonProcess) {
  const int64_t count = 20000;
  const std::vector<double> arrivals = PoissonArrivals(count, 50, 7);
  ASSERT_EQ(static_cast<int64_t>(arrivals.size()), count);
  EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
  // Gaps are exponential: mean and deviation 1 / 50, and a part 1 / e is longer than the mean.
  EXPECT_NEAR(arrivals.back() / count * 50, 1, 0.03);
  int longer = 0;
  double squares = 0;
  for (size_t i = 1; i < arrivals.size(); ++i) {
    const double gap = (arrivals[i] - arrivals[i - 1]) * 50;
    longer += gap > 1 ? 1 : 0;
    squares += (gap - 1) * (gap - 1);
  }
  EXPECT_NEAR(longer / static_cast<double>(count), 0.3679, 0.015);
  EXPECT_NEAR(squares / count, 1, 0.06);
  EXPECT_EQ(arrivals, PoissonArrivals(count, 50, 7));
  EXPECT_NE(arrivals, PoissonArrivals(count, 50, 8));
}

TEST(BenchPrint, NumbersForPeople) {
  EXPECT_EQ(Milliseconds(0.0012345), "1.234 ms");
  EXPECT_EQ(Seconds(0.0000123), "12.30 µs");
  EXPECT_EQ(PerSecond(92.14e9, "FLOP"), "92.14 GFLOP/s");
  EXPECT_EQ(Percent(0.871), "87 %");
  EXPECT_EQ(Percent(0.0123), "1.2 %");
  TextTable table({"a", "bbb"});
  table.Add({"µµµ", "1"});
  EXPECT_EQ(table.Text(), "a    bbb\nµµµ    1\n");
}

TEST(BenchPlot, NamesOfOthersAreEscaped) {
  EXPECT_EQ(Escaped("a<b>&\"\x1b"), "a&lt;b&gt;&amp;&quot; ");
  const std::string bars = DrawBars("<t>", {{.name = "<script>", .value = 1, .text = "&"}});
  EXPECT_EQ(bars.find("<script>"), std::string::npos);
  EXPECT_NE(bars.find("&lt;script&gt;"), std::string::npos);
}

// The pairs that count as work are those that the masks leave.
TEST(BenchLimit, PairsSeen) {
  const auto pairs = [](const ModelConfig& config, std::vector<int32_t> offsets) {
    Result<Model> model = testing::RandomModel(config, 1);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    Batch batch;
    batch.offsets = std::move(offsets);
    return PairsSeen(*model, batch);
  };
  ModelConfig config = testing::EncoderConfig(16, 1, 1, 32);
  EXPECT_EQ(pairs(config, {0, 3, 10}), 9 + 49);
  config.causal = true;
  EXPECT_EQ(pairs(config, {0, 3, 10}), 6 + 28);
  config.causal = false;
  config.windowed = true;
  config.window_left = config.window_right = 1;
  EXPECT_EQ(pairs(config, {0, 5}), 2 + 3 + 3 + 3 + 2);
  config.global_tokens = 1;
  EXPECT_EQ(pairs(config, {0, 5}), 5 + 3 + 4 + 4 + 3);
}

TEST(BenchMachine, SaysSomething) {
  EXPECT_NE(CpuName(), "");
  EXPECT_GT(ResidentBytes(), 1 << 20);
  const std::vector<Cache> caches = {{"L1d", "32K", 32 << 10}, {"L2", "1M", 1 << 20}};
  EXPECT_EQ(CacheBytes(caches, 1, 5), 32 << 10);
  EXPECT_EQ(CacheBytes(caches, 2, 5), 1 << 20);
  EXPECT_EQ(CacheBytes(caches, 3, 5), 5);
}

}  // namespace
}  // namespace attend::bench
