// How a batch is cut for threads: every row and sequence exactly once, cuts only where they may
// fall; and the rule that picks a share.
#include "engine/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "engine/session.h"
#include "kernels/attention.h"
#include "tests/random_model.h"

namespace attend {
namespace {

std::vector<int32_t> Offsets(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> offsets{0};
  for (const int32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

// Few or many sequences, of one token or hundreds, mixed.
std::vector<int32_t> RandomOffsets(std::mt19937& random) {
  std::vector<int32_t> lengths(1 + random() % (random() % 4 == 0 ? 64 : 6));
  for (int32_t& length : lengths) {
    length = 1 + static_cast<int32_t>(random() % (random() % 3 == 0 ? 512 : 20));
  }
  return Offsets(lengths);
}

bool OnBorder(const std::vector<int32_t>& offsets, int64_t row) {
  return std::find(offsets.begin(), offsets.end(), row) != offsets.end();
}

// Whether `row` is a multiple of kKeyBlock from the start of its sequence, or a border.
bool OnKeyBlock(const std::vector<int32_t>& offsets, int64_t row) {
  if (row == offsets.back()) return true;
  const auto after = std::upper_bound(offsets.begin(), offsets.end(), row);
  return (row - *(after - 1)) % kKeyBlock == 0;
}

std::string Describe(const std::vector<int32_t>& offsets, Share share, int parts) {
  std::string text = "share " + std::to_string(static_cast<int>(share)) + ", " +
                     std::to_string(parts) + " parts, offsets";
  for (const int32_t offset : offsets) text += " " + std::to_string(offset);
  return text;
}

std::vector<ThreadShare> Cut(Share share, const std::vector<int32_t>& offsets, int parts) {
  std::vector<ThreadShare> shares(static_cast<size_t>(parts), ThreadShare{-1, -1, -1, -1});
  CutShares(share, offsets, parts, shares);
  return shares;
}

TEST(CutShares, EveryRowAndSequenceOnceInOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<int32_t> offsets = RandomOffsets(random);
    const int parts = 1 + static_cast<int>(random() % 8);
    for (const Share share : {Share::kSequences, Share::kRows, Share::kColumns}) {
      SCOPED_TRACE(Describe(offsets, share, parts));
      int64_t row = 0, sequence = 0;
      for (const ThreadShare& mine : Cut(share, offsets, parts)) {
        if (share == Share::kColumns) {
          ASSERT_EQ(mine.row_begin, 0);
          ASSERT_EQ(mine.row_end, offsets.back());
        } else {
          ASSERT_EQ(mine.row_begin, row);
          ASSERT_GE(mine.row_end, row);
          row = mine.row_end;
        }
        ASSERT_EQ(mine.sequence_begin, sequence);
        ASSERT_GE(mine.sequence_end, sequence);
        sequence = mine.sequence_end;
      }
      if (share != Share::kColumns) {
        ASSERT_EQ(row, offsets.back());
      }
      ASSERT_EQ(sequence, static_cast<int64_t>(offsets.size()) - 1);
    }
  }
}

TEST(CutShares, RowsAreCutAtBlocksOfKeysCountedFromTheSequence) {
  std::mt19937 random(2);
  int64_t inside = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::vector<int32_t> offsets = RandomOffsets(random);
    const int parts = 2 + static_cast<int>(random() % 7);
    for (const ThreadShare& mine : Cut(Share::kRows, offsets, parts)) {
      ASSERT_TRUE(OnKeyBlock(offsets, mine.row_end))
          << mine.row_end << ", " << Describe(offsets, Share::kRows, parts);
      inside += OnBorder(offsets, mine.row_end) ? 0 : 1;
    }
  }
  EXPECT_GT(inside, 1000) << "hardly a cut fell inside a sequence: nothing was tested";
}

TEST(CutShares, SequencesAreCutAtTheirBordersAndStayWhole) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<int32_t> offsets = RandomOffsets(random);
    const int parts = 2 + static_cast<int>(random() % 7);
    for (const ThreadShare& mine : Cut(Share::kSequences, offsets, parts)) {
      SCOPED_TRACE(Describe(offsets, Share::kSequences, parts));
      ASSERT_TRUE(OnBorder(offsets, mine.row_begin) && OnBorder(offsets, mine.row_end));
      ASSERT_EQ(offsets[mine.sequence_begin], mine.row_begin);
      ASSERT_EQ(offsets[mine.sequence_end], mine.row_end);
    }
  }
}

TEST(CutShares, EqualSequencesAreDealtEvenly) {
  const std::vector<int32_t> offsets = Offsets(std::vector<int32_t>(64, 24));
  for (const int parts : {1, 2, 4, 8}) {
    for (const ThreadShare& mine : Cut(Share::kSequences, offsets, parts)) {
      EXPECT_EQ(mine.sequence_end - mine.sequence_begin, 64 / parts);
    }
  }
}

TEST(CutShares, OneLongSequenceIsHalvedByRows) {
  const std::vector<ThreadShare> shares = Cut(Share::kRows, Offsets({512}), 2);
  EXPECT_EQ(shares[0].row_end, 256);
  EXPECT_EQ(shares[0].sequence_end, 1);  // whoever has its first row
  EXPECT_EQ(shares[1].sequence_begin, 1);
}

std::vector<int64_t> Units(const std::vector<int32_t>& offsets, int parts) {
  std::vector<int64_t> ends(MostUnits(offsets.back(), kTileRows));
  ends.resize(CutUnits(offsets, parts, kTileRows, ends));
  return ends;
}

bool DealtInUnits(const std::vector<int32_t>& offsets, int parts) {
  return !Units(offsets, parts).empty();
}

TEST(CutUnits, EveryRowOnceInTilesThatEndWhereTheyMay) {
  std::mt19937 random(5);
  int dealt = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::vector<int32_t> offsets = RandomOffsets(random);
    const int parts = 2 + static_cast<int>(random() % 7);
    SCOPED_TRACE(Describe(offsets, Share::kRows, parts));
    const std::vector<int64_t> ends = Units(offsets, parts);
    ASSERT_EQ(ends.empty(), offsets.back() < 2 * parts * kTileRows);
    if (ends.empty()) continue;
    ++dealt;
    ASSERT_GE(ends.size(), 2 * static_cast<size_t>(parts));
    int64_t begin = 0;
    for (const int64_t end : ends) {
      ASSERT_GT(end, begin);
      ASSERT_LE(end - begin, kTileRows);
      ASSERT_TRUE(OnKeyBlock(offsets, end));
      begin = end;
    }
    ASSERT_EQ(begin, offsets.back());
  }
  EXPECT_GT(dealt, 200);
  EXPECT_TRUE(Units(Offsets({4096}), 1).empty());  // nobody to deal with
}

constexpr Share kShares[] = {Share::kSequences, Share::kRows, Share::kColumns};

TEST(ChooseShare, TheLeastPredictedTimeAndFewBarriersAtATie) {
  std::mt19937 random(4);
  int chosen[4] = {}, in_units = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::vector<int32_t> offsets = RandomOffsets(random);
    const int parts = 2 + static_cast<int>(random() % 7);
    // From tiny models to large ones.
    const double size = static_cast<double>(1 + random() % 1000);
    const PlanCosts costs = {.flops_per_row = 4e4 * size,
                             .flops_per_pair = 1e2 * static_cast<double>(1 + random() % 100),
                             .weight_bytes = 8e4 * size,
                             .row_values = static_cast<double>(random() % 30),
                             .attentions = 1 + static_cast<int64_t>(random() % 12),
                             .column_barriers = 4 + static_cast<int64_t>(random() % 48)};
    const MachineRates rates = RatesOf(random() % 2 == 0 ? Isa::kAvx2 : Isa::kAvx512);
    const Share share = ChooseShare(costs, rates, offsets, parts);
    SCOPED_TRACE(Describe(offsets, share, parts));
    ASSERT_NE(share, Share::kAuto);
    const double time = PredictSeconds(share, costs, rates, offsets, parts);
    ASSERT_GT(time, 0);
    for (const Share other : kShares) {
      // Nothing is faster by more than a tie, and what needs fewer barriers is slower.
      const double other_time = PredictSeconds(other, costs, rates, offsets, parts);
      const double tie = share == Share::kRows ? (1 - kShareTie) / (1 + kShareTie) : 1 - kShareTie;
      ASSERT_LE(tie * time, other_time * (1 + 1e-9));
      if (other < share && !(share == Share::kRows && DealtInUnits(offsets, parts))) {
        ASSERT_LT(time, other_time);
      }
    }
    const double by_sequences = PredictSeconds(Share::kSequences, costs, rates, offsets, parts);
    if (share == Share::kRows && DealtInUnits(offsets, parts)) {
      ASSERT_LE(time, (1 + kShareTie) * by_sequences);
      ++in_units;
    } else if (share != Share::kSequences) {
      ASSERT_LT(time, (1 - kShareTie) * by_sequences);
    } else if (DealtInUnits(offsets, parts)) {
      ASSERT_GT(PredictSeconds(Share::kRows, costs, rates, offsets, parts), (1 + kShareTie) * time);
    }
    ++chosen[static_cast<int>(share)];
    ASSERT_EQ(ChooseShare(costs, rates, offsets, 1), Share::kSequences);
  }
  for (const Share share : kShares) EXPECT_GT(chosen[static_cast<int>(share)], 5);
  EXPECT_GT(in_units, 20);
}

// The costs of a model with the shape of MiniLM: 6 layers of width 384.
PlanCosts MiniLmCosts() {
  Result<Model> model = testing::RandomModel(testing::EncoderConfig(384, 6, 12, 1536), 1);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = Session::Create(*model, {.max_tokens = 512});
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  return session->data().runner.plan().costs;
}

TEST(ChooseShare, MiniLmOnTwoThreads) {
  const PlanCosts costs = MiniLmCosts();
  // 2 FLOP a weight; 4 D^2 + 2 D F weights a layer. One wait before every attention by rows, four
  // a layer by columns.
  const double weights = 6.0 * (4.0 * 384 * 384 + 2.0 * 384 * 1536);
  EXPECT_EQ(costs.flops_per_row, 2 * weights);
  EXPECT_GE(costs.weight_bytes, 4 * weights);
  EXPECT_LE(costs.weight_bytes, 4 * weights * 1.01);
  EXPECT_EQ(costs.attentions, 6);
  EXPECT_GE(costs.column_barriers, 6 * 4 - 1);
  EXPECT_LE(costs.column_barriers, 6 * 4 + 2);
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    SCOPED_TRACE(IsaName(isa));
    const MachineRates rates = RatesOf(isa);
    EXPECT_EQ(ChooseShare(costs, rates, Offsets({8}), 2), Share::kColumns);
    EXPECT_EQ(ChooseShare(costs, rates, Offsets(std::vector<int32_t>(8, 24)), 2),
              Share::kSequences);
    EXPECT_EQ(ChooseShare(costs, rates, Offsets(std::vector<int32_t>(64, 24)), 2), Share::kRows);
    EXPECT_NE(ChooseShare(costs, rates, Offsets({512}), 2), Share::kSequences);
  }
}

// A step of decoding: one token a row, over keys that earlier steps left, and logits.
TEST(ChooseShare, AStepOfADecoder) {
  // 6 layers of width 512, a vocabulary of 8,000.
  PlanCosts costs = {.flops_per_row = 3.8e7,
                     .flops_per_pair = 6.0 * 4 * 512,
                     .weight_bytes = 7.6e7,
                     .row_values = 30,
                     .sequence_flops = 8.2e6,
                     .sequence_weight_bytes = 1.64e7,
                     .attentions = 6,
                     .column_barriers = 30};
  const MachineRates rates = RatesOf(Isa::kAvx2);
  const std::vector<int32_t> one = Offsets({1}), many = Offsets(std::vector<int32_t>(16, 1));
  // Two threads read half of the weights each, those of the logits too.
  EXPECT_EQ(ChooseShare(costs, rates, one, 2), Share::kColumns);
  const double alone = PredictSeconds(Share::kSequences, costs, rates, one, 1);
  EXPECT_LT(PredictSeconds(Share::kColumns, costs, rates, one, 2), 0.6 * alone);
  // Every key that a query sees counts once.
  const std::vector<int64_t> near(16, 100), far(16, 1100);
  const double more = PredictSeconds(Share::kSequences, costs, rates, many, 1, far) -
                      PredictSeconds(Share::kSequences, costs, rates, many, 1, near);
  EXPECT_NEAR(more, 16 * 1000 * costs.flops_per_pair / rates.attention_flops, 1e-9);
  // The logits are part of the time.
  costs.sequence_flops = costs.sequence_weight_bytes = 0;
  EXPECT_LT(PredictSeconds(Share::kSequences, costs, rates, one, 1), 0.9 * alone);
}

}  // namespace
}  // namespace attend
