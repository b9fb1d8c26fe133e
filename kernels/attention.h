// Blocked self-attention over packed keys and values, and the packing.
//
// Layout of packed keys and values. The keys of a sequence are cut into blocks of kKeyBlock from
// its start; a block holds all G heads. With j the position in the sequence:
//   K: block[j / 16], head g, [E][16]   element (e, j % 16): keys are the fastest
//   V: block[j / 16], head g, [16][E]   element (j % 16, e): columns are the fastest
// Both take ceil(L / 16) * 16 * G * E floats a sequence. What lies behind the last key of the last
// block is never used, whatever it holds (NaN included).
#ifndef ATTEND_KERNELS_ATTENTION_H_
#define ATTEND_KERNELS_ATTENTION_H_

#include <cstdint>

namespace attend {

inline constexpr int64_t kKeyBlock = 16;

// Packs keys and values of `rows` consecutive positions of ONE sequence, beginning at `position`,
// for heads [head_begin, head_end) of G.
struct PackKvArgs {
  const float* k = nullptr;   // [rows, (head_end - head_begin) * E; ldk]: the heads asked for only
  const float* v = nullptr;   // the same, ldv
  float* packed_k = nullptr;  // the sequence's
  float* packed_v = nullptr;
  int64_t rows = 0, position = 0;
  int64_t ldk = 0, ldv = 0;
  int64_t kv_heads = 0, head_dim = 0;  // G, E
  int64_t head_begin = 0, head_end = 0;
};
using PackKvFn = void (*)(const PackKvArgs&);
PackKvFn BindPackKv();

// Attention of queries [query_begin, query_begin + query_count) of one sequence, for query heads
// [head_begin, head_end) of H; query head h uses key/value head h / (H / G).
//   out[i] = sum_j softmax_j(scale * q_i . k_j) v_j       Vaswani et al. 2017, equation 1
struct AttentionArgs {
  const float* q = nullptr;  // [query_count, H * E; ldq], row 0 is query_begin, column 0 is head 0
  const float* packed_k = nullptr;  // the sequence's
  const float* packed_v = nullptr;
  float* out = nullptr;  // [query_count, H * E; ld_out], like q
  int64_t query_begin = 0, query_count = 0;
  int64_t num_keys = 0;  // Lk >= 1
  int64_t ldq = 0, ld_out = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // H, G, E
  int64_t head_begin = 0, head_end = 0;
  float scale = 1;
  float* scratch = nullptr;  // AttentionScratchFloats(max keys) floats, 64-byte aligned
};
using AttentionFn = void (*)(const AttentionArgs&);

// A key whose score is -inf, or more than 87.3 below the row's largest, has the weight 0 exactly; a
// row without any finite score gives zeros; scores that overflow make no NaN and no inf.
// Error: 2e-6 (1 + |out|) for scores up to 10 and values around 1; a score s adds |s| 2^-24 to its
// weight's relative error.
// The bits of an output row depend on its query, the keys, the values and num_keys alone: not on
// query_begin, query_count, head_begin or head_end.
AttentionFn BindAttention();

// Floats of scratch that one call needs for up to `num_keys` keys.
int64_t AttentionScratchFloats(int64_t num_keys);

}  // namespace attend

#endif  // ATTEND_KERNELS_ATTENTION_H_
