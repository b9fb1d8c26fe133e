// The first and the third stage of attention by the tiles of AMX, on keys, values, queries and
// weights in pairs of bf16 (attention.h). A block of 16 keys is a tile as it is packed, and so are
// the scores of a block and the weights of one.
//
// A row's sums: of scores over 32 columns at a time, of values over 16 keys at a time, each as the
// instruction takes them, whatever rows are beside it.
#if defined(ATTEND_KERNELS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ATTENTION_TILES_INL_H_
#undef ATTEND_KERNELS_ATTENTION_TILES_INL_H_
#else
#define ATTEND_KERNELS_ATTENTION_TILES_INL_H_
#endif

#include "kernels/attention-inl.h"
#include "kernels/attention_score-inl.h"
#include "kernels/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_AVX3

static_assert(kBlock == kTileFloats);
constexpr size_t kStepColumns = 32;  // of a key, in a tile

// Whether heads fill tiles.
inline bool FillTiles(const AttentionSpec& spec) {
  return spec.key_dim % kStepColumns == 0 && spec.key_dim <= static_cast<int64_t>(kColumnChunk) &&
         spec.value_dim % kTileFloats == 0;
}

// Tiles 0 to 3: scores or sums [kR][16]. 4: queries [kR][16 pairs]. 5: keys [16 pairs][16].
// 6: weights [kR][8 pairs]. 7: values [8 pairs][16].
template <size_t kR>
HWY_INLINE void ShapeTiles(const Head& head) {
  if (*head.tile_rows == kR) return;
  *head.tile_rows = kR;
  TileShapes shapes;
  shapes.Set(0, 5, kR);
  shapes.Set(5, 6, kTileRows);
  shapes.Set(6, 7, kR, kTileRowBytes / 2);
  shapes.Set(7, 8, kTileRows / 2);
  TileUse::Shape(shapes);
}

// Scores of kR rows against kBlocks blocks of keys from the b-th of the chunk on.
template <size_t kR, size_t kBlocks>
HWY_INLINE void TileScores(const Head& head, const KeyChunk& chunk, const float* q, size_t b,
                           float* scores) {
  Unroll<kBlocks>([](auto i) ATTEND_INLINE_LAMBDA { ZeroTile<i>(); });
  for (size_t step = 0; step < head.key_dim / kStepColumns; ++step) {
    LoadTile<4>(q + step * kTileFloats, kPackedRow * sizeof(float));
    Unroll<kBlocks>([&](auto i) ATTEND_INLINE_LAMBDA {
      LoadTile<5>(chunk.k[b + i] + step * kTileRows * kBlock, kTileRowBytes);
      AddTileBf16<i, 4, 5>();
    });
  }
  Unroll<kBlocks>([&](auto i) ATTEND_INLINE_LAMBDA {
    StoreTile<i>(scores + (b + i) * kR * kBlock, kTileRowBytes);
  });
}

// As DotScores.
template <size_t kR>
HWY_INLINE void TileDotScores(F32 d, const Head& head, const KeyChunk& chunk, bool first, float* q,
                              float* scores) {
  if (first) PackQPairs<kR>(d, head, 0, head.key_dim, q);
  size_t b = 0;
  for (; b + 4 <= chunk.blocks; b += 4) TileScores<kR, 4>(head, chunk, q, b, scores);
  for (; b < chunk.blocks; ++b) TileScores<kR, 1>(head, chunk, q, b, scores);
}

// Columns [0, kTiles * 16) of a block's values whose lanes are `seen`, one bit each, and zeros for
// the others, whatever lies there.
template <size_t kTiles>
HWY_INLINE void CopyValues(F32 d, const float* v, size_t width, uint32_t seen, float* to) {
  const hn::RebindToUnsigned<F32> du;
  for (size_t pair = 0; pair < kBlock / 2; ++pair, seen >>= 2) {
    const auto halves =
        hn::Set(du, ((seen & 1u) != 0 ? 0xFFFFu : 0u) | ((seen & 2u) != 0 ? 0xFFFF0000u : 0u));
    for (size_t j = 0; j < kTiles; ++j, to += kTileFloats) {
      const VF values =
          (seen & 3u) != 0 ? hn::LoadU(d, v + pair * width + j * kTileFloats) : hn::Zero(d);
      hn::Store(hn::And(values, hn::BitCast(d, halves)), d, to);
    }
  }
}

// The lanes of the chunk's block b whose values count for any row in work; of those, weights are 0
// where a row does not see a key.
HWY_INLINE uint32_t LanesOfValues(const Head& head, const KeyChunk& chunk, size_t b) {
  if (head.args->edge_offsets != nullptr) return chunk.lanes[b];
  return b + 1 < chunk.blocks ? kAllLanes : (1u << chunk.last_count) - 1;
}

// Columns [column, column + 16 kTiles) of the output of kR rows.
template <size_t kR, size_t kTiles>
HWY_INLINE void TileSums(F32 d, const Head& head, const KeyChunk& chunk, const float* weights,
                         size_t column, bool first, const RowStates& states) {
  constexpr size_t kRow = kTiles * kTileFloats, kRowBytes = kRow * sizeof(float);
  const size_t ld_out = static_cast<size_t>(head.args->ld_out);
  alignas(64) float sums[kR * kRow];
  if (first) {
    Unroll<kTiles>([](auto j) ATTEND_INLINE_LAMBDA { ZeroTile<j>(); });
  } else {
    for (size_t i = 0; i < kR * kTiles; ++i) {
      const float* const from = head.out + i / kTiles * ld_out + column + i % kTiles * kTileFloats;
      hn::Store(hn::Mul(hn::LoadU(d, from), hn::Set(d, states.rescale[i / kTiles])), d,
                sums + i * kTileFloats);
    }
    Unroll<kTiles>([&](auto j)
                       ATTEND_INLINE_LAMBDA { LoadTile<j>(sums + j * kTileFloats, kRowBytes); });
  }
  const auto add = [&](const float* w, const float* v, size_t stride) ATTEND_INLINE_LAMBDA {
    LoadTile<6>(w, kTileRowBytes);
    Unroll<kTiles>([&](auto j) ATTEND_INLINE_LAMBDA {
      LoadTile<7>(v + j * kTileFloats, stride);
      AddTileBf16<j, 6, 7>();
    });
  };
  for (size_t b = 0; b < chunk.blocks; ++b) {
    const float* const w = weights + b * kR * kBlock;
    const float* const v = chunk.v[b] + column;
    const uint32_t lanes = LanesOfValues(head, chunk, b);
    if (lanes == kAllLanes) {
      add(w, v, head.value_dim * sizeof(float));
      continue;
    }
    alignas(64) float copy[kBlock / 2 * kRow];
    CopyValues<kTiles>(d, v, head.value_dim, lanes, copy);
    add(w, copy, kRowBytes);
  }
  Unroll<kTiles>([&](auto j)
                     ATTEND_INLINE_LAMBDA { StoreTile<j>(sums + j * kTileFloats, kRowBytes); });
  for (size_t i = 0; i < kR * kTiles; ++i) {
    const VF factor = hn::Set(d, states.factor[i / kTiles]);
    // Adding 0, as WeightedTile does.
    const VF y = hn::MulAdd(hn::Load(d, sums + i * kTileFloats), factor, hn::Zero(d));
    hn::StoreU(y, d, head.out + i / kTiles * ld_out + column + i % kTiles * kTileFloats);
  }
}

// As WeightedSum.
template <size_t kR>
HWY_INLINE void TileWeightedSum(F32 d, const Head& head, const KeyChunk& chunk,
                                const float* weights, bool first, const RowStates& states) {
  size_t column = 0;
  for (; column + 4 * kTileFloats <= head.value_dim; column += 4 * kTileFloats) {
    TileSums<kR, 4>(d, head, chunk, weights, column, first, states);
  }
  for (; column + 2 * kTileFloats <= head.value_dim; column += 2 * kTileFloats) {
    TileSums<kR, 2>(d, head, chunk, weights, column, first, states);
  }
  if (column < head.value_dim) TileSums<kR, 1>(d, head, chunk, weights, column, first, states);
}

#endif
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_ATTENTION_TILES_INL_H_
