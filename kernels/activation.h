// Activation functions, row by row. f(-inf) is the limit, 0 (tanh: -1); NaN stays NaN; an element's
// bits depend on that element alone.
#ifndef ATTEND_KERNELS_ACTIVATION_H_
#define ATTEND_KERNELS_ACTIVATION_H_

#include <cstdint>

namespace attend {

// out = f(x + bias); x, out [R, N; ld], bias [N] or null. out may be x.
struct ActivationArgs {
  const float* x = nullptr;
  const float* bias = nullptr;
  float* out = nullptr;
  int64_t rows = 0, width = 0, ldx = 0, ld_out = 0;
};
using ActivationFn = void (*)(const ActivationArgs&);

// x * Phi(x), the exact one (erf). Error: 5e-7 + 2e-7 |f|; where |x| < 0.25, 2e-6 |f|.
ActivationFn BindGelu();
// The same for what is rounded to bf16 or int8 next, in two thirds of the time. Error: 1.6e-5;
// where |x| < 0.25, 3e-4 |f|.
ActivationFn BindRoughGelu();
// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Error: 1e-7 + 1e-6 |f|.
ActivationFn BindGeluTanh();
// max(x, 0). Exact.
ActivationFn BindRelu();
// x / (1 + exp(-x)). Error: 1e-7 + 5e-7 |f|.
ActivationFn BindSilu();
// Error: 4e-7 |f|.
ActivationFn BindTanh();

// out = act(gate) * up; all [R, N; ld]. out may be gate. Error: that of act, times up.
struct GatedArgs {
  const float* gate = nullptr;
  const float* up = nullptr;
  float* out = nullptr;
  int64_t rows = 0, width = 0, ld_gate = 0, ld_up = 0, ld_out = 0;
};
using GatedFn = void (*)(const GatedArgs&);
GatedFn BindGeglu();
GatedFn BindGegluTanh();
GatedFn BindSwiglu();
GatedFn BindReglu();

}  // namespace attend

#endif  // ATTEND_KERNELS_ACTIVATION_H_
