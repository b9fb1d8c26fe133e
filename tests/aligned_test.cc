// Memory for packed weights: pieces are apart, aligned and usable, in huge pages' room or alone.
#include "kernels/aligned.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace attend {
namespace {

// Every piece holds what was written to it after all others were written, with Trim between.
void CheckPieces(size_t expected) {
  AlignedPool pool(expected);
  std::vector<unsigned char*> pieces;
  std::vector<size_t> sizes;
  for (const size_t bytes : {size_t{1}, size_t{64}, size_t{3} << 20, size_t{1000}, size_t{0},
                             size_t{40} << 20, size_t{20} << 20, size_t{20} << 20, size_t{77}}) {
    auto* const piece = static_cast<unsigned char*>(pool.Take(bytes));
    ASSERT_NE(piece, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0u);
    std::memset(piece, static_cast<int>(pieces.size() + 1), bytes);
    pieces.push_back(piece);
    sizes.push_back(bytes);
    if (pieces.size() % 3 == 0) pool.Trim();
  }
  pool.Trim();
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (size_t b = 0; b < sizes[i]; b += 4093) ASSERT_EQ(pieces[i][b], i + 1) << i << " " << b;
    if (sizes[i] > 0) {
      ASSERT_EQ(pieces[i][sizes[i] - 1], i + 1) << i;
    }
  }
}

TEST(AlignedPool, PiecesKeepWhatIsWritten) {
  CheckPieces(0);
  CheckPieces(size_t{100} << 20);
}

TEST(AlignedPool, TrimOfAnEmptyPoolDoesNothing) {
  AlignedPool(0).Trim();
  AlignedPool(size_t{100} << 20).Trim();
}

}  // namespace
}  // namespace attend
