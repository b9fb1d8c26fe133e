#include "tests/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/tile_emulator.h"

namespace attend::testing {
namespace {

constexpr uint32_t kGuardBits = 0x7FC0DEADu;  // a NaN that no computation makes
constexpr int64_t kGuard = 32;                // floats in front; two cache lines

float GuardValue() {
  float value;
  std::memcpy(&value, &kGuardBits, sizeof value);
  return value;
}

bool IsGuard(float value) { return std::memcmp(&value, &kGuardBits, sizeof value) == 0; }

}  // namespace

uint64_t Random::Next() {
  state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

float Random::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return static_cast<float>(radius * std::cos(2.0 * std::acos(-1.0) * Uniform()));
}

std::vector<float> NormalVector(int64_t count, uint64_t seed, double scale, double shift) {
  Random random(seed);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& v : x) v = static_cast<float>(scale * random.Normal() + shift);
  return x;
}

std::vector<double> ToDouble(const std::vector<float>& x) { return {x.begin(), x.end()}; }

void GuardedRows::Free::operator()(float* p) const { std::free(p); }

void ExpectError(const Status& status, ErrorCode code, const std::vector<std::string>& parts) {
  EXPECT_EQ(ErrorCodeName(status.code()), std::string(ErrorCodeName(code))) << status.ToString();
  const std::string text = status.ToString();
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
  }
}

GuardedRows::GuardedRows(int64_t rows, int64_t width, int64_t ld, int64_t offset)
    : rows_(rows), width_(width), ld_(ld), front_(kGuard + offset) {
  size_ = front_ + (rows > 0 ? (rows - 1) * ld + width : 0);
  void* memory = nullptr;
  // posix_memalign, unlike aligned_alloc, takes a size that is no multiple of the alignment.
  if (posix_memalign(&memory, 64, static_cast<size_t>(size_) * sizeof(float)) != 0) std::abort();
  memory_.reset(static_cast<float*>(memory));
  std::fill(memory_.get(), memory_.get() + size_, GuardValue());
  rows_begin_ = memory_.get() + front_;
}

bool GuardedRows::Inside(int64_t index) const {
  return index >= front_ && (index - front_) % ld_ < width_;
}

void GuardedRows::Fill(const std::vector<float>& values) {
  for (int64_t r = 0; r < rows_; ++r) {
    std::copy_n(values.begin() + r * width_, width_, row(r));
  }
}

std::vector<float> GuardedRows::Values() const {
  std::vector<float> values;
  for (int64_t r = 0; r < rows_; ++r) {
    const float* from = rows_begin_ + r * ld_;
    values.insert(values.end(), from, from + width_);
  }
  return values;
}

void GuardedRows::FillNormal(uint64_t seed, double scale) {
  Fill(NormalVector(rows_ * width_, seed, scale));
}

reference::Matrix GuardedRows::ToMatrix() const {
  return reference::Matrix::From(rows_begin_, rows_, width_, ld_);
}

void GuardedRows::CheckGuards() const {
  for (int64_t i = 0; i < size_; ++i) {
    if (!Inside(i) && !IsGuard(memory_[static_cast<size_t>(i)])) {
      ADD_FAILURE() << "written outside the rows: float " << i - front_ << " from the first row";
      return;
    }
  }
}

GuardedFloats::GuardedFloats(int64_t count, float value) : rows_(1, count, count, 0) {
  std::fill_n(rows_.data(), count, value);
}

double ErrorRatio(const std::vector<float>& got, const std::vector<double>& want, double absolute,
                  double relative) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (got.size() != want.size()) return infinity;
  double worst = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], w = want[i];
    if (std::isnan(g) && std::isnan(w)) continue;
    if (std::isinf(g) && g == w) continue;
    if (!std::isfinite(g) || !std::isfinite(w)) return infinity;
    worst = std::max(worst, std::abs(g - w) / (absolute + relative * std::abs(w)));
  }
  return worst;
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& want, double absolute,
                double relative, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  if (ErrorRatio(got, want, absolute, relative) <= 1.0) return;
  for (size_t i = 0; i < got.size(); ++i) {
    const double ratio = ErrorRatio({got[i]}, {want[i]}, absolute, relative);
    if (ratio <= 1.0) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << got[i] << ", expected " << want[i]
                  << ", error over the bound by " << ratio << ", worst "
                  << ErrorRatio(got, want, absolute, relative);
    return;
  }
}

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want,
                    const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(float)) != 0) {
      ADD_FAILURE() << what << ": element " << i << " is " << got[i] << ", expected the bits of "
                    << want[i];
      return;
    }
  }
}

namespace {

void ForEachUpTo(Isa most, const std::function<void(Isa)>& test) {
  for (Isa isa : SupportedIsas()) {
    if (isa > most) break;
    SCOPED_TRACE(IsaName(isa));
    SetIsaForTest(isa);
    test(isa);
  }
}

}  // namespace

void ForEachIsa(const std::function<void(Isa)>& test) { ForEachUpTo(Isa::kAvx512, test); }
void ForEachIsaAndUnit(const std::function<void(Isa)>& test) {
  ForEachUpTo(Isa::kAmx, test);
  if (SupportedIsas().back() == Isa::kAmx || !EmulateTiles()) return;
  SCOPED_TRACE("amx, emulated");
  SetIsaForTest(Isa::kAmx);
  test(Isa::kAmx);
}

void ExpectUsesTiles(Isa isa, const std::function<void()>& test) {
  const int64_t before = EmulatedTileInstructions();
  test();
  if (isa < Isa::kAmx || SupportedIsas().back() == Isa::kAmx) return;
  EXPECT_GT(EmulatedTileInstructions(), before) << "tiles are not used";
}

Golden ReadGolden(const std::string& path) {
  Golden golden;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size) {
    ADD_FAILURE() << "cannot read " << path;
    return golden;
  }
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  if (header_size > bytes.size() - sizeof header_size) {
    ADD_FAILURE() << path << " is cut off";
    return golden;
  }
  const nlohmann::json header =
      nlohmann::json::parse(bytes.substr(sizeof header_size, header_size), nullptr, false);
  const char* data = bytes.data() + sizeof header_size + header_size;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      golden.metadata = value.get<std::map<std::string, std::string>>();
      continue;
    }
    Golden::Tensor& tensor = golden.tensors[name];
    tensor.shape = value.at("shape").get<std::vector<int64_t>>();
    const size_t begin = value.at("data_offsets").at(0), end = value.at("data_offsets").at(1);
    const std::string type = value.at("dtype");
    if (type == "F32") {
      tensor.f32.resize((end - begin) / sizeof(float));
      std::memcpy(tensor.f32.data(), data + begin, end - begin);
    } else if (type == "I64") {
      tensor.i64.resize((end - begin) / sizeof(int64_t));
      std::memcpy(tensor.i64.data(), data + begin, end - begin);
    } else {
      ADD_FAILURE() << path << ": tensor " << name << " is " << type;
    }
  }
  return golden;
}

}  // namespace attend::testing
