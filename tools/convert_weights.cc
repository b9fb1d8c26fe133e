// Weights on their way from a safetensors file to the .attend file, in pieces of bounded size.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert_source.h"
#include "tools/json.h"

namespace attend {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

float WidenF16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24, exact
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// To the nearest, ties to even. `value` is finite, and so is the result: what would be rounded to
// infinity becomes the largest number.
uint16_t NarrowBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto narrow = static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
  return (narrow & 0x7F80u) == 0x7F80u ? static_cast<uint16_t>(narrow - 1) : narrow;
}

// A tensor's values, widened to f32 and checked, in pieces of whole rows (or parts of one row that
// is longer than a piece).
class PieceReader {
 public:
  explicit PieceReader(const SourceTensor& source)
      : source_(source), total_(source.num_elements()), row_(source.row_size()) {
    const uint64_t fit = kPieceBytes / sizeof(float);
    step_ = row_ >= fit ? row_ : fit / std::max<uint64_t>(row_, 1) * row_;
  }

  uint64_t row_size() const { return row_; }

  // The next values and the index of the first; empty at the end.
  Result<std::span<const float>> Next(uint64_t* first) {
    *first = next_;
    const uint64_t count = std::min(step_, total_ - next_);
    if (count == 0) return std::span<const float>();
    const size_t size = StoredTypeBits(source_.stored->type) / 8;
    bytes_.resize(static_cast<size_t>(count) * size);
    values_.resize(static_cast<size_t>(count));
    if (source_.transposed) {
      ATTEND_RETURN_IF_ERROR(ReadTurned(next_ / row_, count / row_, size));
    } else {
      const uint64_t at = source_.row * row_ + next_;
      ATTEND_RETURN_IF_ERROR(source_.file->Read(*source_.stored, at * size, bytes_));
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      const float value = Load(i);
      if (!std::isfinite(value)) return NotFinite(next_ + i, value);
      values_[i] = value;
    }
    next_ += count;
    return std::span<const float>(values_);
  }

  // The bytes of the values that Next gave, as the folder has them.
  std::span<const std::byte> raw() const { return bytes_; }

 private:
  float Load(size_t i) const {
    if (source_.stored->type == StoredType::kF32) {
      float value;
      std::memcpy(&value, bytes_.data() + i * 4, 4);
      return value;
    }
    uint16_t bits;
    std::memcpy(&bits, bytes_.data() + i * 2, 2);
    if (source_.stored->type == StoredType::kF16) return WidenF16(bits);
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

  // Rows [first, first + rows) of the turned tensor: of every stored row, that many columns.
  Status ReadTurned(uint64_t first, uint64_t rows, size_t size) {
    columns_.resize(static_cast<size_t>(rows) * size);
    const uint64_t stored_row = source_.stored->shape.back();
    for (uint64_t k = 0; k < row_; ++k) {
      const uint64_t at = k * stored_row + source_.row + first;
      ATTEND_RETURN_IF_ERROR(source_.file->Read(*source_.stored, at * size, columns_));
      for (uint64_t n = 0; n < rows; ++n) {
        std::memcpy(bytes_.data() + (n * row_ + k) * size, columns_.data() + n * size, size);
      }
    }
    return {};
  }

  // `index` counts from the beginning of what is read; the place is that in the folder's tensor.
  Status NotFinite(uint64_t index, float value) const {
    const bool vector = source_.stored->shape.size() < 2;
    uint64_t row = source_.row + index / row_, column = index % row_;
    if (source_.transposed) std::swap(row, column);
    const std::string place =
        vector ? "element " + std::to_string(source_.row * row_ + index)
               : "row " + std::to_string(row) + ", column " + std::to_string(column);
    const char* name = std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity";
    return {ErrorCode::kCorrupt,
            "the tensor " + Quoted(source_.stored->name) + " has " + name + " at " + place +
                "; expected finite weights",
            source_.file->path(), "the training diverged or the file is damaged"};
  }

  const SourceTensor source_;
  const uint64_t total_;
  const uint64_t row_;
  uint64_t step_ = 0;
  uint64_t next_ = 0;
  std::vector<std::byte> bytes_, columns_;
  std::vector<float> values_;
};

// Calls take(first index, values, bytes as stored) for all of `source`.
template <typename Take>
Status ForEachPiece(const SourceTensor& source, const Take& take) {
  PieceReader reader(source);
  while (true) {
    uint64_t first = 0;
    auto piece = reader.Next(&first);
    if (!piece.ok()) return piece.status();
    if (piece->empty()) return {};
    take(first, *piece, reader.raw());
  }
}

Status FillAsStored(const SourceTensor& source, std::span<std::byte> out) {
  size_t done = 0;
  return ForEachPiece(source,
                      [&](uint64_t, std::span<const float>, std::span<const std::byte> raw) {
                        std::memcpy(out.data() + done, raw.data(), raw.size());
                        done += raw.size();
                      });
}

Status FillBf16(const SourceTensor& source, std::span<std::byte> out) {
  return ForEachPiece(
      source, [&](uint64_t first, std::span<const float> values, std::span<const std::byte>) {
        for (size_t i = 0; i < values.size(); ++i) {
          const uint16_t narrow = NarrowBf16(values[i]);
          std::memcpy(out.data() + (first + i) * sizeof(narrow), &narrow, sizeof(narrow));
        }
      });
}

float RowScale(std::span<const float> row) {
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::fabs(value));
  const float scale = largest / 127.0f;
  // Rounded up, the scale of the largest floats would give infinity for 127.
  return std::isfinite(scale * 127.0f) ? scale : std::nextafter(scale, 0.0f);
}

// A piece holds whole rows, so a row's scale is known when its values are rounded.
Status FillInt8(const SourceTensor& source, std::span<std::byte> out) {
  const size_t row_size = source.row_size();
  return ForEachPiece(
      source, [&](uint64_t first, std::span<const float> values, std::span<const std::byte>) {
        for (size_t begin = 0; begin < values.size(); begin += row_size) {
          const auto row = values.subspan(begin, row_size);
          const float scale = RowScale(row);
          for (size_t c = 0; c < row_size; ++c) {
            // nearbyint rounds half to even. A row so small that its scale is 0 is a row of zeros.
            const float rounded = scale == 0 ? 0.0f : std::nearbyint(row[c] / scale);
            const auto q = static_cast<int8_t>(std::clamp(rounded, -127.0f, 127.0f));
            out[first + begin + c] = std::bit_cast<std::byte>(q);
          }
        }
      });
}

Status FillScales(const SourceTensor& source, std::span<std::byte> out) {
  const size_t row_size = source.row_size();
  return ForEachPiece(source, [&](uint64_t first, std::span<const float> values,
                                  std::span<const std::byte>) {
    for (size_t begin = 0; begin < values.size(); begin += row_size) {
      const float scale = RowScale(values.subspan(begin, row_size));
      std::memcpy(out.data() + (first + begin) / row_size * sizeof(scale), &scale, sizeof(scale));
    }
  });
}

DType KeptType(StoredType type) {
  if (type == StoredType::kF16) return DType::kF16;
  return type == StoredType::kBf16 ? DType::kBf16 : DType::kF32;
}

}  // namespace

uint64_t SourceTensor::row_size() const {
  const std::vector<uint64_t>& shape = stored->shape;
  if (transposed) return shape.front();
  // Parts of a vector are counted by element.
  if (shape.empty() || (shape.size() == 1 && rows > 0)) return 1;
  return shape.back();
}

uint64_t SourceTensor::num_elements() const {
  return rows > 0 ? rows * row_size() : stored->num_elements();
}

void AddWeight(const SourceTensor& source, const TensorSpec& spec, WeightStorage storage,
               FileWriter* writer) {
  const auto fill = [&](auto function) {
    return [source, function](std::span<std::byte> out) { return function(source, out); };
  };
  if (storage == WeightStorage::kInt8 && spec.quantizable && spec.shape.size() == 2) {
    writer->AddTensor(spec.name, DType::kI8, spec.shape, fill(FillInt8));
    writer->AddTensor(spec.name + ".scale", DType::kF32, {spec.shape[0]}, fill(FillScales));
  } else if (storage == WeightStorage::kBf16 && spec.shape.size() == 2) {
    writer->AddTensor(spec.name, DType::kBf16, spec.shape, fill(FillBf16));
  } else {
    writer->AddTensor(spec.name, KeptType(source.stored->type), spec.shape, fill(FillAsStored));
  }
}

}  // namespace attend
