// Which keys the rows of attention see, block by block: causal structure, windows, global tokens,
// edges. Plain C++; the arithmetic on what is listed here is in attention*-inl.h.
#ifndef ATTEND_KERNELS_ATTENTION_KEYS_H_
#define ATTEND_KERNELS_ATTENTION_KEYS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/attention.h"

namespace attend {

// A row's sums are taken chunk by chunk, each of at most so many blocks of keys: those whose number
// begins with the same multiple of kChunkBlocks, or with edges those listed next. What a chunk
// holds of a row thus follows from the keys that the row sees, never from the rows beside it. 512
// keys of scores of 12 rows are 24 KiB: they stay in L1.
inline constexpr size_t kChunkBlocks = 32;
// The most query rows that any target takes at a time.
inline constexpr size_t kMaxAttentionRows = 12;
// Elements of a query that are packed at a time; wider heads take several rounds.
inline constexpr size_t kColumnChunk = 256;
// Floats from one packed row to the next: no multiple of a page, so that rows do not collide in L1.
inline constexpr size_t kPackedRow = kColumnChunk + kKeyBlock;

inline constexpr uint32_t kAllLanes = 0xffff;

// Keys [0, prefix) and [begin, end); prefix <= begin <= end.
struct SeenKeys {
  int64_t prefix, begin, end;
  int64_t count() const { return prefix + end - begin; }
  bool Has(int64_t key) const { return key < prefix || (begin <= key && key < end); }
};

// What the query at `position` sees of `num_keys` keys; edges not considered.
inline SeenKeys KeysSeenAt(const AttentionSpec& spec, int64_t position, int64_t num_keys) {
  const int64_t all = spec.causal ? std::min(num_keys, position + 1) : num_keys;
  SeenKeys seen{0, 0, all};
  const bool window = spec.window_left >= 0 || spec.window_right >= 0;
  if (!window || position < spec.global_tokens) return seen;
  if (spec.window_left >= 0) {
    seen.begin = std::clamp<int64_t>(position - spec.window_left, 0, all);
  }
  if (spec.window_right >= 0) {
    seen.end = std::clamp<int64_t>(position + spec.window_right + 1, seen.begin, all);
  }
  seen.prefix = std::min(spec.global_tokens, all);
  if (seen.prefix < seen.begin) return seen;
  return {0, 0, std::max(seen.prefix, seen.end)};
}

// The packed keys and values of one head, and how far it is from one block to the next.
struct HeadKeys {
  const float* k;
  const float* v;
  int64_t k_stride, v_stride;
};

// The blocks of one chunk, in ascending order.
struct KeyChunk {
  size_t blocks = 0;
  size_t last_count = 0;          // keys that exist of the last block; all others are whole
  int32_t logical[kChunkBlocks];  // holds keys 16 logical .. 16 logical + 15
  const float* k[kChunkBlocks];
  const float* v[kChunkBlocks];
  // With edges: the lanes that the row sees, by block, and the same as places in the chunk.
  uint16_t lanes[kChunkBlocks];
  size_t places = 0;
  uint16_t place[kChunkBlocks * kKeyBlock];
  bool last = false;  // no chunk follows
};

// Goes over the blocks of one head's keys of which a group of rows sees something.
class KeyWalk {
 public:
  KeyWalk(const AttentionArgs& args, const HeadKeys& keys)
      : args_(args),
        keys_(keys),
        edges_(args.edge_offsets != nullptr),
        window_(args.spec->window_left >= 0 || args.spec->window_right >= 0),
        alike_(!args.spec->causal && !window_),
        all_{0, 0, args.num_keys} {
    if (!alike_) return;
    seen_[0] = all_;
    end_ = BlocksOf(args.num_keys);
    // One chunk for all groups of rows.
    fixed_ = !edges_ && end_ <= static_cast<int64_t>(kChunkBlocks);
    if (fixed_) NextOfRanges();
  }

  // Rows [row, row + rows) of the call are next. With edges a group is one row.
  void Begin(int64_t row, size_t rows) {
    begun_ = true;
    if (fixed_) return;
    if (alike_) {
      next_ = 0;
    } else {
      SetRanges(args_.query_begin + row, rows);
    }
    if (!edges_) return;
    edge_ = args_.edge_keys + args_.edge_offsets[row];
    edge_end_ = args_.edge_keys + args_.edge_offsets[row + 1];
    count_ = 0;
    SkipUnseenEdges();
  }

  // Goes to the next chunk; false if there is none.
  bool Next() {
    if (fixed_) return std::exchange(begun_, false);
    return edges_ ? NextOfEdges() : NextOfRanges();
  }
  const KeyChunk& chunk() const { return chunk_; }
  // Whether every row sees the same keys; of edges, only that one row does.
  bool alike() const { return alike_; }

  // Whether every row of the group sees all 16 keys of the chunk's block b.
  bool AllSee(size_t b) const {
    if (edges_) return chunk_.lanes[b] == kAllLanes;
    const int64_t key = chunk_.logical[b] * kKeyBlock;
    return key + kKeyBlock <= all_.prefix || (all_.begin <= key && key + kKeyBlock <= all_.end);
  }

  // The lanes of the chunk's block b that row r of the group sees, one bit each.
  uint32_t Lanes(size_t b, size_t r) const {
    if (edges_) return chunk_.lanes[b];
    const int64_t key = chunk_.logical[b] * kKeyBlock;
    const SeenKeys& seen = Seen(r);
    return LanesBelow(seen.prefix - key) |
           (LanesBelow(seen.end - key) & ~LanesBelow(seen.begin - key));
  }

  // How many keys row r sees; with edges, how many it has been given so far.
  int64_t Count(size_t r) const { return edges_ ? count_ : Seen(r).count(); }

 private:
  static int64_t BlocksOf(int64_t keys) { return (keys + kKeyBlock - 1) / kKeyBlock; }

  const SeenKeys& Seen(size_t r) const { return seen_[alike_ ? 0 : r]; }

  // What each row sees, what all do, and the blocks of which any sees something.
  void SetRanges(int64_t position, size_t rows) {
    if (!window_) return SetCausal(position, rows);
    int64_t any_prefix = 0, any_begin = args_.num_keys, any_end = 0;
    all_ = {args_.num_keys, 0, args_.num_keys};
    for (size_t r = 0; r < rows; ++r) {
      const SeenKeys seen =
          KeysSeenAt(*args_.spec, position + static_cast<int64_t>(r), args_.num_keys);
      seen_[r] = seen;
      any_prefix = std::max(any_prefix, seen.prefix);
      if (seen.begin < seen.end) {
        any_begin = std::min(any_begin, seen.begin);
        any_end = std::max(any_end, seen.end);
      }
      all_.prefix = std::min(all_.prefix, seen.prefix);
      all_.begin = std::max(all_.begin, seen.begin);
      all_.end = std::min(all_.end, seen.end);
    }
    prefix_blocks_ = BlocksOf(any_prefix);
    begin_ = std::max(any_begin / kKeyBlock, prefix_blocks_);
    end_ = std::max(BlocksOf(any_end), prefix_blocks_);
    next_ = prefix_blocks_ > 0 ? 0 : begin_;
  }

  // The same without a window: each row sees one key more than the one before.
  void SetCausal(int64_t position, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
      const int64_t seen = position + static_cast<int64_t>(r) + 1;
      seen_[r] = {0, 0, std::min(seen, args_.num_keys)};
    }
    all_ = seen_[0];
    end_ = BlocksOf(seen_[rows - 1].end);
    next_ = 0;
  }

  static uint32_t LanesBelow(int64_t n) { return (1u << std::clamp<int64_t>(n, 0, kKeyBlock)) - 1; }

  void Push(int64_t block) {
    const int64_t at = args_.blocks != nullptr ? args_.blocks[block] : block;
    chunk_.logical[chunk_.blocks] = static_cast<int32_t>(block);
    chunk_.k[chunk_.blocks] = keys_.k + at * keys_.k_stride;
    chunk_.v[chunk_.blocks] = keys_.v + at * keys_.v_stride;
    ++chunk_.blocks;
  }

  // When all blocks of the chunk are there.
  void Finish(bool last) {
    const int64_t left = args_.num_keys - chunk_.logical[chunk_.blocks - 1] * kKeyBlock;
    chunk_.last_count = static_cast<size_t>(std::min(left, kKeyBlock));
    chunk_.last = last;
  }

  bool NextOfRanges() {
    if (next_ >= end_) return false;
    constexpr int64_t size = kChunkBlocks;
    const int64_t chunk_end = std::min(end_, (next_ / size + 1) * size);
    chunk_.blocks = 0;
    while (next_ < chunk_end) {
      Push(next_++);
      if (next_ == prefix_blocks_) next_ = begin_;
    }
    Finish(next_ >= end_);
    return true;
  }

  void SkipUnseenEdges() {
    while (edge_ != edge_end_ && !seen_[0].Has(*edge_)) ++edge_;
  }

  bool NextOfEdges() {
    if (edge_ == edge_end_) return false;
    chunk_.blocks = chunk_.places = 0;
    while (edge_ != edge_end_) {
      const int64_t block = *edge_ / kKeyBlock;
      const int64_t lane = *edge_ % kKeyBlock;
      if (chunk_.blocks == 0 || chunk_.logical[chunk_.blocks - 1] != block) {
        if (chunk_.blocks == kChunkBlocks) break;
        chunk_.lanes[chunk_.blocks] = 0;
        Push(block);
      }
      const size_t b = chunk_.blocks - 1;
      chunk_.lanes[b] = static_cast<uint16_t>(chunk_.lanes[b] | 1u << lane);
      chunk_.place[chunk_.places++] = static_cast<uint16_t>(b * kKeyBlock + lane);
      ++count_;
      ++edge_;
      SkipUnseenEdges();
    }
    Finish(edge_ == edge_end_);
    return true;
  }

  const AttentionArgs& args_;
  const HeadKeys keys_;
  const bool edges_;
  const bool window_;
  const bool alike_;    // every row sees all keys
  bool fixed_ = false;  // and they are one chunk
  bool begun_ = false;
  SeenKeys all_;                      // what all rows of the group see
  SeenKeys seen_[kMaxAttentionRows];  // by row
  // Blocks [0, prefix_blocks_) and [begin_, end_); next_ is the next of them.
  int64_t prefix_blocks_ = 0, begin_ = 0, end_ = 0, next_ = 0;
  const int32_t* edge_ = nullptr;
  const int32_t* edge_end_ = nullptr;
  int64_t count_ = 0;
  KeyChunk chunk_;
};

}  // namespace attend

#endif  // ATTEND_KERNELS_ATTENTION_KEYS_H_
