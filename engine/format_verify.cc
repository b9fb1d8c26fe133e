// Verify: the one place that decides whether bytes are an .attend file. Everything here is checked
// arithmetic on integers that an enemy chose; ranges are compared by subtraction, never by a sum.
#include "engine/format.h"
#include "engine/format_layout.h"

namespace attend {

namespace layout {

bool IsText(std::string_view text) noexcept {
  size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first == 0) return false;
    if (first < 0x80) {
      ++i;
      continue;
    }
    // The second byte's range is what rules out overlong forms, surrogates and > U+10FFFF.
    size_t length = 0;
    unsigned char low = 0x80, high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
      length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
      length = 3;
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
      length = 4;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next < low || next > high) return false;
      low = 0x80;
      high = 0xBF;
    }
    i += length;
  }
  return true;
}

}  // namespace layout

namespace {

using namespace layout;  // NOLINT: this file is about nothing else

// The rules that names share, by the error each gives in the value table and the tensor table.
struct NameErrors {
  FormatError length, place, character, order, duplicate;
};
constexpr NameErrors kKeyErrors = {FormatError::kKeyLength, FormatError::kKeyPlace,
                                   FormatError::kKeyCharacter, FormatError::kKeyOrder,
                                   FormatError::kKeyDuplicate};
constexpr NameErrors kNameErrors = {FormatError::kNameLength, FormatError::kNamePlace,
                                    FormatError::kNameCharacter, FormatError::kNameOrder,
                                    FormatError::kNameDuplicate};

class Verifier {
 public:
  explicit Verifier(std::span<const std::byte> bytes) noexcept
      : data_(bytes.data()), size_(bytes.size()) {}

  VerifyReport Run(VerifyLevel level) noexcept {
    if (CheckPreamble() && CheckSizes() && CheckHeaderChecksum() && CheckValues() &&
        CheckTensors() && CheckHeaderEnd() && level == VerifyLevel::kFull) {
      CheckData();
    }
    return report_;
  }

 private:
  bool Fail(FormatError error, uint64_t offset, uint64_t expected = 0, uint64_t got = 0) noexcept {
    report_ = {error, offset, expected, got};
    return false;
  }

  // Every byte of [begin, end) is zero; `end` is inside the file.
  bool CheckZeros(uint64_t begin, uint64_t end, FormatError error) noexcept {
    for (uint64_t i = begin; i < end; ++i) {
      if (data_[i] != std::byte{0}) return Fail(error, i, 0, static_cast<uint64_t>(data_[i]));
    }
    return true;
  }

  bool CheckPreamble() noexcept {
    if (size_ < kPreambleBytes) return Fail(FormatError::kTooShort, size_, kPreambleBytes, size_);
    for (uint64_t i = 0; i < kMagic.size(); ++i) {
      const uint64_t expected = static_cast<unsigned char>(kMagic[i]);
      const uint64_t got = static_cast<uint64_t>(data_[i]);
      if (got != expected) return Fail(FormatError::kMagic, i, expected, got);
    }
    const uint32_t tag = Load32(data_ + kEndianTagAt);
    if (tag != kEndianTag) return Fail(FormatError::kEndianness, kEndianTagAt, kEndianTag, tag);
    const uint32_t version = Load32(data_ + kVersionAt);
    if (version != kVersion) return Fail(FormatError::kVersion, kVersionAt, kVersion, version);
    const uint64_t required = Load64(data_ + kRequiredFeaturesAt);
    if ((required & ~kKnownRequiredFeatures) != 0) {
      return Fail(FormatError::kRequiredFeature, kRequiredFeaturesAt, kKnownRequiredFeatures,
                  required);
    }
    return CheckZeros(kReservedAt, kPreambleBytes, FormatError::kReserved);
  }

  bool CheckSizes() noexcept {
    const uint64_t file_bytes = Load64(data_ + kFileBytesAt);
    if (file_bytes > size_) return Fail(FormatError::kTruncated, size_, file_bytes, size_);
    if (file_bytes < size_) return Fail(FormatError::kTrailingBytes, file_bytes, file_bytes, size_);
    header_bytes_ = Load64(data_ + kHeaderBytesAt);
    if (header_bytes_ < kPreambleBytes || header_bytes_ > kMaxHeaderBytes ||
        header_bytes_ > size_ || header_bytes_ % kTensorAlignment != 0) {
      const uint64_t most = size_ < kMaxHeaderBytes ? size_ : kMaxHeaderBytes;
      return Fail(FormatError::kHeaderSize, kHeaderBytesAt, most, header_bytes_);
    }
    num_values_ = Load64(data_ + kValueCountAt);
    if (num_values_ > kMaxValues) {
      return Fail(FormatError::kValueCount, kValueCountAt, kMaxValues, num_values_);
    }
    num_tensors_ = Load64(data_ + kTensorCountAt);
    if (num_tensors_ > kMaxTensors) {
      return Fail(FormatError::kTensorCount, kTensorCountAt, kMaxTensors, num_tensors_);
    }
    // Cannot wrap: both counts were just bounded.
    pool_ = kPreambleBytes + num_values_ * kValueRecordBytes + num_tensors_ * kTensorRecordBytes;
    if (pool_ > header_bytes_) {
      return Fail(FormatError::kTablesSize, kHeaderBytesAt, pool_, header_bytes_);
    }
    return true;
  }

  bool CheckHeaderChecksum() noexcept {
    std::byte checksum[16];
    HeaderChecksum({data_, header_bytes_}, checksum);
    if (std::memcmp(checksum, data_ + kChecksumAt, sizeof(checksum)) != 0) {
      return Fail(FormatError::kHeaderChecksum, kChecksumAt, Load64(checksum),
                  Load64(data_ + kChecksumAt));
    }
    return true;
  }

  // The name of the record at `at`: the next bytes of the pool, greater than `*previous`.
  bool CheckName(uint64_t at, const NameErrors& errors, std::string_view* previous) noexcept {
    static_assert(kKeyOffsetAt == kNameOffsetAt && kKeyBytesAt == kNameBytesAt);
    const uint64_t length = Load32(data_ + at + kNameBytesAt);
    if (length == 0 || length > kMaxNameBytes) {
      return Fail(errors.length, at + kNameBytesAt, kMaxNameBytes, length);
    }
    const uint64_t offset = Load64(data_ + at + kNameOffsetAt);
    if (offset != pool_ || length > header_bytes_ - pool_) {
      return Fail(errors.place, at + kNameOffsetAt, pool_, offset);
    }
    const std::string_view name = Chars(data_ + offset, length);
    for (uint64_t i = 0; i < length; ++i) {
      if (!IsNameCharacter(name[i])) {
        return Fail(errors.character, offset + i, 0, static_cast<unsigned char>(name[i]));
      }
    }
    // The first name has an empty predecessor, and no name is empty.
    const int order = name.compare(*previous);
    if (order == 0) return Fail(errors.duplicate, offset);
    if (order < 0) return Fail(errors.order, offset);
    *previous = name;
    pool_ += length;
    return true;
  }

  bool CheckValues() noexcept {
    std::string_view previous;
    for (uint64_t i = 0; i < num_values_; ++i) {
      const uint64_t at = kPreambleBytes + i * kValueRecordBytes;
      if (!CheckName(at, kKeyErrors, &previous) || !CheckValue(at)) return false;
    }
    return true;
  }

  bool CheckValue(uint64_t at) noexcept {
    const uint32_t type = Load32(data_ + at + kValueTypeAt);
    const uint64_t payload = Load64(data_ + at + kValuePayloadAt);
    const uint64_t count = Load64(data_ + at + kValueElementsAt);
    if (type < kInt || type > kInts) {
      return Fail(FormatError::kValueType, at + kValueTypeAt, kInts, type);
    }
    if (type >= kString) return CheckPoolValue(at, type, payload, count);
    if (count != 0) return Fail(FormatError::kValueUnused, at + kValueElementsAt, 0, count);
    if (type == kBool && payload > 1) {
      return Fail(FormatError::kValueBool, at + kValuePayloadAt, 1, payload);
    }
    constexpr uint64_t kExponent = uint64_t{0x7FF} << 52;
    if (type == kFloat && (payload & kExponent) == kExponent) {
      return Fail(FormatError::kValueFloat, at + kValuePayloadAt, 0, payload);
    }
    return true;
  }

  // A string or array: the next bytes of the pool.
  bool CheckPoolValue(uint64_t at, uint32_t type, uint64_t payload, uint64_t count) noexcept {
    if (payload != pool_) {
      return Fail(FormatError::kValuePlace, at + kValuePayloadAt, pool_, payload);
    }
    const uint64_t element = type == kString ? 1 : type == kStrings ? 4 : 8;
    const uint64_t room = (header_bytes_ - pool_) / element;
    if (count > room) return Fail(FormatError::kValueLength, at + kValueElementsAt, room, count);
    if (type == kString && !IsText(Chars(data_ + pool_, count))) {
      return Fail(FormatError::kValueText, pool_);
    }
    const uint64_t lengths = pool_;
    pool_ += count * element;
    if (type != kStrings) return true;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t length = Load32(data_ + lengths + 4 * i);
      if (length > header_bytes_ - pool_) {
        return Fail(FormatError::kValueLength, lengths + 4 * i, header_bytes_ - pool_, length);
      }
      if (!IsText(Chars(data_ + pool_, length))) return Fail(FormatError::kValueText, pool_);
      pool_ += length;
    }
    return true;
  }

  uint64_t TensorRecord(uint64_t index) const noexcept {
    return kPreambleBytes + num_values_ * kValueRecordBytes + index * kTensorRecordBytes;
  }

  bool CheckTensors() noexcept {
    std::string_view previous;
    uint64_t cursor = header_bytes_;  // where the next tensor has to begin
    for (uint64_t i = 0; i < num_tensors_; ++i) {
      const uint64_t at = TensorRecord(i);
      if (!CheckName(at, kNameErrors, &previous) || !CheckShape(at) || !CheckRange(at, &cursor)) {
        return false;
      }
    }
    if (cursor != size_) return Fail(FormatError::kDataEnd, cursor, cursor, size_);
    return true;
  }

  // Type, rank and dimensions, and that their product is the stated number of bytes.
  bool CheckShape(uint64_t at) noexcept {
    const uint32_t dtype = Load32(data_ + at + kDTypeAt);
    uint64_t bytes = DTypeSize(static_cast<DType>(dtype));
    if (bytes == 0) return Fail(FormatError::kTensorType, at + kDTypeAt, 0, dtype);
    const uint32_t rank = Load32(data_ + at + kRankAt);
    if (rank == 0 || rank > kMaxRank) {
      return Fail(FormatError::kTensorRank, at + kRankAt, kMaxRank, rank);
    }
    const uint32_t unused = Load32(data_ + at + kTensorUnusedAt);
    if (unused != 0) return Fail(FormatError::kTensorUnused, at + kTensorUnusedAt, 0, unused);
    for (uint32_t i = 0; i < kMaxRank; ++i) {
      const uint64_t dimension_at = at + kShapeAt + 8 * i;
      const uint64_t dimension = Load64(data_ + dimension_at);
      if (i >= rank) {
        if (dimension != 0) return Fail(FormatError::kTensorUnused, dimension_at, 0, dimension);
        continue;
      }
      if (dimension == 0) return Fail(FormatError::kTensorDimension, dimension_at, 1, 0);
      if (__builtin_mul_overflow(bytes, dimension, &bytes)) {
        return Fail(FormatError::kTensorOverflow, dimension_at, 0, dimension);
      }
    }
    const uint64_t stated = Load64(data_ + at + kDataBytesAt);
    if (stated != bytes) return Fail(FormatError::kTensorBytes, at + kDataBytesAt, bytes, stated);
    return true;
  }

  // That the bytes are inside the file, begin at `*cursor` and are padded with zeros.
  bool CheckRange(uint64_t at, uint64_t* cursor) noexcept {
    const uint64_t offset_at = at + kDataOffsetAt;
    const uint64_t offset = Load64(data_ + offset_at);
    const uint64_t bytes = Load64(data_ + at + kDataBytesAt);
    if (bytes > size_ || offset > size_ - bytes) {
      return Fail(FormatError::kTensorRange, offset_at, size_, offset);
    }
    if (offset % kTensorAlignment != 0) {
      return Fail(FormatError::kTensorMisaligned, offset_at, *cursor, offset);
    }
    if (offset < *cursor) return Fail(FormatError::kTensorOverlap, offset_at, *cursor, offset);
    if (offset > *cursor) return Fail(FormatError::kTensorHole, offset_at, *cursor, offset);
    const uint64_t end = offset + bytes;  // at most size_, as was just proved
    const uint64_t padding = PaddingAfter(end);
    if (padding > size_ - end) return Fail(FormatError::kDataEnd, end, end + padding, size_);
    *cursor = end + padding;
    return CheckZeros(end, *cursor, FormatError::kTensorPadding);
  }

  bool CheckHeaderEnd() noexcept {
    if (header_bytes_ - pool_ != PaddingAfter(pool_)) {
      return Fail(FormatError::kHeaderEnd, kHeaderBytesAt, pool_ + PaddingAfter(pool_),
                  header_bytes_);
    }
    return CheckZeros(pool_, header_bytes_, FormatError::kHeaderPadding);
  }

  bool CheckData() noexcept {
    for (uint64_t i = 0; i < num_tensors_; ++i) {
      const std::byte* record = data_ + TensorRecord(i);
      const uint64_t offset = Load64(record + kDataOffsetAt);
      const uint64_t stated = Load64(record + kDataChecksumAt);
      const uint64_t got = DataChecksum({data_ + offset, Load64(record + kDataBytesAt)});
      if (got != stated) return Fail(FormatError::kTensorChecksum, offset, stated, got);
    }
    return true;
  }

  const std::byte* data_;
  uint64_t size_;
  VerifyReport report_;
  uint64_t header_bytes_ = 0;
  uint64_t num_values_ = 0;
  uint64_t num_tensors_ = 0;
  uint64_t pool_ = 0;  // the next byte of the pool that nothing has claimed yet
};

}  // namespace

VerifyReport Verify(std::span<const std::byte> bytes, VerifyLevel level) noexcept {
  return Verifier(bytes).Run(level);
}

}  // namespace attend
