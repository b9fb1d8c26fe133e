// The shapes that tests and benchmarks of the kernels share.
#ifndef ATTEND_TESTS_CASES_H_
#define ATTEND_TESTS_CASES_H_

#include <cstdint>

namespace attend::cases {

// Widths of rows: every remainder of every vector length, and those of real models.
inline constexpr int64_t kWidths[] = {
    1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 12,  13,  15,  16,  17,  19,  23,  24,  31,  32,
    33, 47, 48, 63, 64, 65, 79, 80, 96, 97, 127, 128, 129, 255, 256, 257, 384, 385, 768, 1000};

// Row-wise operators at the sizes of real models: MiniLM, BERT base, their feed-forward blocks.
struct RowCase {
  int64_t rows, width;
};
inline constexpr RowCase kRowBench[] = {{1, 384}, {48, 384}, {48, 768}, {48, 1536}, {48, 3072}};

// Attention of one sequence: Lq, Lk, H, G, E.
struct AttentionCase {
  int64_t queries, keys, heads, kv_heads, head_dim;
};
inline constexpr AttentionCase kAttentionTest[] = {
    {1, 1, 1, 1, 1},      {1, 1, 2, 2, 8},     {2, 3, 2, 1, 3},     {3, 15, 2, 2, 4},
    {4, 16, 3, 3, 5},     {5, 17, 4, 2, 7},    {6, 31, 2, 2, 8},    {7, 32, 4, 1, 12},
    {8, 33, 2, 2, 16},    {9, 47, 2, 2, 17},   {10, 48, 2, 1, 20},  {11, 49, 2, 2, 24},
    {12, 64, 12, 12, 32}, {13, 65, 6, 2, 32},  {14, 100, 2, 2, 33}, {15, 127, 2, 2, 40},
    {16, 128, 2, 2, 48},  {17, 129, 1, 1, 63}, {23, 200, 3, 3, 64}, {24, 255, 2, 2, 65},
    {25, 256, 2, 1, 80},  {29, 40, 2, 2, 96},  {37, 37, 1, 1, 128}, {14, 77, 1, 1, 160},
    {13, 30, 2, 1, 255},  {13, 30, 1, 1, 256}, {13, 30, 1, 1, 257}, {5, 19, 2, 2, 530},
    {2, 2047, 1, 1, 20},  {3, 2048, 1, 1, 32}, {3, 2049, 1, 1, 32}, {13, 2560, 1, 1, 16},
    {5, 2577, 2, 1, 300}};

// MiniLM at its lengths, and BERT base.
inline constexpr AttentionCase kAttentionBench[] = {
    {8, 8, 12, 12, 32},     {16, 16, 12, 12, 32},   {32, 32, 12, 12, 32},   {128, 128, 12, 12, 32},
    {512, 512, 12, 12, 32}, {128, 128, 12, 12, 64}, {512, 512, 12, 12, 64}, {4096, 4096, 1, 1, 64}};

}  // namespace attend::cases

#endif  // ATTEND_TESTS_CASES_H_
