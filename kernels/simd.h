// What every vectorised kernel file includes first: the targets that are compiled, and how the
// function of the bound ISA is taken. kernels/README.md shows the anatomy of such a file.
#ifndef ATTEND_KERNELS_SIMD_H_
#define ATTEND_KERNELS_SIMD_H_

// Exactly three targets: SSE4 (the floor, x86-64-v2), AVX2 with FMA, and AVX3 (AVX-512 F, BW, DQ,
// VL). AVX3_DL is left out because its pragma in Highway 1.0.3 enables avxvnni, which many CPUs
// with avx512_vnni lack: one VEX vpdpbusd there is an illegal instruction.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_EMU128 | HWY_SCALAR)

#include <cstddef>

#include "hwy/detect_targets.h"
#include "hwy/targets.h"
#include "kernels/isa.h"

// A stronger -march would make the static target stronger than the floor, and the library would no
// longer run where it promises to.
static_assert(HWY_TARGETS == (HWY_SSE4 | HWY_AVX2 | HWY_AVX3));
static_assert(HWY_STATIC_TARGET == HWY_SSE4);

namespace attend {

// The Highway targets that `isa` allows, as a mask.
constexpr int64_t HighwayTargets(Isa isa) {
  if (isa >= Isa::kAvx512) return HWY_SSE4 | HWY_AVX2 | HWY_AVX3;
  if (isa == Isa::kAvx2) return HWY_SSE4 | HWY_AVX2;
  return HWY_SSE4;
}

// The entry of a HWY_EXPORT table that belongs to the bound ISA. Highway's own process-wide choice
// (hwy::GetChosenTarget) is left alone: a program around this library may use it for itself.
inline size_t BoundTableIndex() {
  hwy::ChosenTarget chosen;
  chosen.Update(HighwayTargets(BoundIsa()));
  return chosen.GetIndex();
}

}  // namespace attend

// The pointer to FUNCTION as compiled for the bound ISA; HWY_EXPORT(FUNCTION) comes before.
#define ATTEND_BIND(FUNCTION) (HWY_DISPATCH_TABLE(FUNCTION)[::attend::BoundTableIndex()])

#endif  // ATTEND_KERNELS_SIMD_H_
