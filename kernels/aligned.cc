#include "kernels/aligned.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace attend {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMapFrom = 2 * kHugePage;
// Of a pool. What is not used of it costs address space alone, and that until Trim.
constexpr size_t kChunk = 16 * kHugePage;

}  // namespace

void* AllocateAligned(size_t bytes) {
  if (bytes == 0) bytes = 64;
  if (bytes < kMapFrom) return std::aligned_alloc(64, RoundUp(bytes, size_t{64}));
  // Map one huge page more than needed and give the unaligned ends back.
  const size_t size = RoundUp(bytes, kHugePage);
  void* mapped =
      mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapped);
  const size_t head =
      RoundUp(reinterpret_cast<uintptr_t>(begin), kHugePage) - reinterpret_cast<uintptr_t>(begin);
  if (head > 0) munmap(begin, head);
  if (head < kHugePage) munmap(begin + head + size, kHugePage - head);
  madvise(begin + head, size, MADV_HUGEPAGE);
  return begin + head;
}

void FreeAligned(void* memory, size_t bytes) {
  if (memory == nullptr) return;
  if (bytes < kMapFrom) {
    std::free(memory);
  } else {
    munmap(memory, RoundUp(bytes, kHugePage));
  }
}

AlignedPool::~AlignedPool() {
  for (const Chunk& chunk : chunks_) FreeAligned(chunk.memory, chunk.bytes);
}

void* AlignedPool::AddChunk(size_t bytes) {
  chunks_.reserve(chunks_.size() + 1);
  void* const memory = AllocateAligned(bytes);
  if (memory != nullptr) chunks_.push_back({memory, bytes});
  return memory;
}

void AlignedPool::Trim() {
  if (free_bytes_ == 0) return;
  Chunk& chunk = chunks_.back();
  const size_t used = chunk.bytes - free_bytes_;
  // Whole huge pages, and so much that FreeAligned knows it as mapped.
  const size_t kept = std::max(RoundUp(used, kHugePage), kMapFrom);
  const size_t mapped = RoundUp(chunk.bytes, kHugePage);
  if (kept >= mapped) return;
  munmap(static_cast<char*>(chunk.memory) + kept, mapped - kept);
  chunk.bytes = kept;
  free_bytes_ = kept - used;
}

void* AlignedPool::Take(size_t bytes) {
  bytes = RoundUp(bytes == 0 ? 1 : bytes, size_t{64});
  if (expected_ < kMapFrom) return AddChunk(bytes);
  if (free_bytes_ < bytes) {
    Trim();
    const size_t chunk = bytes > kChunk ? bytes : kChunk;
    free_ = static_cast<char*>(AddChunk(chunk));
    free_bytes_ = free_ == nullptr ? 0 : chunk;
    if (free_ == nullptr) return nullptr;
  }
  void* const piece = free_;
  free_ += bytes;
  free_bytes_ -= bytes;
  return piece;
}

}  // namespace attend
