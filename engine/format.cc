#include "engine/format.h"

#include <string>
#include <utility>

#include "engine/format_guess.h"
#include "engine/format_layout.h"

namespace attend {
namespace {

using namespace layout;  // NOLINT: this file is about nothing else

const std::byte* ValueRecord(const std::byte* data, size_t index) {
  return data + kPreambleBytes + index * kValueRecordBytes;
}

const std::byte* TensorRecord(const std::byte* data, size_t num_values, size_t index) {
  return data + kPreambleBytes + num_values * kValueRecordBytes + index * kTensorRecordBytes;
}

// The key of a value record or the name of a tensor record: both begin alike.
std::string_view RecordName(const std::byte* data, const std::byte* record) {
  return Chars(data + Load64(record + kNameOffsetAt), Load32(record + kNameBytesAt));
}

// The index of the record called `name` among `count` sorted ones; `count` if there is none.
template <typename RecordAt>
size_t FindRecord(const std::byte* data, size_t count, std::string_view name, RecordAt record_at) {
  size_t begin = 0, end = count;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    const int order = RecordName(data, record_at(middle)).compare(name);
    if (order == 0) return middle;
    if (order < 0) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return count;
}

// What to do about a file that breaks `error`'s rule.
const char* HintFor(FormatError error) {
  switch (error) {
    case FormatError::kVersion:
    case FormatError::kRequiredFeature:
      return "it was written by a newer attend: update this one, or convert the model again";
    case FormatError::kTruncated:
      return "fetch it again, and compare its size with the original's";
    case FormatError::kTrailingBytes:
      return "something was appended to it: fetch it again";
    case FormatError::kHeaderChecksum:
    case FormatError::kTensorChecksum:
      return "fetch it again; if that does not help, the disk or memory may be failing";
    default:
      return "it was damaged, or written by something else than attend: convert the model again";
  }
}

// The name of the tensor whose data begin at `offset`.
std::string TensorAt(const std::byte* data, uint64_t offset) {
  const uint64_t num_values = Load64(data + kValueCountAt);
  const uint64_t num_tensors = Load64(data + kTensorCountAt);
  for (uint64_t i = 0; i < num_tensors; ++i) {
    const std::byte* record = TensorRecord(data, num_values, i);
    if (Load64(record + kDataOffsetAt) == offset) return std::string(RecordName(data, record));
  }
  return {};
}

Status ReportToStatus(std::span<const std::byte> bytes, const VerifyReport& report,
                      std::string_view where) {
  if (report.error == FormatError::kTooShort || report.error == FormatError::kMagic) {
    const FormatGuess guess = GuessFormat(bytes);
    return Status(ErrorCode::kCorrupt, guess.what, std::string(where), guess.hint);
  }
  std::string what = std::string(FormatErrorName(report.error)) + ": " +
                     FormatErrorText(report.error) + " At byte " + std::to_string(report.offset);
  // Only a full verification gets here, after the tables were found right.
  if (report.error == FormatError::kTensorChecksum) {
    what += ", tensor " + TensorAt(bytes.data(), report.offset);
  }
  what += ": expected " + std::to_string(report.expected) + ", got " + std::to_string(report.got);
  const bool newer =
      report.error == FormatError::kVersion || report.error == FormatError::kRequiredFeature;
  return Status(newer ? ErrorCode::kUnsupported : ErrorCode::kCorrupt, std::move(what),
                std::string(where), HintFor(report.error));
}

}  // namespace

size_t DTypeSize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBf16:
      return 2;
    case DType::kI8:
    case DType::kU8:
      return 1;
  }
  return 0;
}

const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBf16:
      return "BF16";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kI32:
      return "I32";
  }
  return "UNKNOWN";
}

uint64_t TensorView::num_elements() const {
  uint64_t count = 1;  // Verify proved that the product fits
  for (const uint64_t dimension : shape) count *= dimension;
  return count;
}

FileView::FileView(std::span<const std::byte> bytes)
    : bytes_(bytes),
      num_values_(Load64(bytes.data() + kValueCountAt)),
      num_tensors_(Load64(bytes.data() + kTensorCountAt)) {}

Result<FileView> FileView::Open(std::span<const std::byte> bytes, VerifyLevel level,
                                std::string_view where) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) != 0) {
    return Status(ErrorCode::kInvalidArgument, "The bytes of the file are not aligned to 8.",
                  std::string(where), "copy them with FileBytes::Copy");
  }
  const VerifyReport report = Verify(bytes, level);
  if (!report.ok()) return ReportToStatus(bytes, report, where);
  return FileView(bytes);
}

const std::byte* FileView::FindValue(std::string_view key, uint32_t type) const {
  const std::byte* data = bytes_.data();
  const size_t index =
      FindRecord(data, num_values_, key, [&](size_t i) { return ValueRecord(data, i); });
  if (index == num_values_) return nullptr;
  const std::byte* record = ValueRecord(data, index);
  return Load32(record + kValueTypeAt) == type ? record : nullptr;
}

std::optional<int64_t> FileView::FindInt(std::string_view key) const {
  const std::byte* record = FindValue(key, kInt);
  if (record == nullptr) return std::nullopt;
  return std::bit_cast<int64_t>(Load64(record + kValuePayloadAt));
}

std::optional<double> FileView::FindFloat(std::string_view key) const {
  const std::byte* record = FindValue(key, kFloat);
  if (record == nullptr) return std::nullopt;
  return std::bit_cast<double>(Load64(record + kValuePayloadAt));
}

std::optional<bool> FileView::FindBool(std::string_view key) const {
  const std::byte* record = FindValue(key, kBool);
  if (record == nullptr) return std::nullopt;
  return Load64(record + kValuePayloadAt) != 0;
}

std::optional<std::string_view> FileView::FindString(std::string_view key) const {
  const std::byte* record = FindValue(key, kString);
  if (record == nullptr) return std::nullopt;
  return Chars(bytes_.data() + Load64(record + kValuePayloadAt), Load64(record + kValueElementsAt));
}

std::optional<std::vector<std::string_view>> FileView::FindStrings(std::string_view key) const {
  const std::byte* record = FindValue(key, kStrings);
  if (record == nullptr) return std::nullopt;
  const uint64_t count = Load64(record + kValueElementsAt);
  const std::byte* lengths = bytes_.data() + Load64(record + kValuePayloadAt);
  const std::byte* text = lengths + 4 * count;
  std::vector<std::string_view> strings;
  strings.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    strings.push_back(Chars(text, Load32(lengths + 4 * i)));
    text += strings.back().size();
  }
  return strings;
}

std::optional<std::vector<int64_t>> FileView::FindInts(std::string_view key) const {
  const std::byte* record = FindValue(key, kInts);
  if (record == nullptr) return std::nullopt;
  std::vector<int64_t> values(Load64(record + kValueElementsAt));
  if (!values.empty()) {  // memcpy wants no null pointer, even for nothing
    std::memcpy(values.data(), bytes_.data() + Load64(record + kValuePayloadAt),
                values.size() * sizeof(int64_t));
  }
  return values;
}

std::vector<std::string_view> FileView::keys() const {
  std::vector<std::string_view> keys(num_values_);
  for (size_t i = 0; i < num_values_; ++i) {
    keys[i] = RecordName(bytes_.data(), ValueRecord(bytes_.data(), i));
  }
  return keys;
}

size_t FileView::num_tensors() const { return num_tensors_; }

TensorView FileView::tensor(size_t index) const {
  const std::byte* data = bytes_.data();
  const std::byte* record = TensorRecord(data, num_values_, index);
  TensorView view;
  view.name = RecordName(data, record);
  view.dtype = static_cast<DType>(Load32(record + kDTypeAt));
  view.shape = {reinterpret_cast<const uint64_t*>(record + kShapeAt), Load32(record + kRankAt)};
  view.bytes = {data + Load64(record + kDataOffsetAt), Load64(record + kDataBytesAt)};
  return view;
}

std::optional<TensorView> FileView::FindTensor(std::string_view name) const {
  const std::byte* data = bytes_.data();
  const size_t index = FindRecord(data, num_tensors_, name,
                                  [&](size_t i) { return TensorRecord(data, num_values_, i); });
  if (index == num_tensors_) return std::nullopt;
  return tensor(index);
}

}  // namespace attend
