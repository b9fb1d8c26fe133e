// Memory that fails when a test says so. Defines operator new and aligned_alloc: for one file of a
// program.
#ifndef ATTEND_TESTS_FAILING_MEMORY_H_
#define ATTEND_TESTS_FAILING_MEMORY_H_

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace attend::testing {

inline std::atomic<int64_t> allocations_left{-1};  // before the one that fails; below 0: none will

// Smaller pieces malloc keeps in a cache when they are freed, and counts them as in use.
inline constexpr size_t kLeastBytes = 2048;

inline bool FailNow() { return allocations_left.load() >= 0 && allocations_left.fetch_sub(1) == 0; }

inline void* AllocateOrNull(size_t size, size_t alignment) {
  if (FailNow()) return nullptr;
  void* memory = nullptr;
  const size_t least = std::max(alignment, sizeof(void*));
  return posix_memalign(&memory, least, std::max(size, kLeastBytes)) == 0 ? memory : nullptr;
}

inline void* Allocate(size_t size, size_t alignment) {
  void* const memory = AllocateOrNull(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// The bytes that malloc and its kin have given and not got back.
inline size_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace attend::testing

// The forms that do not throw, and those of arrays, come here by way of the standard library's. Not
// inlined: the compiler would see free() meet what it takes for its own operator new.
#define ATTEND_TEST_NOINLINE __attribute__((noinline))
ATTEND_TEST_NOINLINE void* operator new(size_t size) {
  return attend::testing::Allocate(size, alignof(std::max_align_t));
}
ATTEND_TEST_NOINLINE void* operator new(size_t size, std::align_val_t alignment) {
  return attend::testing::Allocate(size, static_cast<size_t>(alignment));
}
ATTEND_TEST_NOINLINE void operator delete(void* memory) noexcept { std::free(memory); }
ATTEND_TEST_NOINLINE void operator delete(void* memory, size_t) noexcept { std::free(memory); }
ATTEND_TEST_NOINLINE void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
ATTEND_TEST_NOINLINE void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
// What tensors lie in.
extern "C" ATTEND_TEST_NOINLINE void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return attend::testing::AllocateOrNull(size, alignment);
}

#endif  // ATTEND_TESTS_FAILING_MEMORY_H_
