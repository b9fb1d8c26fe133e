// What the kernel tests share: seeded numbers, guarded rows, comparison, every ISA, golden files.
#ifndef ATTEND_TESTS_TESTING_H_
#define ATTEND_TESTS_TESTING_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attend/status.h"
#include "kernels/isa.h"
#include "tests/reference.h"

namespace attend::testing {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A small generator of numbers that are the same on every machine (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  double Uniform();  // [0, 1)
  float Normal();    // mean 0, variance 1
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

std::vector<float> NormalVector(int64_t count, uint64_t seed, double scale = 1.0,
                                double shift = 0.0);
std::vector<double> ToDouble(const std::vector<float>& x);

// Fails the test if `status` has not this code, or its text lacks one of `parts`.
void ExpectError(const Status& status, ErrorCode code, const std::vector<std::string>& parts);

// `rows` rows of `width` floats, `ld` apart, that begin `offset` floats behind a 64-byte border. In
// front of, between and behind the rows stands a pattern that CheckGuards looks for. The allocation
// ends with the last row, so that the address sanitizer sees the first float read behind it.
class GuardedRows {
 public:
  GuardedRows(int64_t rows, int64_t width, int64_t ld, int64_t offset);

  float* data() { return rows_begin_; }
  int64_t ld() const { return ld_; }
  float* row(int64_t r) { return rows_begin_ + r * ld_; }

  void Fill(const std::vector<float>& values);  // rows * width of them
  std::vector<float> Values() const;
  void FillNormal(uint64_t seed, double scale = 1.0);
  reference::Matrix ToMatrix() const;

  // Fails the test if anything outside the rows was written.
  void CheckGuards() const;

 private:
  struct Free {
    void operator()(float* p) const;
  };
  bool Inside(int64_t index) const;

  int64_t rows_, width_, ld_, front_, size_;
  std::unique_ptr<float[], Free> memory_;
  float* rows_begin_;
};

// 64-byte aligned floats, filled with `value`.
class GuardedFloats {
 public:
  explicit GuardedFloats(int64_t count, float value = 0.0f);
  float* data() { return rows_.data(); }

 private:
  GuardedRows rows_;
};

// The largest |got - want| / (absolute + relative |want|). A NaN or inf where the other has none,
// or another inf, counts as infinite.
double ErrorRatio(const std::vector<float>& got, const std::vector<double>& want, double absolute,
                  double relative);
// Fails the test, and says where, if the error ratio is above 1.
void ExpectNear(const std::vector<float>& got, const std::vector<double>& want, double absolute,
                double relative, const std::string& what);
// Fails the test if one bit differs.
void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want,
                    const std::string& what);

// Runs `test` once for each Highway level that this CPU has, bound to it.
void ForEachIsa(const std::function<void(Isa)>& test);
// Also those that differ in their units alone (VNNI, BF16, AMX), which GEMMs and attention use. AMX
// is emulated where this CPU has AVX-512 BF16 but no tiles (tests/tile_emulator.h).
void ForEachIsaAndUnit(const std::function<void(Isa)>& test);
// Runs `test`; where AMX is emulated, fails if it has used no tile.
void ExpectUsesTiles(Isa isa, const std::function<void()>& test);

// A golden file: F32 and I64 tensors by name, and the metadata.
struct Golden {
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> f32;
    std::vector<int64_t> i64;
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};
// Reads a safetensors file; fails the test and returns what there is if it cannot.
Golden ReadGolden(const std::string& path);

}  // namespace attend::testing

#endif  // ATTEND_TESTS_TESTING_H_
