#include "tests/tile_emulator.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>

#include "kernels/isa.h"

namespace attend::testing {
namespace {

// What LDTILECFG reads, and the tiles, of one thread.
struct Tiles {
  uint8_t config[64];
  uint8_t data[8][16][64];

  int rows(int tile) const { return config[48 + tile]; }
  int row_bytes(int tile) const { return config[16 + 2 * tile] | config[17 + 2 * tile] << 8; }
};
// initial-exec: a signal handler must not allocate.
__attribute__((tls_model("initial-exec"))) thread_local Tiles t_tiles;
std::atomic<int64_t> g_count{0};

// A VEX instruction of three prefix bytes, as far as tiles need it.
struct Decoded {
  int map, prefix, opcode, mod, reg, rm, vvvv;
  bool wide, x, b;
  int length;
  const uint8_t* address = nullptr;  // of its memory operand
  int64_t stride = 0;                // the index register, scaled
};

int64_t Register(const ucontext_t& context, int number) {
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};
  return context.uc_mcontext.gregs[kOrder[number]];
}

bool Decode(const ucontext_t& context, Decoded* d) {
  const auto* const code = reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
  if (code[0] != 0xC4) return false;
  d->x = (code[1] & 0x40) == 0;
  d->b = (code[1] & 0x20) == 0;
  d->map = code[1] & 0x1F;
  d->wide = (code[2] & 0x80) != 0;
  d->vvvv = ~(code[2] >> 3) & 15;
  d->prefix = code[2] & 3;
  d->opcode = code[3];
  d->mod = code[4] >> 6;
  d->reg = code[4] >> 3 & 7;
  d->rm = code[4] & 7;
  d->length = 5;
  if ((code[1] & 0x80) == 0 || (code[2] & 4) != 0) return false;  // R, or 256 bits
  if (d->mod == 3) return true;
  int64_t address = 0;
  int base = d->rm;
  if (d->rm == 4) {
    const int sib = code[d->length++];
    const int index = (sib >> 3 & 7) | (d->x ? 8 : 0);
    base = sib & 7;
    if (index != 4) d->stride = Register(context, index) << (sib >> 6);
  }
  const bool none = base == 5 && d->mod == 0;
  if (none && d->rm != 4) return false;  // relative to the instruction: filled in below if needed
  if (!none) address += Register(context, base | (d->b ? 8 : 0));
  if (d->mod == 1) {
    address += static_cast<int8_t>(code[d->length++]);
  } else if (d->mod == 2 || none) {
    int32_t displacement;
    std::memcpy(&displacement, code + d->length, 4);
    address += displacement;
    d->length += 4;
  }
  d->address = reinterpret_cast<const uint8_t*>(address);
  return true;
}

// The sums of row m for all 16 columns, of which those that there are count.
#define ATTEND_WITH_AVX512 __attribute__((target("avx512f,avx512bw,fma"), optimize("O3")))

ATTEND_WITH_AVX512 void WidenBf16(const uint8_t (*tile)[64], int half, float (*to)[16]) {
  for (int row = 0; row < 16; ++row) {
    for (int i = 0; i < 16; ++i) {
      uint32_t pair;
      std::memcpy(&pair, &tile[row][4 * i], 4);
      to[row][i] = std::bit_cast<float>(half == 0 ? pair << 16 : pair & 0xFFFF0000u);
    }
  }
}

// The firsts of all pairs and the seconds have sums of their own, which then come to what was there
// together. Denormals count, and become, zero: see OnIllegalInstruction.
ATTEND_WITH_AVX512 void MultiplyBf16(Tiles& t, int dst, int a, int b, int rows, int depth) {
  alignas(64) float a_first[16][16], a_second[16][16], b_first[16][16], b_second[16][16];
  WidenBf16(t.data[a], 0, a_first);
  WidenBf16(t.data[a], 1, a_second);
  WidenBf16(t.data[b], 0, b_first);
  WidenBf16(t.data[b], 1, b_second);
  for (int m = 0; m < rows; ++m) {
    alignas(64) float first[16] = {}, second[16] = {}, sums[16];
    for (int k = 0; k < depth; ++k) {
      for (int n = 0; n < 16; ++n) {
        first[n] = __builtin_fmaf(a_first[m][k], b_first[k][n], first[n]);
      }
      for (int n = 0; n < 16; ++n) {
        second[n] = __builtin_fmaf(a_second[m][k], b_second[k][n], second[n]);
      }
    }
    std::memcpy(sums, t.data[dst][m], 64);
    for (int n = 0; n < 16; ++n) sums[n] += first[n] + second[n];
    std::memcpy(t.data[dst][m], sums, static_cast<size_t>(t.row_bytes(dst)));
  }
}

ATTEND_WITH_AVX512 void MultiplyInt8(Tiles& t, int dst, int a, int b, int rows, int depth) {
  for (int m = 0; m < rows; ++m) {
    alignas(64) uint32_t sums[16];
    std::memcpy(sums, t.data[dst][m], 64);
    for (int k = 0; k < 4 * depth; ++k) {
      const int32_t element = static_cast<int8_t>(t.data[a][m][k]);
      const uint8_t* const column = &t.data[b][k / 4][k % 4];
      for (int n = 0; n < 16; ++n) {
        sums[n] += static_cast<uint32_t>(element * static_cast<int8_t>(column[4 * n]));
      }
    }
    std::memcpy(t.data[dst][m], sums, static_cast<size_t>(t.row_bytes(dst)));
  }
}

// dst += a b. False where the hardware would refuse the shapes.
bool Multiply(Tiles& t, int dst, int a, int b, bool bf16) {
  const int rows = t.rows(dst), depth = t.row_bytes(a) / 4;
  if (rows == 0 || depth == 0) return false;
  if (t.rows(a) != rows || t.rows(b) != depth || t.row_bytes(b) != t.row_bytes(dst)) return false;
  if (dst == a || dst == b || a == b) return false;
  if (t.row_bytes(a) % 4 != 0 || t.row_bytes(dst) % 4 != 0) return false;
  if (bf16) {
    MultiplyBf16(t, dst, a, b, rows, depth);
  } else {
    MultiplyInt8(t, dst, a, b, rows, depth);
  }
  return true;
}

bool Configure(Tiles& t, const uint8_t* from) {
  std::memcpy(t.config, from, 64);
  std::memset(t.data, 0, sizeof t.data);
  if (from[0] != 1 || from[1] != 0) return false;
  for (int i = 2; i < 64; ++i) {
    const bool used = (i >= 16 && i < 32) || (i >= 48 && i < 56);
    if (!used && from[i] != 0) return false;
  }
  for (int tile = 0; tile < 8; ++tile) {
    if (t.rows(tile) > 16 || t.row_bytes(tile) > 64) return false;
    if ((t.rows(tile) == 0) != (t.row_bytes(tile) == 0)) return false;
  }
  return true;
}

// Prefixes: none, 66, F3, F2.
bool Execute(const Decoded& d, Tiles& t) {
  if (d.map != 2 || d.wide) return false;
  const bool memory = d.mod != 3;
  if (d.opcode == 0x49) {
    if (!memory && d.prefix == 0) {  // TILERELEASE
      std::memset(&t, 0, sizeof t);
      return true;
    }
    if (memory && d.prefix == 0) return Configure(t, d.address);
    if (!memory && d.prefix == 3) {  // TILEZERO
      std::memset(t.data[d.reg], 0, sizeof t.data[d.reg]);
      return t.config[0] == 1 && t.rows(d.reg) > 0;
    }
    return false;
  }
  if (t.config[0] != 1) return false;
  if (d.opcode == 0x4B && memory) {
    const int bytes = t.row_bytes(d.reg);
    if (bytes == 0) return false;
    for (int row = 0; row < t.rows(d.reg); ++row) {
      const uint8_t* const at = d.address + row * d.stride;
      if (d.prefix == 2) {
        std::memcpy(const_cast<uint8_t*>(at), t.data[d.reg][row], bytes);
      } else {
        std::memset(t.data[d.reg][row], 0, 64);
        std::memcpy(t.data[d.reg][row], at, bytes);
      }
    }
    return true;
  }
  // The modrm's register is the sum, its other one the rows, that of the prefix the columns.
  if (d.opcode == 0x5C && !memory && d.prefix == 2) return Multiply(t, d.reg, d.rm, d.vvvv, true);
  if (d.opcode == 0x5E && !memory && d.prefix == 3) return Multiply(t, d.reg, d.rm, d.vvvv, false);
  return false;
}

void OnIllegalInstruction(int number, siginfo_t* /*info*/, void* context_pointer) {
  auto& context = *static_cast<ucontext_t*>(context_pointer);
  // The unit rounds to the nearest and knows no denormals, whatever the thread has set, which comes
  // back when this returns.
  constexpr unsigned kExceptionsMasked = 0x1F80, kFlushToZero = 0x8000, kDenormalsAreZero = 0x40;
  __builtin_ia32_ldmxcsr(kExceptionsMasked | kFlushToZero | kDenormalsAreZero);
  Decoded decoded{};
  if (Decode(context, &decoded) && Execute(decoded, t_tiles)) {
    context.uc_mcontext.gregs[REG_RIP] += decoded.length;
    g_count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  static constexpr char kText[] = "tile_emulator: refused an instruction\n";
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  ::signal(number, SIG_DFL);  // the instruction runs again, and ends the program
}

}  // namespace

bool EmulateTiles() {
  static const bool able = [] {
    if (SupportedIsas().back() < Isa::kAvx512Bf16) return false;
    struct sigaction action = {};
    action.sa_sigaction = OnIllegalInstruction;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGILL, &action, nullptr) == 0;
  }();
  return able;
}

int64_t EmulatedTileInstructions() { return g_count.load(); }

}  // namespace attend::testing
