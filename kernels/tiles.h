// The tile unit of a CPU with AMX, instruction by instruction. A thread has eight tiles, 0 to 7, of
// up to 16 rows of up to 64 bytes. TileUse gives them their shapes, for as long as it lives.
//
// In assembly, since the compiler's names for them need a target that Highway 1.0.3 does not have.
// Requires BoundIsa() >= kAmx; without it each is an illegal instruction.
#ifndef ATTEND_KERNELS_TILES_H_
#define ATTEND_KERNELS_TILES_H_

#include <cstddef>
#include <cstdint>

namespace attend {

inline constexpr size_t kTileRows = 16;
inline constexpr size_t kTileRowBytes = 64;
inline constexpr size_t kTileBytes = kTileRows * kTileRowBytes;
inline constexpr size_t kTileFloats = kTileRowBytes / sizeof(float);  // of a row

// The operand of ldtilecfg.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  // Tiles [first, end).
  void Set(size_t first, size_t end, size_t tile_rows, size_t tile_row_bytes = kTileRowBytes) {
    for (size_t i = first; i < end; ++i) {
      row_bytes[i] = static_cast<uint16_t>(tile_row_bytes);
      rows[i] = static_cast<uint8_t>(tile_rows);
    }
  }
};
static_assert(sizeof(TileShapes) == 64);

class TileUse {
 public:
  TileUse() = default;
  ~TileUse() { asm volatile("tilerelease" : : : "memory"); }
  TileUse(const TileUse&) = delete;
  TileUse& operator=(const TileUse&) = delete;

  // What lies in the tiles is lost.
  static void Shape(const TileShapes& shapes) {
    asm volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
  }
};

template <int kTile>
inline void ZeroTile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile) : "memory");
}

// Rows that stand `stride` bytes apart.
template <int kTile>
inline void LoadTile(const void* rows, size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void StoreTile(void* rows, size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
}

// Tile kSum [R][C] of floats += rows kA [R][P] times columns kB [P][C] of pairs of bf16.
template <int kSum, int kA, int kB>
inline void AddTileBf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB) : "memory");
}
// Tile kSum [R][C] of int32 += rows kA [R][Q] times columns kB [Q][C] of quads of int8.
template <int kSum, int kA, int kB>
inline void AddTileInt8() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB) : "memory");
}

}  // namespace attend

#endif  // ATTEND_KERNELS_TILES_H_
