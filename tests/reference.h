// The slow, plain twins of everything fast: double precision, no tricks, one loop per index. They
// define what a kernel computes, the tests hold the kernels against them, and they are meant to be
// read first. Letters as everywhere: L tokens, H query heads, G key/value heads, E columns a head.
#ifndef ATTEND_TESTS_REFERENCE_H_
#define ATTEND_TESTS_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace attend::reference {

// A row-major matrix of doubles; made from floats that may lie `ld` elements apart.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> data;

  Matrix() = default;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), data(static_cast<size_t>(r * c)) {}
  static Matrix From(const float* x, int64_t rows, int64_t columns, int64_t ld);
  static Matrix From(const std::vector<float>& x, int64_t rows, int64_t columns) {
    return From(x.data(), rows, columns, columns);
  }

  double& at(int64_t r, int64_t c) { return data[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return data[static_cast<size_t>(r * columns + c)]; }
};

// C = A W^T + b. A [R, K], W [N, K], b [N] or empty.
Matrix Linear(const Matrix& a, const Matrix& w, const std::vector<double>& b);

// The nearest bf16 (8 bits of mantissa, f32's exponents), ties to even.
double RoundBf16(double x);
// Rows as integers, and a scale for each `group` of columns, x = scale q about: scale =
// max|x| / 127, q = x / scale rounded to the nearest, ties to even. Zeros have the scale 0.
struct Quantized {
  Matrix q;      // as x
  Matrix scale;  // [rows, groups]
};
Quantized QuantizeRows(const Matrix& x, int64_t group);

// A + B.
Matrix Add(const Matrix& a, const Matrix& b);

// (x - mean) / sqrt(variance + eps) weight + bias, along each row. Ba et al. 2016. The variance is
// that of the whole row (divided by D, not D - 1). weight and bias [D] or empty.
Matrix LayerNorm(const Matrix& x, const std::vector<double>& weight,
                 const std::vector<double>& bias, double eps);
// x / sqrt(mean(x^2) + eps) weight + bias. Zhang and Sennrich 2019.
Matrix RmsNorm(const Matrix& x, const std::vector<double>& weight, const std::vector<double>& bias,
               double eps);

double Gelu(double x);      // x Phi(x), Phi the normal distribution. Hendrycks and Gimpel 2016
double GeluTanh(double x);  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
double Relu(double x);
double Silu(double x);  // x / (1 + e^-x)
double Tanh(double x);
// f(x + bias) everywhere; bias [D] or empty.
Matrix Apply(double (*f)(double), const Matrix& x, const std::vector<double>& bias);
// f(gate) up. Shazeer 2020.
Matrix Gated(double (*f)(double), const Matrix& gate, const Matrix& up);

// e^x_j / sum e^x_j along each row; a row of -inf gives zeros.
Matrix Softmax(const Matrix& x);

// Row r of the result: the sum over tables of table row index[r].
Matrix Embedding(const std::vector<Matrix>& tables, const std::vector<std::vector<int32_t>>& index);

std::vector<double> PoolMean(const Matrix& x);
std::vector<double> PoolMax(const Matrix& x);
// Each row divided by max(its Euclidean length, 1e-12).
Matrix Normalize(const Matrix& x);

// Turns each pair (x_i, x_{i + R/2}), i < R / 2, of every head of row r by positions[r] *
// frequencies[i]; what is behind the first R = `dims` columns of a head stays. Su et al. 2021.
Matrix Rotary(const Matrix& x, const std::vector<int32_t>& positions, int64_t heads, int64_t dims,
              const std::vector<double>& frequencies);

// ---- Attention ----

// How weights are made of the scores of one row, over the keys that the row sees.
enum class Normalizer { kSoftmax, kSoftmax1, kRelu, kRelu2, kSigmoid, kNone };

struct AttentionInput {
  Matrix q;  // [Lq, H E]
  Matrix k;  // [Lk, G E]
  Matrix v;  // [Lk, G E]
  int64_t heads = 1, kv_heads = 1;
  // The score of a pair is scale q_i . k_j, or, with `additive` [H, A] given,
  // sum_a additive_h[a] tanh(q_i[a] + k_j[a]) (Bahdanau et al. 2014; q and k are then A wide a
  // head).
  double scale = 1;
  Matrix additive;
  // Added to the score of head h, query i, key j. May be -inf: weight 0. Empty: nothing.
  std::function<double(int64_t h, int64_t i, int64_t j)> bias;
  // Whether query i sees key j. Empty: it sees all.
  std::function<bool(int64_t i, int64_t j)> sees;
  Normalizer normalizer = Normalizer::kSoftmax;
  // Weights are divided by the number of keys that the row sees.
  bool divide_by_seen = false;
};

// [Lq, H E]: sum_j weight_ij v_j. Query head h uses key/value head h / (H / G). A row that sees
// nobody, or only keys with score -inf, gives zeros. Vaswani et al. 2017, equation 1.
Matrix Attention(const AttentionInput& input);

// Biases for AttentionInput::bias.
// ALiBi: -m_h |i - j| with m_h = 2^(-8 (h + 1) / H). Press et al. 2021.
std::function<double(int64_t, int64_t, int64_t)> AlibiBias(int64_t heads);
// The number of the bucket of distance d = j - i, both directions. Raffel et al. 2019 (T5).
int64_t RelativeBucket(int64_t distance, int64_t buckets, int64_t max_distance);
// table [buckets, H].
std::function<double(int64_t, int64_t, int64_t)> RelativeBias(Matrix table, int64_t max_distance);

// Structures for AttentionInput::sees. Negative left or right: no limit on that side.
std::function<bool(int64_t, int64_t)> SeesWithin(bool causal, int64_t left, int64_t right,
                                                 int64_t global_tokens);

}  // namespace attend::reference

#endif  // ATTEND_TESTS_REFERENCE_H_
