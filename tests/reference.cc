#include "tests/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace attend::reference {

Matrix Matrix::From(const float* x, int64_t rows, int64_t columns, int64_t ld) {
  Matrix m(rows, columns);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) m.at(r, c) = x[r * ld + c];
  }
  return m;
}

Matrix Linear(const Matrix& a, const Matrix& w, const std::vector<double>& b) {
  Matrix c(a.rows, w.rows);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t n = 0; n < w.rows; ++n) {
      double sum = b.empty() ? 0.0 : b[static_cast<size_t>(n)];
      for (int64_t k = 0; k < a.columns; ++k) sum += a.at(r, k) * w.at(n, k);
      c.at(r, n) = sum;
    }
  }
  return c;
}

double RoundBf16(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  // A step is 2^-7 of the power of two below |x|; of denormals 2^-133.
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7);
  const double rounded = std::nearbyint(x / step) * step;
  return std::fabs(rounded) >= std::ldexp(1.0, 128) ? std::copysign(INFINITY, x) : rounded;
}

Quantized QuantizeRows(const Matrix& x, int64_t group) {
  Quantized out{Matrix(x.rows, x.columns), Matrix(x.rows, (x.columns + group - 1) / group)};
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) {
      double& scale = out.scale.at(r, c / group);
      scale = std::max(scale, std::fabs(x.at(r, c)) / 127);
    }
    for (int64_t c = 0; c < x.columns; ++c) {
      const double scale = out.scale.at(r, c / group);
      out.q.at(r, c) = scale == 0 ? 0 : std::nearbyint(x.at(r, c) / scale);
    }
  }
  return out;
}

Matrix Add(const Matrix& a, const Matrix& b) {
  Matrix c = a;
  for (size_t i = 0; i < c.data.size(); ++i) c.data[i] += b.data[i];
  return c;
}

namespace {

// y = (x - shift) factor weight + bias for row r.
void ScaleRow(const Matrix& x, int64_t r, double shift, double factor,
              const std::vector<double>& weight, const std::vector<double>& bias, Matrix& y) {
  for (int64_t c = 0; c < x.columns; ++c) {
    const size_t i = static_cast<size_t>(c);
    y.at(r, c) = (x.at(r, c) - shift) * factor * (weight.empty() ? 1.0 : weight[i]) +
                 (bias.empty() ? 0.0 : bias[i]);
  }
}

}  // namespace

Matrix LayerNorm(const Matrix& x, const std::vector<double>& weight,
                 const std::vector<double>& bias, double eps) {
  Matrix y(x.rows, x.columns);
  for (int64_t r = 0; r < x.rows; ++r) {
    double mean = 0.0;
    for (int64_t c = 0; c < x.columns; ++c) mean += x.at(r, c);
    mean /= static_cast<double>(x.columns);
    double variance = 0.0;
    for (int64_t c = 0; c < x.columns; ++c) {
      variance += (x.at(r, c) - mean) * (x.at(r, c) - mean);
    }
    variance /= static_cast<double>(x.columns);
    ScaleRow(x, r, mean, 1.0 / std::sqrt(variance + eps), weight, bias, y);
  }
  return y;
}

Matrix RmsNorm(const Matrix& x, const std::vector<double>& weight, const std::vector<double>& bias,
               double eps) {
  Matrix y(x.rows, x.columns);
  for (int64_t r = 0; r < x.rows; ++r) {
    double square = 0.0;
    for (int64_t c = 0; c < x.columns; ++c) square += x.at(r, c) * x.at(r, c);
    square /= static_cast<double>(x.columns);
    ScaleRow(x, r, 0.0, 1.0 / std::sqrt(square + eps), weight, bias, y);
  }
  return y;
}

double Gelu(double x) {
  if (std::isinf(x)) return x > 0 ? x : 0.0;
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}

double GeluTanh(double x) {
  if (std::isinf(x)) return x > 0 ? x : 0.0;
  const double pi = std::acos(-1.0);
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / pi) * (x + 0.044715 * x * x * x)));
}

double Relu(double x) { return x < 0.0 ? 0.0 : x; }

double Silu(double x) {
  if (std::isinf(x)) return x > 0 ? x : 0.0;
  return x / (1.0 + std::exp(-x));
}

double Tanh(double x) { return std::tanh(x); }

Matrix Apply(double (*f)(double), const Matrix& x, const std::vector<double>& bias) {
  Matrix y(x.rows, x.columns);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) {
      y.at(r, c) = f(x.at(r, c) + (bias.empty() ? 0.0 : bias[static_cast<size_t>(c)]));
    }
  }
  return y;
}

Matrix Gated(double (*f)(double), const Matrix& gate, const Matrix& up) {
  Matrix y(gate.rows, gate.columns);
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] = f(gate.data[i]) * up.data[i];
  return y;
}

Matrix Softmax(const Matrix& x) {
  Matrix y(x.rows, x.columns);
  for (int64_t r = 0; r < x.rows; ++r) {
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t c = 0; c < x.columns; ++c) most = std::max(most, x.at(r, c));
    if (std::isinf(most)) continue;  // zeros
    double sum = 0.0;
    for (int64_t c = 0; c < x.columns; ++c) sum += std::exp(x.at(r, c) - most);
    for (int64_t c = 0; c < x.columns; ++c) y.at(r, c) = std::exp(x.at(r, c) - most) / sum;
  }
  return y;
}

Matrix Embedding(const std::vector<Matrix>& tables,
                 const std::vector<std::vector<int32_t>>& index) {
  const int64_t rows = static_cast<int64_t>(index[0].size());
  Matrix y(rows, tables[0].columns);
  for (size_t t = 0; t < tables.size(); ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < y.columns; ++c) {
        y.at(r, c) += tables[t].at(index[t][static_cast<size_t>(r)], c);
      }
    }
  }
  return y;
}

std::vector<double> PoolMean(const Matrix& x) {
  std::vector<double> y(static_cast<size_t>(x.columns));
  for (int64_t c = 0; c < x.columns; ++c) {
    for (int64_t r = 0; r < x.rows; ++r) y[static_cast<size_t>(c)] += x.at(r, c);
    y[static_cast<size_t>(c)] /= static_cast<double>(x.rows);
  }
  return y;
}

std::vector<double> PoolMax(const Matrix& x) {
  std::vector<double> y(static_cast<size_t>(x.columns));
  for (int64_t c = 0; c < x.columns; ++c) {
    double most = x.at(0, c);
    for (int64_t r = 1; r < x.rows; ++r) most = std::max(most, x.at(r, c));
    y[static_cast<size_t>(c)] = most;
  }
  return y;
}

Matrix Normalize(const Matrix& x) {
  Matrix y = x;
  for (int64_t r = 0; r < x.rows; ++r) {
    double square = 0.0;
    for (int64_t c = 0; c < x.columns; ++c) square += x.at(r, c) * x.at(r, c);
    const double length = std::max(std::sqrt(square), 1e-12);
    for (int64_t c = 0; c < x.columns; ++c) y.at(r, c) = x.at(r, c) / length;
  }
  return y;
}

Matrix Rotary(const Matrix& x, const std::vector<int32_t>& positions, int64_t heads, int64_t dims,
              const std::vector<double>& frequencies) {
  Matrix y = x;
  const int64_t width = x.columns / heads, half = dims / 2;
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < half; ++i) {
        const double position = positions[static_cast<size_t>(r)];
        const double angle = position * frequencies[static_cast<size_t>(i)];
        const double low = x.at(r, h * width + i), high = x.at(r, h * width + half + i);
        y.at(r, h * width + i) = low * std::cos(angle) - high * std::sin(angle);
        y.at(r, h * width + half + i) = high * std::cos(angle) + low * std::sin(angle);
      }
    }
  }
  return y;
}

// ---- Attention ----

namespace {

double Score(const AttentionInput& in, int64_t h, int64_t i, int64_t j) {
  const int64_t g = h / (in.heads / in.kv_heads);
  const int64_t width = in.q.columns / in.heads;
  double score = 0.0;
  for (int64_t e = 0; e < width; ++e) {
    const double q = in.q.at(i, h * width + e), k = in.k.at(j, g * width + e);
    score += in.additive.rows > 0 ? in.additive.at(h, e) * std::tanh(q + k) : in.scale * q * k;
  }
  return in.bias ? score + in.bias(h, i, j) : score;
}

// The weights of the scores of the keys that a row sees.
std::vector<double> Weights(const AttentionInput& in, std::vector<double> scores) {
  const double infinity = std::numeric_limits<double>::infinity();
  double most = -infinity;
  for (double s : scores) most = std::max(most, s);
  // softmax1 has one more key, of score 0 and value 0. Miller 2023.
  const bool extra = in.normalizer == Normalizer::kSoftmax1;
  if (extra) most = std::max(most, 0.0);
  if (most == -infinity) most = 0.0;
  double sum = extra ? std::exp(-most) : 0.0;
  for (double s : scores) sum += std::exp(s - most);
  for (double& s : scores) {
    switch (in.normalizer) {
      case Normalizer::kSoftmax:
      case Normalizer::kSoftmax1:
        s = sum == 0.0 ? 0.0 : std::exp(s - most) / sum;
        break;
      case Normalizer::kRelu:
        s = std::max(s, 0.0);
        break;
      case Normalizer::kRelu2:
        s = std::max(s, 0.0) * std::max(s, 0.0);
        break;
      case Normalizer::kSigmoid:
        s = 1.0 / (1.0 + std::exp(-s));
        break;
      case Normalizer::kNone:
        if (s == -infinity) s = 0.0;  // not seen
        break;
    }
    if (in.divide_by_seen) s /= static_cast<double>(scores.size());
  }
  return scores;
}

}  // namespace

Matrix Attention(const AttentionInput& in) {
  const int64_t width = in.v.columns / in.kv_heads;
  Matrix out(in.q.rows, in.heads * width);
  for (int64_t h = 0; h < in.heads; ++h) {
    const int64_t g = h / (in.heads / in.kv_heads);
    for (int64_t i = 0; i < in.q.rows; ++i) {
      std::vector<int64_t> seen;
      std::vector<double> scores;
      for (int64_t j = 0; j < in.k.rows; ++j) {
        if (in.sees && !in.sees(i, j)) continue;
        seen.push_back(j);
        scores.push_back(Score(in, h, i, j));
      }
      const std::vector<double> weights = Weights(in, std::move(scores));
      for (size_t n = 0; n < seen.size(); ++n) {
        for (int64_t e = 0; e < width; ++e) {
          out.at(i, h * width + e) += weights[n] * in.v.at(seen[n], g * width + e);
        }
      }
    }
  }
  return out;
}

std::function<double(int64_t, int64_t, int64_t)> AlibiBias(int64_t heads) {
  return [heads](int64_t h, int64_t i, int64_t j) {
    const double slope = std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads));
    return -slope * static_cast<double>(std::abs(i - j));
  };
}

int64_t RelativeBucket(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t n = buckets / 2;  // a half for each direction
  const int64_t base = distance > 0 ? n : 0;
  const int64_t a = std::abs(distance);
  const int64_t exact = n / 2;  // near distances have a bucket each
  if (a < exact) return base + a;
  const double ratio = std::log(static_cast<double>(a) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  const int64_t far =
      exact + static_cast<int64_t>(std::floor(ratio * static_cast<double>(n - exact)));
  return base + std::min(n - 1, far);
}

std::function<double(int64_t, int64_t, int64_t)> RelativeBias(Matrix table, int64_t max_distance) {
  return [table = std::move(table), max_distance](int64_t h, int64_t i, int64_t j) {
    return table.at(RelativeBucket(j - i, table.rows, max_distance), h);
  };
}

std::function<bool(int64_t, int64_t)> SeesWithin(bool causal, int64_t left, int64_t right,
                                                 int64_t global_tokens) {
  return [=](int64_t i, int64_t j) {
    if (causal && j > i) return false;
    if (left < 0 && right < 0) return true;
    if (i < global_tokens || j < global_tokens) return true;
    return (left < 0 || j >= i - left) && (right < 0 || j <= i + right);
  };
}

}  // namespace attend::reference
