// The tile unit of AMX in software, for a CPU that has none: its instructions are illegal there,
// and what catches them computes what they are defined to compute (Intel's Software Developer's
// Manual, volume 2). Kernels are then right or wrong as on such a CPU; how fast they are is not
// seen.
#ifndef ATTEND_TESTS_TILE_EMULATOR_H_
#define ATTEND_TESTS_TILE_EMULATOR_H_

#include <cstdint>

namespace attend::testing {

// Catches SIGILL from now on. False where this CPU lacks what kernels with tiles use besides them
// (AVX-512 BF16).
bool EmulateTiles();

// Tile instructions emulated so far, on all threads.
int64_t EmulatedTileInstructions();

}  // namespace attend::testing

#endif  // ATTEND_TESTS_TILE_EMULATOR_H_
