// What the stages of attention share: the head in work, and the state of its rows.
// Included once per target, as math-inl.h is.
#if defined(ATTEND_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ATTENTION_INL_H_
#undef ATTEND_KERNELS_ATTENTION_INL_H_
#else
#define ATTEND_KERNELS_ATTENTION_INL_H_
#endif

#include <cstddef>
#include <limits>

#include "kernels/attention_keys.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr size_t kBlock = static_cast<size_t>(kKeyBlock);
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kLog2E = 1.44269504f;

static_assert(kMostRows <= kMaxAttentionRows);

// One head of one call.
struct Head {
  const AttentionArgs* args;
  int64_t row;                // of the call: the first of the rows in work
  const float* q;             // its queries
  float* out;                 // its output
  size_t key_dim, value_dim;  // A, E
  // What scores are multiplied by: log2 e under those normalisers that take a power, so that it is
  // one of two, else 1.
  float unit;
  float scale;            // of the dot product, times `unit`
  const float* additive;  // [A], or null
  float additive_sum;     // of them
  // Biases, each null or not there: see AttentionSpec and AttentionArgs.
  const float* alibi_slope;
  const float* distance_bias;
  const float* dense_bias;  // row 0 of the call
  size_t* tile_rows;        // that tiles are shaped for, if any
};

// What multiplies: floats; pairs of bf16, by AVX-512's unit; the same, by tiles of AMX.
enum class Unit { kFloats, kPairs, kTiles };

// Adds columns times an element of a row to sums: floats, or pairs of bf16.
template <bool kPairs>
HWY_INLINE void AddProduct(VF columns, const float* element, VF& sum) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kPairs) {
    AddPairProducts(columns, element, sum);
    return;
  }
#endif
  sum = hn::MulAdd(columns, hn::Set(F32(), *element), sum);
}

// What is known of the rows in work so far.
struct RowStates {
  float most[kMaxAttentionRows];     // largest score
  float sum[kMaxAttentionRows];      // of the weights, relative to `most`
  float rescale[kMaxAttentionRows];  // what earlier sums are to be multiplied by
  float factor[kMaxAttentionRows];   // what the sums are multiplied by when they are stored
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // ATTEND_KERNELS_ATTENTION_INL_H_
