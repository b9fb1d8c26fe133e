#include "engine/cache.h"

#include <algorithm>
#include <utility>

#include "kernels/aligned.h"

namespace attend {

void RowCache::Create(int64_t max_rows, int64_t max_length, int64_t max_sources) {
  const auto rows = static_cast<size_t>(max_rows);
  row_blocks_ = RoundUp(max_length, kKeyBlock) / kKeyBlock;
  rows_.resize(rows);
  before_.resize(rows);
  children_.resize(rows);
  copies_.reserve(rows);
  const size_t blocks = rows * static_cast<size_t>(row_blocks_);
  for (std::vector<int32_t>& table : tables_) table.resize(blocks);
  uses_.resize(blocks);
  source_uses_.resize(static_cast<size_t>(max_sources));
  // The lowest are taken first.
  for (size_t i = blocks; i > 0; --i) free_blocks_.push_back(static_cast<int32_t>(i) - 1);
  for (int64_t i = max_sources; i > 0; --i) free_sources_.push_back(static_cast<int32_t>(i) - 1);
}

size_t RowCache::bytes() const {
  return (rows_.size() + before_.size()) * sizeof(Row) + copies_.capacity() * sizeof(BlockCopy) +
         (tables_[0].size() + tables_[1].size() + children_.size() + uses_.size() +
          free_blocks_.capacity() + source_uses_.size() + free_sources_.capacity()) *
             sizeof(int32_t);
}

int32_t RowCache::TakeBlock() {
  const int32_t block = free_blocks_.back();
  free_blocks_.pop_back();
  uses_[block] = 1;
  return block;
}

void RowCache::DropBlock(int32_t block) {
  if (--uses_[block] == 0) free_blocks_.push_back(block);
}

int32_t RowCache::TakeSource() {
  const int32_t source = free_sources_.back();
  free_sources_.pop_back();
  source_uses_[source] = 0;
  return source;
}

void RowCache::DropSource(int32_t source) {
  if (source >= 0 && --source_uses_[source] == 0) free_sources_.push_back(source);
}

void RowCache::Start(int64_t row, int64_t tokens, int32_t source) {
  int32_t* table = tables_[current_].data() + row * row_blocks_;
  for (int64_t at = 0; at < tokens; at += kKeyBlock) *table++ = TakeBlock();
  rows_[row] = {.length = tokens, .source = source};
  if (source >= 0) ++source_uses_[source];
}

void RowCache::Release(int64_t row) {
  const int64_t length = std::exchange(rows_[row].length, 0);
  const int32_t* table = Table(current_, row);
  for (int64_t at = 0; at < length; at += kKeyBlock) DropBlock(*table++);
  DropSource(rows_[row].source);
}

void RowCache::Inherit(int64_t row, int64_t parent, bool first) {
  const Row& from = before_[parent];
  const int32_t* old = Table(1 - current_, parent);
  int32_t* table = tables_[current_].data() + row * row_blocks_;
  const int64_t full = from.length / kKeyBlock;
  std::copy(old, old + full, table);
  rows_[row] = {.length = from.length + 1, .source = from.source};
  const bool partial = from.length % kKeyBlock != 0;
  if (first) {
    // What the parent had passes on.
    table[full] = partial ? old[full] : TakeBlock();
    return;
  }
  for (int64_t b = 0; b < full; ++b) ++uses_[table[b]];
  if (from.source >= 0) ++source_uses_[from.source];
  table[full] = TakeBlock();
  if (partial) copies_.push_back({.from = old[full], .to = table[full]});
}

std::span<const BlockCopy> RowCache::Continue(std::span<const int32_t> rows,
                                              std::span<const int32_t> parents) {
  copies_.clear();
  std::fill(children_.begin(), children_.end(), 0);
  for (const int32_t parent : parents) ++children_[parent];
  // Those that end make room first, so that what there is suffices for those that go on.
  for (int64_t row = 0; row < max_rows(); ++row) {
    if (alive(row) && children_[row] == 0) Release(row);
  }
  rows_.swap(before_);
  std::fill(rows_.begin(), rows_.end(), Row{});
  current_ = 1 - current_;
  for (size_t i = 0; i < rows.size(); ++i) {
    int32_t& left = children_[parents[i]];
    // A count becomes negative when the first child has been served.
    const bool first = left > 0;
    if (first) left = -1;
    Inherit(rows[i], parents[i], first);
  }
  return copies_;
}

}  // namespace attend
