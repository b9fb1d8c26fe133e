#include "kernels/embedding.h"

#include <cstring>

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// An element type is a type with Load: kLanes elements widened to f32. Every widening is exact.

struct LoadF32 {
  using Element = float;
  static HWY_INLINE VF Load(F32 d, const float* p, VF /*scale*/) { return hn::LoadU(d, p); }
};

struct LoadBf16 {
  using Element = uint16_t;
  static HWY_INLINE VF Load(F32 d, const uint16_t* p, VF /*scale*/) {
    const hn::Repartition<uint32_t, F32> d32;
    const hn::Rebind<uint16_t, F32> d16;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, p))));
  }
};

// By integer operations on every target: Highway's SSE4 version makes numbers of inf and NaN.
struct LoadF16 {
  using Element = uint16_t;
  static HWY_INLINE VF Load(F32 d, const uint16_t* p, VF /*scale*/) {
    const hn::Repartition<uint32_t, F32> d32;
    const hn::Rebind<uint16_t, F32> d16;
    const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, p));
    const auto magnitude = hn::And(bits, hn::Set(d32, 0x7FFFu));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    // Exponent and fraction at their f32 places; 2^112 corrects the bias, denormals included.
    const VF scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 0x1p112f));
    // 0x7C00 and above is inf or NaN: all bits of the exponent.
    const auto special = hn::VecFromMask(d32, hn::Gt(magnitude, hn::Set(d32, 0x7BFFu)));
    const auto exponent = hn::And(special, hn::Set(d32, 0x7F800000u));
    return hn::BitCast(d, hn::Or(hn::Or(hn::BitCast(d32, scaled), exponent), sign));
  }
};

struct LoadI8 {
  using Element = int8_t;
  static HWY_INLINE VF Load(F32 d, const int8_t* p, VF scale) {
    const hn::RebindToSigned<F32> d32;
    const hn::Rebind<int8_t, F32> d8;
    return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, p))), scale);
  }
};

// How the elements of a row become numbers.
struct Widening {
  TableType type;
  float scale;   // kI8
  float factor;  // 1 changes no bit
};

// out = (or +=) the `count` elements at `data`, widened, times the factor.
template <class Type, bool kAdd>
HWY_INLINE void WidenRow(const void* data, size_t offset, const Widening& how, float* out,
                         size_t count) {
  using T = typename Type::Element;
  const F32 d;
  const VF scale = hn::Set(d, how.scale), factor = hn::Set(d, how.factor);
  const T* x = static_cast<const T*>(data) + offset;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    VF y = hn::Mul(Type::Load(d, x + i, scale), factor);
    if constexpr (kAdd) y = hn::Add(hn::LoadU(d, out + i), y);
    hn::StoreU(y, d, out + i);
  }
  if (i < count) {
    const size_t n = count - i;
    T lanes[kLanes] = {};
    std::memcpy(lanes, x + i, n * sizeof(T));
    VF y = hn::Mul(Type::Load(d, lanes, scale), factor);
    if constexpr (kAdd) y = hn::Add(LoadTail(d, out + i, n), y);
    StoreTail(y, d, out + i, n);
  }
}

template <bool kAdd>
void WidenAny(const void* data, size_t offset, const Widening& how, float* out, size_t count) {
  switch (how.type) {
    case TableType::kF32:
      return WidenRow<LoadF32, kAdd>(data, offset, how, out, count);
    case TableType::kF16:
      return WidenRow<LoadF16, kAdd>(data, offset, how, out, count);
    case TableType::kBf16:
      return WidenRow<LoadBf16, kAdd>(data, offset, how, out, count);
    case TableType::kI8:
      return WidenRow<LoadI8, kAdd>(data, offset, how, out, count);
  }
}

void Embedding(const EmbeddingArgs& args) {
  const size_t width = static_cast<size_t>(args.width);
  for (int64_t row = 0; row < args.rows; ++row) {
    float* out = args.out + row * args.ld_out;
    bool written = false;
    for (int t = 0; t < 3; ++t) {
      const EmbeddingTable& table = args.tables[t];
      if (table.data == nullptr) continue;
      const size_t index = args.index[t] == nullptr ? 0 : static_cast<size_t>(args.index[t][row]);
      const Widening how = {table.type, table.type == TableType::kI8 ? table.scale[index] : 1.0f,
                            table.factor};
      if (written) {
        WidenAny<true>(table.data, index * width, how, out, width);
      } else {
        WidenAny<false>(table.data, index * width, how, out, width);
      }
      written = true;
    }
    if (!written) std::memset(out, 0, width * sizeof(float));
  }
}

void Widen(const WidenArgs& args) {
  WidenAny<false>(args.data, 0, {args.type, args.scale, 1.0f}, args.out,
                  static_cast<size_t>(args.count));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Embedding);
HWY_EXPORT(Widen);
EmbeddingFn BindEmbedding() { return ATTEND_BIND(Embedding); }
WidenFn BindWiden() { return ATTEND_BIND(Widen); }

}  // namespace attend
#endif  // HWY_ONCE
