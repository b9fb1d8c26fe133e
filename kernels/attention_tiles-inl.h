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

#include <cstring>

#include "kernels/attention-inl.h"
#include "kernels/attention_score-inl.h"
#include "kernels/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_AVX3

static_assert(kBlock == kTileFloats);
constexpr size_t kStepColumns = 32;  // of a key, in a tile

// Whether a call's heads fill tiles. Rows with edges go one by one, which no tile helps.
inline bool FillTiles(const AttentionArgs& args) {
  const AttentionSpec& spec = *args.spec;
  return args.edge_offsets == nullptr && spec.key_dim % kStepColumns == 0 &&
         spec.key_dim <= static_cast<int64_t>(kColumnChunk) && spec.value_dim % kTileFloats == 0;
}

// Tiles 0 to 3: scores or sums [kR][16]. 4: queries [kR][16 pairs]. 5: keys [16 pairs][16].
// 6: weights [kR][8 pairs]. 7: values [8 pairs][16].
template <size_t kR>
HWY_INLINE void ShapeTiles(Head& head) {
  if (head.tile_rows == kR) return;
  head.tile_rows = kR;
  TileShapes shapes;
  shapes.Set(0, 5, kR);
  shapes.Set(5, 6, kTileRows);
  shapes.Set(6, 7, kR, kTileRowBytes / 2);
  shapes.Set(7, 8, kTileRows / 2);
  TileUse::Shape(shapes);
}

// As DotScores.
template <size_t kR>
HWY_INLINE void TileScores(F32 d, const Head& head, const KeyChunk& chunk, bool first, float* q,
                           float* scores) {
  if (first) PackQPairs<kR>(d, head, 0, head.key_dim, q);
  const size_t steps = head.key_dim / kStepColumns;
  constexpr size_t kQBytes = kPackedRow * sizeof(float);
  if (steps == 1) LoadTile<4>(q, kQBytes);
  const auto score = [&](auto tile, size_t b) ATTEND_INLINE_LAMBDA {
    ZeroTile<tile>();
    for (size_t step = 0; step < steps; ++step) {
      if (steps > 1) LoadTile<4>(q + step * kTileFloats, kQBytes);
      LoadTile<5>(chunk.k[b] + step * kTileRows * kBlock, kTileRowBytes);
      AddTileBf16<tile, 4, 5>();
    }
    StoreTile<tile>(scores + b * kR * kBlock, kTileRowBytes);
  };
  size_t b = 0;
  for (; b + 2 <= chunk.blocks; b += 2) {
    Unroll<2>([&](auto tile) ATTEND_INLINE_LAMBDA { score(tile, b + tile); });
  }
  if (b < chunk.blocks) score(std::integral_constant<size_t, 0>(), b);
}

// The first `keys` values of a block, columns [0, kTiles * 16), and zeros for the others.
template <size_t kTiles>
HWY_INLINE void CopyValues(const float* v, size_t width, size_t keys, float* to) {
  constexpr size_t kRow = kTiles * kTileFloats;
  for (size_t pair = 0; pair < kBlock / 2; ++pair, to += kRow) {
    if (2 * pair >= keys) {
      std::memset(to, 0, kRow * sizeof(float));
      continue;
    }
    std::memcpy(to, v + pair * width, kRow * sizeof(float));
    if (2 * pair + 1 < keys) continue;
    auto* const halves = reinterpret_cast<uint16_t*>(to);
    for (size_t i = 0; i < kRow; ++i) halves[2 * i + 1] = 0;
  }
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
  const size_t whole = chunk.last_count < kBlock ? chunk.blocks - 1 : chunk.blocks;
  for (size_t b = 0; b < whole; ++b) {
    add(weights + b * kR * kBlock, chunk.v[b] + column, head.value_dim * sizeof(float));
  }
  if (whole < chunk.blocks) {
    alignas(64) float v[kBlock / 2 * kRow];
    CopyValues<kTiles>(chunk.v[whole] + column, head.value_dim, chunk.last_count, v);
    add(weights + whole * kR * kBlock, v, kRowBytes);
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
