// Activation functions, in place, row by row.
#ifndef ATTEND_KERNELS_ACTIVATION_H_
#define ATTEND_KERNELS_ACTIVATION_H_

#include <cstdint>

namespace attend {

// x [R, N; ldx], replaced by f(x + bias); bias [N] or null.
struct ActivationArgs {
  float* x = nullptr;
  const float* bias = nullptr;
  int64_t rows = 0, width = 0, ldx = 0;
};
using ActivationFn = void (*)(const ActivationArgs&);

ActivationFn BindGelu();      // x * Phi(x), the exact one (erf)
ActivationFn BindGeluTanh();  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
ActivationFn BindRelu();
ActivationFn BindSilu();      // x / (1 + exp(-x))
ActivationFn BindTanh();

// out = act(gate) * up; all [R, N; ld]. out may be gate.
struct GatedArgs {
  const float* gate = nullptr;
  const float* up = nullptr;
  float* out = nullptr;
  int64_t rows = 0, width = 0, ld_gate = 0, ld_up = 0, ld_out = 0;
};
using GatedFn = void (*)(const GatedArgs&);
GatedFn BindGeglu();
GatedFn BindSwiglu();

}  // namespace attend

#endif  // ATTEND_KERNELS_ACTIVATION_H_
