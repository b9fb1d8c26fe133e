// oneDNN's own packed GEMM in any precision: what rates are held against. The engine uses it for
// some (kernels/gemm.h), the bench harness measures it wherever it exists.
#ifndef ATTEND_BENCH_HARNESS_ONEDNN_GEMM_H_
#define ATTEND_BENCH_HARNESS_ONEDNN_GEMM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "attend/attend.h"

namespace attend::bench {

// C [rows, n] = A [rows, k] W [k, n], no bias: of f32, of bf16 with C in f32, or of int8 with C in
// f32 after a scale for each column. Numbers are small ones that a bench may multiply.
class OneDnnGemm {
 public:
  // Null where oneDNN has no fast one (its reference, or none at all). Threads: none of its own in
  // a process whose OpenMP has one thread.
  static std::unique_ptr<OneDnnGemm> Create(Precision precision, int64_t rows, int64_t n,
                                            int64_t k);
  virtual ~OneDnnGemm() = default;
  virtual void Run() = 0;
  // "oneDNN brg:avx512_core_vnni".
  virtual std::string name() const = 0;
};

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_ONEDNN_GEMM_H_
