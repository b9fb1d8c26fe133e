// The instruction set of this process: one, chosen before the first kernel is bound.
#ifndef ATTEND_KERNELS_ISA_H_
#define ATTEND_KERNELS_ISA_H_

#include <string_view>
#include <vector>

#include "attend/status.h"

namespace attend {

// Worst first. kAmx has all that kAvx512Bf16 has, and tiles.
enum class Isa : int { kSse4 = 0, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

const char* IsaName(Isa isa);                 // "sse4", "avx2", "avx512", ...
Result<Isa> ParseIsa(std::string_view name);  // kInvalidArgument, with the names that there are

// "Highway 1.0.3".
const char* SimdLibraryVersion();

// What this CPU and operating system can run, worst first. Never empty on a CPU that can run
// attend.
std::vector<Isa> SupportedIsas();

// Limits this process to `isa`: Highway's targets and oneDNN's both.
// Errors: kUnsupported (the CPU lacks it), kBusy (another one is already bound).
Status LimitIsa(Isa isa);

// The ISA in use. The first call fixes it: every Bind function calls it.
Isa BoundIsa();
// The ISA that BoundIsa would fix, without fixing it.
Isa ChosenIsa();

// After BoundIsa: whether oneDNN computes with no more than it. Not so where the program had used
// oneDNN before, with another instruction set.
bool GemmFollowsIsa();

// Tests only: rebinds the Highway kernels to another ISA within one process.
void SetIsaForTest(Isa isa);

}  // namespace attend

#endif  // ATTEND_KERNELS_ISA_H_
