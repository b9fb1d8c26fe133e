// Packed linear layers: C = A W^T + b by oneDNN. The only files that know oneDNN are kernels/gemm*.
#ifndef ATTEND_KERNELS_GEMM_H_
#define ATTEND_KERNELS_GEMM_H_

#include "attend/status.h"
#include "kernels/isa.h"

namespace attend {

// Limits oneDNN to `isa`; called by LimitIsa and BoundIsa before oneDNN is used.
// Error: kBusy if oneDNN has already fixed another one.
Status LimitGemmIsa(Isa isa);

// "oneDNN 2.6.3".
const char* GemmLibraryVersion();

}  // namespace attend

#endif  // ATTEND_KERNELS_GEMM_H_
