// Keys and values in the layout that attention reads (attention.h).
#include <algorithm>
#include <cstring>

#include "kernels/attention.h"
#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_pack.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr size_t kBlock = static_cast<size_t>(kKeyBlock);

// Columns [0, E) of four consecutive rows of k, transposed in squares of 4 by 4 in 128-bit vectors;
// `to` is where the first of them stands in its block.
HWY_INLINE void TransposeFourRows(const float* k, size_t ldk, size_t columns, float* to) {
  const hn::Full128<float> d;
  const hn::Repartition<double, hn::Full128<float>> dd;
  size_t e = 0;
  for (; e + 4 <= columns; e += 4) {
    const auto r0 = hn::LoadU(d, k + e), r1 = hn::LoadU(d, k + ldk + e);
    const auto r2 = hn::LoadU(d, k + 2 * ldk + e), r3 = hn::LoadU(d, k + 3 * ldk + e);
    const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));
    const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));
    const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
    const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
    float* square = to + e * kBlock;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, low01, low23)), d, square);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23)), d, square + kBlock);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, high01, high23)), d, square + 2 * kBlock);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23)), d, square + 3 * kBlock);
  }
  for (; e < columns; ++e) {
    for (size_t row = 0; row < 4; ++row) to[e * kBlock + row] = k[row * ldk + e];
  }
}

// The values of one row: E floats.
HWY_INLINE void CopyRow(F32 d, const float* v, size_t columns, float* to) {
  size_t e = 0;
  for (; e + kLanes <= columns; e += kLanes) hn::StoreU(hn::LoadU(d, v + e), d, to + e);
  if (e < columns) std::memcpy(to + e, v + e, (columns - e) * sizeof(float));
}

#if HWY_TARGET == HWY_AVX3
// Columns of a key in pairs, as they stand in a row of q or k: [ceil(A / 2)] floats, a chunk of
// them. The same for a value, whose neighbour in a pair is the value of the next key.
constexpr size_t kPairChunk = 128;

// A chunk of a key's columns.
HWY_INLINE void NarrowColumns(F32 d, const float* k, size_t columns, float* to) {
  const hn::Rebind<uint16_t, F32> d16;
  auto* const out = reinterpret_cast<uint16_t*>(to);
  size_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    hn::StoreU(NarrowToBf16(hn::LoadU(d, k + i)), d16, out + i);
  }
  if (i < columns) hn::StoreU(NarrowToBf16(LoadTail(d, k + i, columns - i)), d16, out + i);
}

// Keys of `count` consecutive rows, four or one; `to` is where the first of them stands.
HWY_INLINE void PackKeyPairs(F32 d, const float* k, size_t ldk, size_t key_dim, size_t count,
                             float* to) {
  alignas(64) float rows[4 * (kPairChunk + kLanes)];
  constexpr size_t kRow = kPairChunk + kLanes;
  for (size_t column = 0; column < key_dim; column += 2 * kPairChunk) {
    const size_t columns = std::min(2 * kPairChunk, key_dim - column), pairs = (columns + 1) / 2;
    for (size_t r = 0; r < count; ++r) {
      NarrowColumns(d, k + r * ldk + column, columns, rows + r * kRow);
    }
    float* const chunk = to + column / 2 * kBlock;
    if (count == 4) {
      TransposeFourRows(rows, kRow, pairs, chunk);
    } else {
      for (size_t a = 0; a < pairs; ++a) chunk[a * kBlock] = rows[a];
    }
  }
}

// Values of `count` consecutive rows from `slot` of a block on, four or one; `to` is the block's.
HWY_INLINE void PackValuePairs(F32 d, const float* v, size_t ldv, size_t width, size_t slot,
                               size_t count, float* to) {
  const hn::RebindToUnsigned<F32> du;
  const hn::Rebind<uint16_t, F32> d16;
  if (count == 1) {
    auto* const out = reinterpret_cast<uint16_t*>(to + slot / 2 * width) + slot % 2;
    for (size_t e = 0; e < width; e += kLanes) {
      alignas(64) uint16_t narrow[kLanes];
      const size_t some = std::min(kLanes, width - e);
      hn::Store(NarrowToBf16(LoadTail(d, v + e, some)), d16, narrow);
      for (size_t i = 0; i < some; ++i) out[2 * (e + i)] = narrow[i];
    }
    return;
  }
  for (size_t pair = 0; pair < count / 2; ++pair) {
    const float* const first = v + 2 * pair * ldv;
    float* const out = to + (slot / 2 + pair) * width;
    for (size_t e = 0; e < width; e += kLanes) {
      const size_t some = std::min(kLanes, width - e);
      const auto low = hn::PromoteTo(du, NarrowToBf16(LoadTail(d, first + e, some)));
      const auto high = hn::PromoteTo(du, NarrowToBf16(LoadTail(d, first + ldv + e, some)));
      const VF both = hn::BitCast(d, hn::Or(low, hn::ShiftLeft<16>(high)));
      StoreTail(both, d, out + e, some);
    }
  }
}
#endif

// Keys and values of `count` rows, four or one, of a head; to_k and to_v are the block's.
template <bool kPairs>
HWY_INLINE void PackRows(const PackKvArgs& args, const float* k, const float* v, size_t slot,
                         size_t count, float* to_k, float* to_v) {
  const F32 d;
  const size_t key_dim = static_cast<size_t>(args.key_dim);
  const size_t value_dim = static_cast<size_t>(args.value_dim);
  const size_t ldk = static_cast<size_t>(args.ldk), ldv = static_cast<size_t>(args.ldv);
#if HWY_TARGET == HWY_AVX3
  if constexpr (kPairs) {
    PackKeyPairs(d, k, ldk, key_dim, count, to_k + slot);
    PackValuePairs(d, v, ldv, value_dim, slot, count, to_v);
    return;
  }
#endif
  if (count == 4) {
    TransposeFourRows(k, ldk, key_dim, to_k + slot);
  } else {
    for (size_t a = 0; a < key_dim; ++a) to_k[a * kBlock + slot] = k[a];
  }
  for (size_t r = 0; r < count; ++r) {
    CopyRow(d, v + r * ldv, value_dim, to_v + (slot + r) * value_dim);
  }
}

template <bool kPairs>
HWY_INLINE void PackKeysAndValues(const PackKvArgs& args) {
  const size_t rows = static_cast<size_t>(args.rows);
  const int64_t k_floats = PackedKeyFloats(kKeyBlock, 1, args.key_dim, kPairs);
  const int64_t v_floats = PackedValueFloats(kKeyBlock, 1, args.value_dim, kPairs);
  for (size_t row = 0; row < rows;) {
    const size_t position = static_cast<size_t>(args.position) + row;
    const size_t slot = position % kBlock;
    int64_t block = static_cast<int64_t>(position / kBlock);
    if (args.blocks != nullptr) block = args.blocks[block];
    // Only slots of these rows are written: another thread may be writing their neighbours.
    const size_t count = (slot % 4 == 0 && rows - row >= 4) ? 4 : 1;
    const float* const k = args.k + static_cast<int64_t>(row) * args.ldk;
    const float* const v = args.v + static_cast<int64_t>(row) * args.ldv;
    for (int64_t g = args.head_begin; g < args.head_end; ++g) {
      const int64_t source = g - args.head_begin, head = block * args.kv_heads + g;
      PackRows<kPairs>(args, k + source * args.key_dim, v + source * args.value_dim, slot, count,
                       args.packed_k + head * k_floats, args.packed_v + head * v_floats);
    }
    row += count;
  }
}

void PackKv(const PackKvArgs& args) {
#if HWY_TARGET == HWY_AVX3
  if (args.pairs) return PackKeysAndValues<true>(args);
#endif
  PackKeysAndValues<false>(args);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(PackKv);
PackKvFn BindPackKv() { return ATTEND_BIND(PackKv); }

}  // namespace attend
#endif  // HWY_ONCE
