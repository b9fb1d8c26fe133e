// Rows gathered from tables of embeddings and summed. Widening to f32 is exact (kI8: the product
// with its scale is rounded once), each product with a factor and each sum is rounded once.
#ifndef ATTEND_KERNELS_EMBEDDING_H_
#define ATTEND_KERNELS_EMBEDDING_H_

#include <cstdint>

namespace attend {

enum class TableType { kF32, kF16, kBf16, kI8 };

// A table [rows, D] as the file holds it. kI8 has a scale a row.
struct EmbeddingTable {
  const void* data = nullptr;    // null: this table adds nothing
  const float* scale = nullptr;  // [rows], kI8 only
  TableType type = TableType::kF32;
  float factor = 1;  // times every element, as widened
};

struct EmbeddingArgs {
  EmbeddingTable tables[3];  // tokens, positions, types, summed in this order
  // [R] each: the row of the table, which must exist; null: row 0.
  const int32_t* index[3] = {};
  float* out = nullptr;  // [R, D; ld_out]
  int64_t rows = 0, width = 0, ld_out = 0;
};
using EmbeddingFn = void (*)(const EmbeddingArgs&);
EmbeddingFn BindEmbedding();

// Widens `count` elements of a table or weight (kI8: times scale[0]) to f32.
struct WidenArgs {
  const void* data = nullptr;
  float scale = 1;
  TableType type = TableType::kF32;
  float* out = nullptr;  // [count]
  int64_t count = 0;
};
using WidenFn = void (*)(const WidenArgs&);
WidenFn BindWiden();

}  // namespace attend

#endif  // ATTEND_KERNELS_EMBEDDING_H_
