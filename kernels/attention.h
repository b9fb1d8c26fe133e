// Blocked attention over packed keys and values, the whole family in one kernel, and the packing.
//
// Layout of packed keys and values. The keys of a sequence are cut into blocks of kKeyBlock from
// its start; a block holds all G heads. With j the position in the sequence:
//   K: block[j / 16], head g, [A][16]   element (a, j % 16): keys are the fastest
//   V: block[j / 16], head g, [16][E]   element (j % 16, e): columns are the fastest
// They take ceil(L / 16) * 16 * G * A and ceil(L / 16) * 16 * G * E floats a sequence. What lies
// behind the last key of the last block is never used, whatever it holds (NaN included).
// In pairs (for a CPU with a bf16 unit) two numbers of bf16 take the place of one float, the first
// in its low half: two columns of a key, with a zero behind an odd A; two keys of a column of V.
//   K: block[j / 16], head g, [ceil(A / 2)][16]   (a / 2, j % 16), half a % 2
//   V: block[j / 16], head g, [8][E]              (j % 16 / 2, e), half j % 2
// Where `blocks` is given, block[b] is the blocks[b]-th of the memory: a key/value cache in which
// sequences that begin alike share what is full.
#ifndef ATTEND_KERNELS_ATTENTION_H_
#define ATTEND_KERNELS_ATTENTION_H_

#include <cstdint>

namespace attend {

inline constexpr int64_t kKeyBlock = 16;

// Floats of `rows` packed keys [heads, A] and values [heads, E]; whole blocks.
constexpr int64_t PackedKeyFloats(int64_t rows, int64_t heads, int64_t key_dim, bool pairs) {
  return rows * heads * (pairs ? (key_dim + 1) / 2 : key_dim);
}
constexpr int64_t PackedValueFloats(int64_t rows, int64_t heads, int64_t value_dim, bool pairs) {
  return (pairs ? rows / 2 : rows) * heads * value_dim;
}

// Whether the bound ISA can attend in pairs.
bool CanAttendInPairs();

// Packs keys and values of `rows` consecutive positions of ONE sequence, beginning at `position`,
// for heads [head_begin, head_end) of G.
struct PackKvArgs {
  const float* k = nullptr;   // [rows, (head_end - head_begin) * A; ldk]: the heads asked for only
  const float* v = nullptr;   // [rows, (head_end - head_begin) * E; ldv]
  float* packed_k = nullptr;  // the sequence's; with `blocks`, the cache's
  float* packed_v = nullptr;
  const int32_t* blocks = nullptr;  // [ceil((position + rows) / 16)], or null: block b is the b-th
  int64_t rows = 0, position = 0;
  int64_t ldk = 0, ldv = 0;
  int64_t kv_heads = 0, key_dim = 0, value_dim = 0;  // G, A, E
  int64_t head_begin = 0, head_end = 0;
  bool pairs = false;
};
using PackKvFn = void (*)(const PackKvArgs&);
PackKvFn BindPackKv();

// How the weights of a row are made of its scores s, over the keys that it sees.
enum class AttentionNormalizer {
  kSoftmax,   // e^s / sum e^s
  kSoftmax1,  // e^s / (1 + sum e^s)
  kRelu,      // max(s, 0)
  kRelu2,     // max(s, 0)^2
  kSigmoid,   // 1 / (1 + e^-s)
  kNone,      // s
};

// What is fixed for a layer. The score of query i and key j under head h is
//   s = scale q_i . k_j                            Vaswani et al. 2017, equation 1
//   s = sum_a additive_h[a] tanh(q_i[a] + k_j[a])  with `additive`; Bahdanau et al. 2014
// plus -slope_h |i - j| (Press et al. 2021), plus the bias of the distance j - i (Raffel et al.
// 2020, expanded from buckets), plus AttentionArgs::dense_bias: each if it is given. Query i sees
// the keys that causal, window and edges all let it see.
struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0;       // H, G; query head h uses key/value head h / (H / G)
  int64_t key_dim = 0, value_dim = 0;    // A, E: width of a head's queries and keys, of its values
  float scale = 1;                       // of the dot product; additive has none
  const float* additive = nullptr;       // [H, A]
  const float* alibi_slopes = nullptr;   // [H]
  const float* distance_bias = nullptr;  // [H, DistanceBiasWidth(max_distance)]
  int64_t max_distance = 0;
  bool causal = false;                          // i sees j <= i
  int64_t window_left = -1, window_right = -1;  // i - left <= j <= i + right; -1: no limit
  // With a window: the first positions see and are seen by everybody (causal still holds).
  int64_t global_tokens = 0;
  AttentionNormalizer normalizer = AttentionNormalizer::kSoftmax;
  // Weights are divided by the number of keys that the row sees; not with softmax and softmax1.
  bool divide_by_seen = false;
  // Keys and values are packed in pairs; scale q and the weights are rounded to bf16 too, and
  // multiplied by the CPU's unit with sums in f32. All between is f32. Requires CanAttendInPairs(),
  // and no `additive`.
  bool pairs = false;
};

// The bias of distance d stands at d + max_distance + kKeyBlock of a head's row; what is farther
// than max_distance has the bias of max_distance. The kKeyBlock entries at either end repeat the
// outermost, so that any block of keys is one load.
constexpr int64_t DistanceBiasWidth(int64_t max_distance) {
  return 2 * (max_distance + kKeyBlock) + 1;
}

// Attention of queries [query_begin, query_begin + query_count) of one sequence, for query heads
// [head_begin, head_end) of H: out[i] = sum_j weight_ij v_j. Keys are those of the same sequence,
// of another one (cross-attention), or of a cache that holds the first num_keys.
struct AttentionArgs {
  const AttentionSpec* spec = nullptr;
  const float* q = nullptr;  // [query_count, H * A; ldq], row 0 is query_begin, column 0 is head 0
  const float* packed_k = nullptr;  // the sequence's; with `blocks`, the cache's
  const float* packed_v = nullptr;
  const int32_t* blocks = nullptr;  // [ceil(num_keys / 16)], or null: block b is the b-th
  float* out = nullptr;             // [query_count, H * E; ld_out], like q
  int64_t query_begin = 0, query_count = 0;
  int64_t num_keys = 0;  // Lk >= 1, below 2^24
  int64_t ldq = 0, ld_out = 0;
  int64_t head_begin = 0, head_end = 0;
  // Added to the scores: [H, query_count, num_keys], a row ld_bias and a head bias_head floats from
  // the next. May be -inf: not seen.
  const float* dense_bias = nullptr;
  int64_t ld_bias = 0, bias_head = 0;
  // With edges, row r of the call sees only edge_keys[edge_offsets[r] .. edge_offsets[r + 1]):
  // positions below num_keys, ascending, each once.
  const int32_t* edge_offsets = nullptr;  // [query_count + 1], or null
  const int32_t* edge_keys = nullptr;
  float* scratch = nullptr;  // AttentionScratchFloats(max keys) floats, 64-byte aligned
};
using AttentionFn = void (*)(const AttentionArgs&);

// A key that is not seen has the weight 0 exactly, and so has, under the softmaxes, one whose score
// is more than 87.3 below the row's largest; a row that sees nobody gives zeros; scores that
// overflow make no NaN and no inf under softmax.
// Error: 2e-6 (1 + |out|) for scores up to 10 and values around 1; a score s adds |s| 2^-24 to its
// weight's relative error. In pairs, of keys, values and scale q that were rounded: 2^-8 sum |w v|.
// The bits of an output row depend on its query, its position and the keys and values that it sees
// alone: not on query_begin, query_count, head_begin or head_end, nor on keys that it does not see.
AttentionFn BindAttention();

// Floats of scratch that one call needs for up to `num_keys` keys.
int64_t AttentionScratchFloats(int64_t num_keys);

}  // namespace attend

#endif  // ATTEND_KERNELS_ATTENTION_H_
