// Keys and values in the layout that attention reads (attention.h).
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

void PackKv(const PackKvArgs& args) {
  const F32 d;
  const size_t key_dim = static_cast<size_t>(args.key_dim);
  const size_t value_dim = static_cast<size_t>(args.value_dim);
  const size_t kv_heads = static_cast<size_t>(args.kv_heads);
  const size_t ldk = static_cast<size_t>(args.ldk), ldv = static_cast<size_t>(args.ldv);
  const size_t rows = static_cast<size_t>(args.rows);
  for (size_t row = 0; row < rows;) {
    const size_t position = static_cast<size_t>(args.position) + row;
    const size_t slot = position % kBlock;
    size_t block = position / kBlock;
    if (args.blocks != nullptr) block = static_cast<size_t>(args.blocks[block]);
    // Only slots of these rows are written: another thread may be writing their neighbours.
    const size_t count = (slot % 4 == 0 && rows - row >= 4) ? 4 : 1;
    for (int64_t g = args.head_begin; g < args.head_end; ++g) {
      const size_t source = static_cast<size_t>(g - args.head_begin);
      const size_t head = (block * kv_heads + static_cast<size_t>(g)) * kBlock;
      const float* k = args.k + row * ldk + source * key_dim;
      float* to_k = args.packed_k + head * key_dim + slot;
      if (count == 4) {
        TransposeFourRows(k, ldk, key_dim, to_k);
      } else {
        for (size_t a = 0; a < key_dim; ++a) to_k[a * kBlock] = k[a];
      }
      for (size_t r = 0; r < count; ++r) {
        CopyRow(d, args.v + (row + r) * ldv + source * value_dim, value_dim,
                args.packed_v + (head + slot + r) * value_dim);
      }
    }
    row += count;
  }
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
