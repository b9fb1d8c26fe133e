#include "kernels/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string>

#include "kernels/gemm.h"
#include "kernels/simd.h"
// After simd.h, which says what targets there are.
#include "hwy/highway.h"

namespace attend {
namespace {

constexpr const char* kNames[] = {"sse4", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};
constexpr int kIsaCount = static_cast<int>(std::size(kNames));

// The kernel's interface for state that a process must ask for (Linux 5.16 and later).
constexpr long kArchGetXcompSupp = 0x1021;
constexpr long kArchReqXcompPerm = 0x1023;
constexpr long kXfeatureTileData = 18;
constexpr uint64_t kXcr0Tiles = (uint64_t{1} << 17) | (uint64_t{1} << 18);

uint64_t ReadXcr0() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & bit_OSXSAVE) == 0) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// CPU, operating system and kernel together; asks for nothing.
bool HasAmx() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kNeeded = 1u << 22 | 1u << 24 | 1u << 25;  // AMX-BF16, AMX-TILE, AMX-INT8
  if ((edx & kNeeded) != kNeeded) return false;
  if ((ReadXcr0() & kXcr0Tiles) != kXcr0Tiles) return false;
  uint64_t features = 0;
  if (syscall(SYS_arch_prctl, kArchGetXcompSupp, &features) != 0) return false;
  return ((features >> kXfeatureTileData) & 1) != 0;
}

// Asks the kernel for tile state, for all threads of this process. Harmless when repeated.
bool RequestAmx() { return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0; }

// The choice of this process: 0 nothing, isa + 1 a limit, (isa + 1) | kBoundBit fixed. Constant
// initialisation; written under the mutex, read without it.
constexpr int kBoundBit = 0x100;
constinit std::atomic<int> g_state{0};
constinit std::atomic<bool> g_gemm_follows{true};
constinit std::mutex g_mutex;

constexpr Isa IsaOf(int state) { return static_cast<Isa>((state & ~kBoundBit) - 1); }
constexpr int StateOf(Isa isa) { return static_cast<int>(isa) + 1; }

std::string Names(const std::vector<Isa>& isas) {
  std::string names;
  for (Isa isa : isas) {
    if (!names.empty()) names += ", ";
    names += IsaName(isa);
  }
  return names;
}

}  // namespace

const char* IsaName(Isa isa) {
  const int index = static_cast<int>(isa);
  return index >= 0 && index < kIsaCount ? kNames[index] : "unknown";
}

#define ATTEND_STRING_(x) #x
#define ATTEND_STRING(x) ATTEND_STRING_(x)
const char* SimdLibraryVersion() {
  return "Highway " ATTEND_STRING(HWY_MAJOR) "." ATTEND_STRING(HWY_MINOR) "." ATTEND_STRING(
      HWY_PATCH);
}

Result<Isa> ParseIsa(std::string_view name) {
  std::string all;
  for (int i = 0; i < kIsaCount; ++i) {
    if (name == kNames[i]) return static_cast<Isa>(i);
    all += (i == 0 ? "" : ", ");
    all += kNames[i];
  }
  return Status(ErrorCode::kInvalidArgument,
                "there is no instruction set \"" + std::string(name.substr(0, 40)) + "\"", "isa",
                "use one of " + all);
}

std::vector<Isa> SupportedIsas() {
  // Highway and the compiler's run time both look at CPUID and at what the operating system saves
  // (XCR0). The floor needs no check: this code is compiled for it.
  std::vector<Isa> isas = {Isa::kSse4};
  const int64_t targets = hwy::SupportedTargets();
  if ((targets & HWY_AVX2) == 0) return isas;
  isas.push_back(Isa::kAvx2);
  if ((targets & HWY_AVX3) == 0) return isas;
  isas.push_back(Isa::kAvx512);
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512vnni")) return isas;
  isas.push_back(Isa::kAvx512Vnni);
  if (!__builtin_cpu_supports("avx512bf16")) return isas;
  isas.push_back(Isa::kAvx512Bf16);
  if (HasAmx()) isas.push_back(Isa::kAmx);
  return isas;
}

Status LimitIsa(Isa isa) {
  const std::vector<Isa> supported = SupportedIsas();
  if (std::find(supported.begin(), supported.end(), isa) == supported.end()) {
    return Status(ErrorCode::kUnsupported,
                  std::string("this CPU or operating system cannot run ") + IsaName(isa), "isa",
                  "it can run " + Names(supported));
  }
  const std::lock_guard<std::mutex> lock(g_mutex);
  const int state = g_state.load(std::memory_order_relaxed);
  if ((state & kBoundBit) != 0) {
    if (IsaOf(state) == isa) return Status();
    return Status(ErrorCode::kBusy,
                  std::string("this process already computes with ") + IsaName(IsaOf(state)) +
                      " and cannot change to " + IsaName(isa),
                  "isa", "choose it before the first session is created");
  }
  if (isa == Isa::kAmx && !RequestAmx()) {
    return Status(ErrorCode::kUnsupported,
                  "the system refuses this process the state of AMX's tiles", "isa",
                  "a thread's alternate signal stack may be too small for it");
  }
  ATTEND_RETURN_IF_ERROR(LimitGemmIsa(isa));
  g_state.store(StateOf(isa), std::memory_order_release);
  return Status();
}

Isa ChosenIsa() {
  const int state = g_state.load(std::memory_order_acquire);
  return state != 0 ? IsaOf(state) : SupportedIsas().back();
}

Isa BoundIsa() {
  const int seen = g_state.load(std::memory_order_acquire);
  if ((seen & kBoundBit) != 0) return IsaOf(seen);
  const std::lock_guard<std::mutex> lock(g_mutex);
  const int state = g_state.load(std::memory_order_relaxed);
  if ((state & kBoundBit) != 0) return IsaOf(state);
  Isa isa = ChosenIsa();
  if (isa == Isa::kAmx && !RequestAmx()) isa = Isa::kAvx512Bf16;
  // An error here means that the program around us has used oneDNN before, which has then fixed its
  // own choice. That choice computes the same numbers within the documented bounds, so go on.
  g_gemm_follows.store(LimitGemmIsa(isa).ok(), std::memory_order_relaxed);
  g_state.store(StateOf(isa) | kBoundBit, std::memory_order_release);
  return isa;
}

bool GemmFollowsIsa() { return g_gemm_follows.load(std::memory_order_relaxed); }

void SetIsaForTest(Isa isa) {
  if (isa == Isa::kAmx) (void)RequestAmx();  // refused where it is emulated
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_state.store(StateOf(isa) | kBoundBit, std::memory_order_release);
}

}  // namespace attend
