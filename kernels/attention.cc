// Blocked attention. One call walks its heads; for one head it takes kMostRows query rows at a time
// (less at the end). KeyWalk lists the blocks of keys that they see, a chunk at a time, and a chunk
// goes through three stages, each in a file of its own:
//
//   attention_score-inl.h    scores of the rows and the chunk's keys: a vector of keys times a
//                            broadcast element of q, accumulated in registers over the columns
//   attention_weights-inl.h  -inf for what is not seen, biases, row maximum, weights
//   attention_sum-inl.h      sum_j w_j v_j: a vector of columns times a broadcast weight,
//                            accumulated in registers over the keys, times 1 / sum at the end
//
// attention_tiles-inl.h has the first and the third by the tiles of AMX.
//
// Between chunks softmax rescales what was summed when the maximum grows.
//
// Scores lie in scratch as [block][row][16], so that every access of the inner loops is one pointer
// plus a constant. Each score is one sum over the columns in order, each output one sum over j in
// order, each sum of weights 16 sums over the keys of a lane in order, whatever the number of rows
// or vectors that share the registers; a key that is not seen adds 0, and a chunk of such keys
// multiplies by 1. That is why a row's bits do not depend on the rows beside it.
#include "kernels/attention.h"

#include <algorithm>

#include "kernels/attention_keys.h"
#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"
#include "kernels/attention-inl.h"
#include "kernels/attention_score-inl.h"
#include "kernels/attention_sum-inl.h"
#include "kernels/attention_tiles-inl.h"
#include "kernels/attention_weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// The first and the third stage.
template <Unit kUnit, size_t kR>
HWY_INLINE void ScoreRows(F32 d, const Head& head, const KeyChunk& chunk, bool first, float* q,
                          float* scores) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kUnit == Unit::kTiles) return TileDotScores<kR>(d, head, chunk, first, q, scores);
#endif
  if constexpr (kUnit == Unit::kFloats) {
    if (head.additive != nullptr) return AdditiveScores<kR>(d, head, chunk, first, q, scores);
  }
  DotScores<kUnit == Unit::kPairs, kR>(d, head, chunk, first, q, scores);
}
template <Unit kUnit, size_t kR>
HWY_INLINE void SumRows(F32 d, const Head& head, const KeyChunk& chunk, const float* weights,
                        bool first, const RowStates& states) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kUnit == Unit::kTiles) {
    return TileWeightedSum<kR>(d, head, chunk, weights, first, states);
  }
#endif
  WeightedSum<kUnit == Unit::kPairs, kR>(d, head, chunk, weights, first, states);
}

// kR rows of one head, all stages. Not inlined: one copy for each number of rows is code enough.
template <Unit kUnit, size_t kR>
HWY_NOINLINE void AttendRows(const Head& head, KeyWalk& walk) {
  const F32 d;
  float* const q = head.args->scratch;
  float* const weights = q + kMaxAttentionRows * kPackedRow;
  const KeyChunk& chunk = walk.chunk();
  RowStates states{};
  bool first = true;
#if HWY_TARGET == HWY_AVX3
  if constexpr (kUnit == Unit::kTiles) ShapeTiles<kR>(head);
#endif
  walk.Begin(head.row, kR);
  for (; walk.Next(); first = false) {
    ScoreRows<kUnit, kR>(d, head, chunk, first, q, weights);
    NormalizeRows<kUnit != Unit::kFloats, kR>(d, head, walk, first, weights, states);
    SumRows<kUnit, kR>(d, head, chunk, weights, first, states);
  }
  if (first) ZeroRows(head, kR);
}

// Takes kR rows at a time while there are that many.
template <Unit kUnit, size_t kR>
HWY_INLINE void AttendWhile(Head& head, KeyWalk& walk) {
  const AttentionArgs& args = *head.args;
  for (; args.query_count - head.row >= static_cast<int64_t>(kR); head.row += kR) {
    AttendRows<kUnit, kR>(head, walk);
    head.q += static_cast<int64_t>(kR) * args.ldq;
    head.out += static_cast<int64_t>(kR) * args.ld_out;
  }
}

HeadKeys KeysOf(const AttentionArgs& args, int64_t h) {
  const AttentionSpec& spec = *args.spec;
  const int64_t g = h / (spec.heads / spec.kv_heads);
  const int64_t k_floats = PackedKeyFloats(kKeyBlock, 1, spec.key_dim, spec.pairs);
  const int64_t v_floats = PackedValueFloats(kKeyBlock, 1, spec.value_dim, spec.pairs);
  return {.k = args.packed_k + g * k_floats,
          .v = args.packed_v + g * v_floats,
          .k_stride = spec.kv_heads * k_floats,
          .v_stride = spec.kv_heads * v_floats};
}

Head MakeHead(const AttentionArgs& args, int64_t h) {
  const AttentionSpec& spec = *args.spec;
  Head head{};
  head.args = &args;
  head.q = args.q + h * spec.key_dim;
  head.out = args.out + h * spec.value_dim;
  head.key_dim = static_cast<size_t>(spec.key_dim);
  head.value_dim = static_cast<size_t>(spec.value_dim);
  head.unit = TakesPowers(spec.normalizer) ? kLog2E : 1.0f;
  head.scale = spec.scale * head.unit;
  if (spec.additive != nullptr) {
    head.additive = spec.additive + h * spec.key_dim;
    double sum = 0.0;
    for (int64_t a = 0; a < spec.key_dim; ++a) sum += static_cast<double>(head.additive[a]);
    head.additive_sum = static_cast<float>(sum);
  }
  if (spec.alibi_slopes != nullptr) head.alibi_slope = spec.alibi_slopes + h;
  if (spec.distance_bias != nullptr) {
    head.distance_bias = spec.distance_bias + h * DistanceBiasWidth(spec.max_distance);
  }
  if (args.dense_bias != nullptr) head.dense_bias = args.dense_bias + h * args.bias_head;
  return head;
}

template <Unit kUnit>
HWY_INLINE void AttendHeads(const AttentionArgs& args) {
  size_t tile_rows = 0;
  for (int64_t h = args.head_begin; h < args.head_end; ++h) {
    Head head = MakeHead(args, h);
    head.tile_rows = &tile_rows;
    KeyWalk walk(args, KeysOf(args, h));
    // Rows of a graph seldom see the same blocks: one by one each reads its own alone.
    if (args.edge_offsets == nullptr) {
      AttendWhile<kUnit, kMostRows>(head, walk);
      if constexpr (kMostRows > 8) AttendWhile<kUnit, 8>(head, walk);
      if constexpr (kMostRows > 4) AttendWhile<kUnit, 4>(head, walk);
      AttendWhile<kUnit, 2>(head, walk);
    }
    AttendWhile<kUnit, 1>(head, walk);
  }
}

void Attention(const AttentionArgs& args) {
#if HWY_TARGET == HWY_AVX3
  if (args.spec->pairs) return AttendHeads<Unit::kPairs>(args);
#endif
  AttendHeads<Unit::kFloats>(args);
}

#if HWY_TARGET == HWY_AVX3
void AttentionByTiles(const AttentionArgs& args) {
  if (!args.spec->pairs || !FillTiles(*args.spec)) return Attention(args);
  const TileUse use;
  AttendHeads<Unit::kTiles>(args);
}
#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Attention);
AttentionFn BindAttention() {
  if (BoundIsa() >= Isa::kAmx) return N_AVX3::AttentionByTiles;
  return ATTEND_BIND(Attention);
}

bool CanAttendInPairs() { return BoundIsa() >= Isa::kAvx512Bf16; }

int64_t AttentionScratchFloats(int64_t num_keys) {
  constexpr int64_t rows = kMaxAttentionRows, columns = kPackedRow;
  const int64_t blocks = std::min<int64_t>(kChunkBlocks, (num_keys + kKeyBlock - 1) / kKeyBlock);
  return rows * (columns + blocks * kKeyBlock);
}

}  // namespace attend
#endif  // HWY_ONCE
