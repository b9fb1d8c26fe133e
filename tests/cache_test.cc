// The bookkeeping of rows that grow, fork and end: every row finds the tokens it was given,
// whatever the others did, and no block is lost.
#include "engine/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace attend {
namespace {

// A cache of tokens instead of keys, beside a plain list of each row's tokens.
class PlainCache {
 public:
  PlainCache(int64_t rows, int64_t length, int64_t sources) {
    cache_.Create(rows, length, sources);
    blocks_.resize(static_cast<size_t>(cache_.num_blocks() * kKeyBlock));
  }

  RowCache& cache() { return cache_; }
  const std::map<int32_t, std::vector<int>>& rows() const { return rows_; }

  void Start(int32_t row, size_t tokens, int32_t source) {
    cache_.Start(row, static_cast<int64_t>(tokens), source);
    for (size_t i = 0; i < tokens; ++i) {
      rows_[row].push_back(next_);
      Write(row, static_cast<int64_t>(i), next_++);
    }
  }

  void Continue(const std::vector<int32_t>& rows, const std::vector<int32_t>& parents) {
    std::map<int32_t, std::vector<int>> after;
    for (size_t i = 0; i < rows.size(); ++i) after[rows[i]] = rows_.at(parents[i]);
    for (const BlockCopy& copy : cache_.Continue(rows, parents)) {
      std::copy_n(&blocks_[Place(copy.from)], kKeyBlock, &blocks_[Place(copy.to)]);
    }
    rows_ = std::move(after);
    for (const int32_t row : rows) {
      const auto at = static_cast<int64_t>(rows_[row].size());
      rows_[row].push_back(next_);
      Write(row, at, next_++);
    }
  }

  void Release(int32_t row) {
    cache_.Release(row);
    rows_.erase(row);
  }

  void Check() const {
    std::map<int32_t, int> users;
    for (const auto& [row, tokens] : rows_) {
      ASSERT_TRUE(cache_.alive(row));
      ASSERT_EQ(cache_.length(row), static_cast<int64_t>(tokens.size()));
      for (size_t i = 0; i < tokens.size(); ++i) {
        const int64_t block = cache_.blocks(row)[i / kKeyBlock];
        ASSERT_EQ(blocks_[Place(block) + i % kKeyBlock], tokens[i]) << row << ", token " << i;
      }
      for (size_t b = 0; b * kKeyBlock < tokens.size(); ++b) ++users[cache_.blocks(row)[b]];
    }
    for (int32_t row = 0; row < cache_.max_rows(); ++row) {
      ASSERT_EQ(cache_.alive(row), rows_.contains(row));
    }
    ASSERT_EQ(cache_.free_blocks() + static_cast<int64_t>(users.size()), cache_.num_blocks());
  }

 private:
  static size_t Place(int64_t block) { return static_cast<size_t>(block * kKeyBlock); }
  void Write(int32_t row, int64_t position, int token) {
    const int64_t block = cache_.blocks(row)[position / kKeyBlock];
    blocks_[Place(block) + static_cast<size_t>(position % kKeyBlock)] = token;
  }

  RowCache cache_;
  std::vector<int> blocks_;
  std::map<int32_t, std::vector<int>> rows_;
  int next_ = 1;
};

TEST(RowCache, RowsForkMoveAndEnd) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const auto max_rows = static_cast<int32_t>(1 + random() % 9);
    const int64_t length = 1 + random() % 70;
    PlainCache model(max_rows, length, max_rows);
    int steps = 0;
    for (int i = 0; i < 150; ++i) {
      std::vector<int32_t> alive, growing, rows(static_cast<size_t>(max_rows));
      for (const auto& [row, tokens] : model.rows()) {
        alive.push_back(row);
        if (static_cast<int64_t>(tokens.size()) < length) growing.push_back(row);
      }
      std::iota(rows.begin(), rows.end(), 0);
      std::shuffle(rows.begin(), rows.end(), random);
      if (alive.empty() || random() % 8 == 0) {
        for (const int32_t row : rows) {
          if (model.rows().contains(row) || random() % 2 == 0) continue;
          const int32_t source = random() % 3 == 0 ? -1 : model.cache().TakeSource();
          model.Start(row, 1 + random() % static_cast<size_t>(length), source);
        }
      } else if (random() % 10 == 0) {
        model.Release(alive[random() % alive.size()]);
      } else {
        // As many children as there are rows at most, of parents that are drawn at random.
        rows.resize(growing.empty() ? 0 : random() % (rows.size() + 1));
        std::vector<int32_t> parents;
        for (size_t r = 0; r < rows.size(); ++r) {
          parents.push_back(growing[random() % growing.size()]);
        }
        model.Continue(rows, parents);
        ++steps;
      }
      model.Check();
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(steps, 10);
    model.Continue({}, {});
    EXPECT_EQ(model.cache().free_blocks(), model.cache().num_blocks());
    EXPECT_EQ(model.cache().free_sources(), max_rows);
  }
}

TEST(RowCache, FullBlocksAreSharedAndTheLastIsCopied) {
  PlainCache model(4, 64, 0);
  model.Start(0, 40, -1);
  EXPECT_EQ(model.cache().num_blocks() - model.cache().free_blocks(), 3);
  model.Continue({0, 1, 2, 3}, {0, 0, 0, 0});
  // Two full blocks serve all four; the third is each one's own.
  EXPECT_EQ(model.cache().num_blocks() - model.cache().free_blocks(), 2 + 4);
  EXPECT_EQ(model.cache().blocks(0)[1], model.cache().blocks(3)[1]);
  EXPECT_NE(model.cache().blocks(0)[2], model.cache().blocks(3)[2]);
  model.Check();
}

TEST(RowCache, ASourceLivesAsLongAsItsRows) {
  PlainCache model(3, 32, 2);
  const int32_t source = model.cache().TakeSource();
  model.Start(0, 1, source);
  model.Continue({1, 2}, {0, 0});
  EXPECT_EQ(model.cache().source(1), source);
  EXPECT_EQ(model.cache().free_sources(), 1);
  model.Release(1);
  EXPECT_EQ(model.cache().free_sources(), 1);
  model.Release(2);
  EXPECT_EQ(model.cache().free_sources(), 2);
}

}  // namespace
}  // namespace attend
