#include "kernels/activation.h"

#include "kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

// A function is a type with Apply, so that the loops below are written once and inline it.

struct GeluOp {
  static HWY_INLINE VF Apply(F32 d, VF x) { return Gelu(d, x); }
};

// x sigmoid(y): below -1e4 the sigmoid is 0 and x must not be -inf, or the product is NaN.
HWY_INLINE VF TimesSigmoid(F32 d, VF x, VF y) {
  return hn::Mul(hn::Max(hn::Set(d, -1e4f), x), Sigmoid(d, y));
}

struct RoughGeluOp {
  static HWY_INLINE VF Apply(F32 d, VF x) { return RoughGelu(d, x); }
};

// 0.5 (1 + tanh z) is sigmoid(2 z), which keeps its relative precision where tanh z is near -1.
struct GeluTanhOp {
  static HWY_INLINE VF Apply(F32 d, VF x) {
    const VF cubic = hn::Mul(hn::Mul(x, x), hn::Set(d, 0.0713548163f));  // 2 sqrt(2/pi) 0.044715
    return TimesSigmoid(d, x, hn::Mul(x, hn::Add(cubic, hn::Set(d, 1.59576912f))));
  }
};

struct ReluOp {
  // Max returns its second operand if one is NaN.
  static HWY_INLINE VF Apply(F32 d, VF x) { return hn::Max(hn::Zero(d), x); }
};

struct SiluOp {
  static HWY_INLINE VF Apply(F32 d, VF x) { return TimesSigmoid(d, x, x); }
};

struct TanhOp {
  static HWY_INLINE VF Apply(F32 d, VF x) { return Tanh(d, x); }
};

template <class Op, bool kBias>
HWY_INLINE void ActivateRow(F32 d, const float* x, const float* bias, float* out, size_t width) {
  size_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    VF v = hn::LoadU(d, x + i);
    if constexpr (kBias) v = hn::Add(v, hn::LoadU(d, bias + i));
    hn::StoreU(Op::Apply(d, v), d, out + i);
  }
  if (i < width) {
    const size_t n = width - i;
    VF v = LoadTail(d, x + i, n);
    if constexpr (kBias) v = hn::Add(v, LoadTail(d, bias + i, n));
    StoreTail(Op::Apply(d, v), d, out + i, n);
  }
}

template <class Op>
HWY_INLINE void Activate(const ActivationArgs& args) {
  const F32 d;
  const size_t width = static_cast<size_t>(args.width);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.ldx;
    float* out = args.out + row * args.ld_out;
    if (args.bias != nullptr) {
      ActivateRow<Op, true>(d, x, args.bias, out, width);
    } else {
      ActivateRow<Op, false>(d, x, nullptr, out, width);
    }
  }
}

template <class Op>
HWY_INLINE void Gate(const GatedArgs& args) {
  const F32 d;
  const size_t width = static_cast<size_t>(args.width);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* gate = args.gate + row * args.ld_gate;
    const float* up = args.up + row * args.ld_up;
    float* out = args.out + row * args.ld_out;
    size_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      const VF y = Op::Apply(d, hn::LoadU(d, gate + i));
      hn::StoreU(hn::Mul(y, hn::LoadU(d, up + i)), d, out + i);
    }
    if (i < width) {
      const size_t n = width - i;
      const VF y = Op::Apply(d, LoadTail(d, gate + i, n));
      StoreTail(hn::Mul(y, LoadTail(d, up + i, n)), d, out + i, n);
    }
  }
}

void ActivateGelu(const ActivationArgs& args) { Activate<GeluOp>(args); }
void ActivateRoughGelu(const ActivationArgs& args) { Activate<RoughGeluOp>(args); }
void ActivateGeluTanh(const ActivationArgs& args) { Activate<GeluTanhOp>(args); }
void ActivateRelu(const ActivationArgs& args) { Activate<ReluOp>(args); }
void ActivateSilu(const ActivationArgs& args) { Activate<SiluOp>(args); }
void ActivateTanh(const ActivationArgs& args) { Activate<TanhOp>(args); }
void GateGelu(const GatedArgs& args) { Gate<GeluOp>(args); }
void GateGeluTanh(const GatedArgs& args) { Gate<GeluTanhOp>(args); }
void GateSilu(const GatedArgs& args) { Gate<SiluOp>(args); }
void GateRelu(const GatedArgs& args) { Gate<ReluOp>(args); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(ActivateGelu);
HWY_EXPORT(ActivateRoughGelu);
HWY_EXPORT(ActivateGeluTanh);
HWY_EXPORT(ActivateRelu);
HWY_EXPORT(ActivateSilu);
HWY_EXPORT(ActivateTanh);
HWY_EXPORT(GateGelu);
HWY_EXPORT(GateGeluTanh);
HWY_EXPORT(GateSilu);
HWY_EXPORT(GateRelu);
ActivationFn BindGelu() { return ATTEND_BIND(ActivateGelu); }
ActivationFn BindRoughGelu() { return ATTEND_BIND(ActivateRoughGelu); }
ActivationFn BindGeluTanh() { return ATTEND_BIND(ActivateGeluTanh); }
ActivationFn BindRelu() { return ATTEND_BIND(ActivateRelu); }
ActivationFn BindSilu() { return ATTEND_BIND(ActivateSilu); }
ActivationFn BindTanh() { return ATTEND_BIND(ActivateTanh); }
GatedFn BindGeglu() { return ATTEND_BIND(GateGelu); }
GatedFn BindGegluTanh() { return ATTEND_BIND(GateGeluTanh); }
GatedFn BindSwiglu() { return ATTEND_BIND(GateSilu); }
GatedFn BindReglu() { return ATTEND_BIND(GateRelu); }

}  // namespace attend
#endif  // HWY_ONCE
