// Whose keys and values are where: rows that grow token by token over blocks of a cache, several of
// which may begin alike and share what is full, and the sources that they read. Bookkeeping only;
// it knows no floats.
#ifndef ATTEND_ENGINE_CACHE_H_
#define ATTEND_ENGINE_CACHE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention.h"

namespace attend {

// A block of the cache that becomes the beginning of another, in every layer.
struct BlockCopy {
  int32_t from = 0, to = 0;
};

// A row of `max_length` tokens has ceil(max_length / kKeyBlock) blocks, and there are as many as
// all rows together may need. Only a row that has a block to itself writes to it: a row that
// continues another shares its full blocks, and copies the one that is not.
class RowCache {
 public:
  // Takes all memory. Sources are counted, not stored: 0 if rows have none.
  void Create(int64_t max_rows, int64_t max_length, int64_t max_sources);
  size_t bytes() const;

  int64_t max_rows() const { return static_cast<int64_t>(rows_.size()); }
  int64_t num_blocks() const { return static_cast<int64_t>(uses_.size()); }
  bool alive(int64_t row) const { return rows_[row].length > 0; }
  int64_t length(int64_t row) const { return rows_[row].length; }
  int32_t source(int64_t row) const { return rows_[row].source; }
  // [ceil(length / kKeyBlock)], where the blocks of the row are.
  const int32_t* blocks(int64_t row) const { return Table(current_, row); }
  int64_t free_sources() const { return static_cast<int64_t>(free_sources_.size()); }
  int64_t free_blocks() const { return static_cast<int64_t>(free_blocks_.size()); }

  // A source for the next row that starts; there must be a free one.
  int32_t TakeSource();
  // Row `row`, not alive, begins with `tokens` tokens (their keys are yet to be written) and reads
  // `source` (-1: none).
  void Start(int64_t row, int64_t tokens, int32_t source);
  // Row rows[i] becomes row parents[i] and a token more; all others end. `rows` are different and
  // `parents` alive, no longer than max_length - 1. Returns what must be copied, all before the
  // next token is written.
  std::span<const BlockCopy> Continue(std::span<const int32_t> rows,
                                      std::span<const int32_t> parents);
  void Release(int64_t row);

 private:
  struct Row {
    int64_t length = 0;  // 0: not alive
    int32_t source = -1;
  };

  const int32_t* Table(int which, int64_t row) const {
    return tables_[which].data() + row * row_blocks_;
  }
  int32_t TakeBlock();
  void DropBlock(int32_t block);
  void DropSource(int32_t source);
  // Gives `row` of the next generation what `parent` of this one has.
  void Inherit(int64_t row, int64_t parent, bool first);

  int64_t row_blocks_ = 0;
  int current_ = 0;                 // of the two generations below, the one that is
  std::vector<Row> rows_, before_;  // [rows]
  std::vector<int32_t> tables_[2];  // [rows, row_blocks]
  std::vector<int32_t> children_;   // [rows]: of the step in work
  std::vector<int32_t> uses_;       // [blocks]: rows that have it
  std::vector<int32_t> free_blocks_;
  std::vector<int32_t> source_uses_;
  std::vector<int32_t> free_sources_;
  std::vector<BlockCopy> copies_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_CACHE_H_
