#include "tests/reference_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

namespace attend::reference {
namespace {

// Rotary positions of heads of `dim` columns: the halves of a head are the coordinates of dim / 2
// points, and the i-th turns by pos theta^(-2i / dim). Su et al. 2021.
Matrix Rotate(Matrix x, int64_t dim, double theta) {
  const Matrix from = x;
  const int64_t half = dim / 2;
  for (int64_t pos = 0; pos < x.rows; ++pos) {
    for (int64_t head = 0; head < x.columns; head += dim) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(pos) *
            std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
        const double a = from.at(pos, head + i), b = from.at(pos, head + i + half);
        x.at(pos, head + i) = a * std::cos(angle) - b * std::sin(angle);
        x.at(pos, head + i + half) = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
  return x;
}

double Sinusoid(int64_t pos, int64_t column, int64_t width) {
  const double divisor =
      std::pow(10000.0, static_cast<double>(column / 2 * 2) / static_cast<double>(width));
  const double angle = static_cast<double>(pos) / divisor;
  return column % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

Normalizer NormalizerOf(attend::Normalizer normalizer) {
  switch (normalizer) {
    case attend::Normalizer::kSoftmax:
      return Normalizer::kSoftmax;
    case attend::Normalizer::kSoftmax1:
      return Normalizer::kSoftmax1;
    case attend::Normalizer::kRelu:
      return Normalizer::kRelu;
    case attend::Normalizer::kRelu2:
      return Normalizer::kRelu2;
    case attend::Normalizer::kSigmoid:
      return Normalizer::kSigmoid;
    case attend::Normalizer::kNone:
      break;
  }
  return Normalizer::kNone;
}

Matrix Times(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.data.size(); ++i) a.data[i] *= b.data[i];
  return a;
}

double LargestOf(const Matrix& x, int64_t row) {
  double largest = 0;
  for (int64_t c = 0; c < x.columns; ++c) largest = std::max(largest, std::abs(x.at(row, c)));
  return largest;
}

double VarianceOf(const Matrix& x, int64_t row) {
  double mean = 0, variance = 0;
  for (int64_t c = 0; c < x.columns; ++c) mean += x.at(row, c) / static_cast<double>(x.columns);
  for (int64_t c = 0; c < x.columns; ++c) {
    variance += (x.at(row, c) - mean) * (x.at(row, c) - mean) / static_cast<double>(x.columns);
  }
  return variance;
}

class Encoder {
 public:
  Encoder(const ModelConfig& config, const Weights& weights,
          const testing::FamilySequence& sequence, Noise noise)
      : c_(config),
        weights_(weights),
        sequence_(sequence),
        exact_(noise.seed == 0),
        random_(noise.seed) {}

  EncoderOutput Run() const {
    EncoderOutput output;
    Matrix x = Input();
    for (int64_t i = 0; i < c_.num_layers; ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".";
      x = Block(x, layer + "attention_norm",
                [&](const Matrix& in) { return SelfAttention(in, layer + "attention."); });
      if (c_.intermediate_size == 0) continue;
      x = Block(x, layer + "ffn_norm",
                [&](const Matrix& in) { return FeedForward(in, layer + "ffn."); });
    }
    if (c_.norm == NormPlace::kPre) x = NormOf(x, "final_norm");
    output.hidden = x;
    if (c_.task == Task::kTokens) output.logits = LinearOf(x, "head");
    if (c_.task == Task::kSequence) {
      output.pooled = Pool(x);
      output.logits = LinearOf(output.pooled, "head");
    }
    return output;
  }

 private:
  bool Has(const std::string& name) const { return weights_.contains(name); }

  std::vector<double> Vector(const std::string& name) const {
    const auto found = weights_.find(name);
    return found == weights_.end() ? std::vector<double>() : found->second.data;
  }

  Matrix Round(Matrix x) const {
    if (exact_) return x;
    for (int64_t r = 0; r < x.rows; ++r) {
      const double largest = LargestOf(x, r);
      for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) += Off(largest);
    }
    return x;
  }

  // 2^-22 of `size`, up or down.
  double Off(double size) const { return random_.Below(2) == 0 ? 0x1p-22 * size : -0x1p-22 * size; }

  // f(x); in f32 GELU and its kin lose to cancellation what x is rounded by.
  Matrix ApplyOf(double (*f)(double), const Matrix& x) const {
    Matrix y = Apply(f, x, {});
    if (exact_) return y;
    for (size_t i = 0; i < y.data.size(); ++i) y.data[i] += Off(std::abs(x.data[i]));
    return y;
  }

  Matrix LinearOf(const Matrix& x, const std::string& name) const {
    return Round(Linear(x, weights_.at(name + ".weight"), Vector(name + ".bias")));
  }

  Matrix NormOf(const Matrix& x, const std::string& name) const {
    const std::vector<double> weight = Vector(name + ".weight");
    if (c_.norm_type == NormType::kRmsNorm) return Round(RmsNorm(x, weight, {}, c_.norm_eps));
    Matrix y = LayerNorm(x, weight, Vector(name + ".bias"), c_.norm_eps);
    // A mean in f32 is off by the rounding of the elements, however little they differ.
    for (int64_t r = 0; r < y.rows && !exact_; ++r) {
      const double mean_off = 0x1p-24 * LargestOf(x, r);
      for (int64_t c = 0; c < y.columns; ++c) {
        const double w = weight[static_cast<size_t>(c)];
        y.at(r, c) += w * mean_off / std::sqrt(VarianceOf(x, r) + c_.norm_eps);
      }
    }
    return Round(y);
  }

  Matrix Input() const {
    const int64_t length = sequence_.length;
    Matrix x(length, c_.vocab_size > 0 ? c_.hidden_size : c_.input_size);
    for (int64_t r = 0; r < length; ++r) {
      for (int64_t c = 0; c < x.columns; ++c) {
        const size_t at = static_cast<size_t>(r * x.columns + c);
        x.at(r, c) = c_.vocab_size > 0 ? weights_.at("embeddings.tokens.weight")
                                             .at(sequence_.ids[static_cast<size_t>(r)], c)
                                       : static_cast<double>(sequence_.rows[at]);
      }
    }
    if (Has("input.projection.weight")) x = LinearOf(x, "input.projection");
    for (int64_t r = 0; r < length; ++r) {
      for (int64_t c = 0; c < x.columns; ++c) {
        if (c_.position == Position::kLearned) {
          x.at(r, c) += weights_.at("embeddings.positions.weight").at(r, c);
        }
        if (c_.position == Position::kSinusoidal) x.at(r, c) += Sinusoid(r, c, x.columns);
      }
    }
    x = Round(x);
    return Has("embeddings.norm.weight") ? NormOf(x, "embeddings.norm") : x;
  }

  template <typename F>
  Matrix Block(const Matrix& x, const std::string& norm, const F& block) const {
    Matrix y = block(c_.norm == NormPlace::kPre ? NormOf(x, norm) : x);
    if (c_.residual) y = Round(Add(x, y));
    return c_.norm == NormPlace::kPost ? NormOf(y, norm) : y;
  }

  Matrix SelfAttention(const Matrix& x, const std::string& name) const {
    AttentionInput in;
    const bool additive = c_.score == Score::kAdditive;
    in.q = LinearOf(x, name + (additive ? "qa" : "q"));
    in.k = LinearOf(x, name + (additive ? "ka" : "k"));
    in.v = LinearOf(x, name + "v");
    if (c_.position == Position::kRotary) {
      in.q = Round(Rotate(in.q, c_.head_dim, c_.rope_theta));
      in.k = Round(Rotate(in.k, c_.head_dim, c_.rope_theta));
    }
    in.heads = c_.num_heads;
    in.kv_heads = c_.num_kv_heads;
    if (additive) in.additive = weights_.at(name + "va");
    if (c_.score == Score::kScaledDot) in.scale = 1 / std::sqrt(static_cast<double>(c_.head_dim));
    if (c_.score_bias == ScoreBias::kAlibi) in.bias = AlibiBias(c_.num_heads);
    if (c_.score_bias == ScoreBias::kRelative) {
      in.bias = RelativeBias(weights_.at("relative.weight"), c_.relative_max_distance);
    }
    const auto within = SeesWithin(c_.causal, c_.windowed ? c_.window_left : -1,
                                   c_.windowed ? c_.window_right : -1, c_.global_tokens);
    std::set<std::pair<int64_t, int64_t>> edges;
    for (const Edge& edge : sequence_.edges) edges.insert({edge.i, edge.j});
    in.sees = [&](int64_t i, int64_t j) {
      return within(i, j) && (!c_.edges || edges.contains({i, j}));
    };
    in.normalizer = NormalizerOf(c_.normalizer);
    in.divide_by_seen = c_.normalizer_length;
    const Matrix seen = Round(Attention(in));
    return c_.output_projection ? LinearOf(seen, name + "o") : seen;
  }

  Matrix FeedForward(const Matrix& x, const std::string& name) const {
    const Matrix up = LinearOf(x, name + "up");
    const auto down = [&](const Matrix& inner) { return LinearOf(Round(inner), name + "down"); };
    switch (c_.activation) {
      case Activation::kGeglu:
        return down(Times(ApplyOf(&Gelu, LinearOf(x, name + "gate")), up));
      case Activation::kSwiglu:
        return down(Times(ApplyOf(&Silu, LinearOf(x, name + "gate")), up));
      case Activation::kGeluTanh:
        return down(ApplyOf(&GeluTanh, up));
      case Activation::kRelu:
        return down(Apply(&Relu, up, {}));
      case Activation::kSilu:
        return down(ApplyOf(&Silu, up));
      default:
        return down(ApplyOf(&Gelu, up));
    }
  }

  Matrix Pool(const Matrix& x) const {
    Matrix pooled(1, x.columns);
    if (c_.pooling == Pooling::kMean) pooled.data = PoolMean(x);
    if (c_.pooling == Pooling::kMax) pooled.data = PoolMax(x);
    for (int64_t c = 0; c < x.columns; ++c) {
      if (c_.pooling == Pooling::kFirst) pooled.at(0, c) = x.at(0, c);
      if (c_.pooling == Pooling::kLast) pooled.at(0, c) = x.at(x.rows - 1, c);
    }
    return Round(pooled);
  }

  const ModelConfig& c_;
  const Weights& weights_;
  const testing::FamilySequence& sequence_;
  bool exact_;
  mutable testing::Random random_;
};

}  // namespace

Weights ReadWeights(const FileView& file) {
  Weights weights;
  for (size_t i = 0; i < file.num_tensors(); ++i) {
    const TensorView tensor = file.tensor(i);
    if (tensor.dtype != DType::kF32) continue;
    const bool vector = tensor.shape.size() == 1;
    std::vector<float> values(tensor.num_elements());
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    weights[std::string(tensor.name)] =
        Matrix::From(values, vector ? 1 : static_cast<int64_t>(tensor.shape[0]),
                     static_cast<int64_t>(tensor.shape.back()));
  }
  return weights;
}

EncoderOutput RunEncoder(const ModelConfig& config, const Weights& weights,
                         const testing::FamilySequence& sequence, Noise noise) {
  return Encoder(config, weights, sequence, noise).Run();
}

}  // namespace attend::reference
