// Packed linear layers: C = A W^T + b. In f32 by oneDNN on Intel's AVX-512, elsewhere and in bf16
// and int8 by kernels of our own (kernels/gemm_highway.h). The only files that know oneDNN are
// kernels/gemm*.
//
// N, the output columns, is cut into panels that depend on (N, K) alone; a panel of packed weights
// stays in L2 while all rows of a tile pass it. oneDNN gets the rows in a few fixed counts, a tail
// in the next count with padding, so that the bits of an output row depend on that row, the
// weights, the type and the ISA alone (docs/performance.md, "The row rule").
#ifndef ATTEND_KERNELS_GEMM_H_
#define ATTEND_KERNELS_GEMM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "attend/status.h"
#include "kernels/aligned.h"
#include "kernels/gemm_type.h"
#include "kernels/isa.h"

namespace attend {

// Limits oneDNN to `isa`; called by LimitIsa and BoundIsa before oneDNN is used.
// Error: kBusy if oneDNN has already fixed another one.
Status LimitGemmIsa(Isa isa);

// Tests only: oneDNN on every CPU with AVX-512, from the next LinearKernel on.
void UseOneDnnForTest();

// "oneDNN 2.6.3".
const char* GemmLibraryVersion();

// How N is cut: `count` panels of `width` columns, the last one `last` wide.
struct Panels {
  int64_t width = 0;
  int64_t count = 0;
  int64_t last = 0;
  int64_t begin(int64_t panel) const { return panel * width; }
  int64_t columns(int64_t panel) const { return panel + 1 == count ? last : width; }
};

// The panels of a linear layer [N, K]; with `width` > 0 that width (heads that belong together).
Panels CutPanels(int64_t n, int64_t k, int64_t width = 0);

// How many rows RunPanel reads of A and writes of C for `rows`: rows rounded up by the row rule.
int64_t PaddedRows(int64_t rows);

class LinearKernel;

// The weights of one layer, packed for the process's ISA. Read-only, shared by threads.
class PackedLinear {
 public:
  // Fills `out` [columns, K] with the rows `begin` .. of W [N, K] (begin counts output columns).
  using FillRows = std::function<void(int64_t begin, int64_t columns, float* out)>;

  // Packs W panel by panel into memory of `pool`, or of its own. `bias` [N], or empty for zeros.
  // Errors: kCapacity (memory), kInternal (oneDNN refused: says what).
  static Result<std::shared_ptr<const PackedLinear>> Pack(
      const LinearKernel& kernel, const FillRows& fill, std::span<const float> bias,
      std::shared_ptr<AlignedPool> pool = nullptr);
  ~PackedLinear();
  size_t bytes() const { return bytes_; }
  const float* weights(int64_t panel) const { return data_ + panel * panel_stride_; }
  const float* bias(int64_t panel) const { return bias_ + panel * panel_width_; }

 private:
  PackedLinear() = default;
  std::shared_ptr<AlignedPool> pool_;
  float* data_ = nullptr;
  const float* bias_ = nullptr;
  int64_t panel_stride_ = 0;
  int64_t panel_width_ = 0;
  size_t bytes_ = 0;
};

// The bound kernels of a shape [N, K]: one primitive a row count and panel width. Made once at
// Create; thread-safe to read.
class LinearKernel {
 public:
  // Errors: kInternal (oneDNN refused: says what), kCapacity.
  static Result<std::shared_ptr<const LinearKernel>> Create(int64_t n, int64_t k, Panels panels,
                                                            GemmType type = GemmType::kF32);
  ~LinearKernel();

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  GemmType type() const { return type_; }
  const Panels& panels() const { return panels_; }
  // "f32 attend:avx2", "int8 attend:avx2", or oneDNN's name: "f32 brg:avx512_core". Of bf16 also
  // where there is no bf16 unit.
  const char* implementation() const;

  // What LinearRunner is to be given for the rows of x [rows, K]: x itself, or `prepared`
  // [rows, prepared_floats()] filled with them rounded or quantised. Once for all panels.
  const float* Prepare(int64_t rows, const float* x, float* prepared) const;
  int64_t prepared_floats() const;
  // The same for columns [begin, begin + columns) of K alone, of x [rows, columns; ldx], where
  // prepared_floats() > 0: for whoever computes x in panels. `begin` and `columns` are multiples of
  // 64, but where K ends.
  void PrepareColumns(int64_t rows, const float* x, int64_t ldx, int64_t begin, int64_t columns,
                      float* prepared) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  LinearKernel() = default;
  int64_t n_ = 0, k_ = 0;
  GemmType type_ = GemmType::kF32;
  Panels panels_;
  std::unique_ptr<Impl> impl_;
};

// What one thread needs to run a LinearKernel: oneDNN's argument objects and scratchpad.
class LinearRunner {
 public:
  static Result<std::unique_ptr<LinearRunner>> Create(std::shared_ptr<const LinearKernel> kernel);
  ~LinearRunner();

  // C = A W^T + b for the columns of one panel.
  // Shapes: a, as LinearKernel::Prepare returned it for rows of x [PaddedRows(rows), K], and
  // c [PaddedRows(rows), panels().columns(panel)], both dense; in f32 the rows behind `rows` are
  // read and written, and mean nothing.
  // Threads: one runner a thread. Run inside a parallel region, or with OpenMP set to one thread.
  void RunPanel(const PackedLinear& weights, int64_t panel, int64_t rows, const float* a, float* c);

  size_t bytes() const;

 private:
  LinearRunner() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attend

#endif  // ATTEND_KERNELS_GEMM_H_
