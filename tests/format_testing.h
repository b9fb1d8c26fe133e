// A small .attend file that tests damage on purpose, and the means to do it.
#ifndef ATTEND_TESTS_FORMAT_TESTING_H_
#define ATTEND_TESTS_FORMAT_TESTING_H_

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format.h"
#include "engine/format_layout.h"

namespace attend::testing {

// A fill that gives every byte of every tensor a value of its own.
inline FileWriter::Fill Pattern(uint32_t seed) {
  return [seed](std::span<std::byte> out) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<std::byte>((seed * 97 + i * 31 + i / 256) & 0xFF);
    }
    return Status();
  };
}

// One value of each type and tensors with and without padding. Keys and names have equal lengths,
// so that one can be made another.
inline FileWriter SmallWriter() {
  FileWriter writer;
  writer.SetBool("k0", true);
  writer.SetFloat("k1", 1.5);
  writer.SetInt("k2", -7);
  writer.SetInts("k3", std::vector<int64_t>{1, -2});
  writer.SetString("k4", "h\xC3\xA9llo");
  writer.SetStrings("k5", std::vector<std::string>{"one", "", "two"});
  writer.AddTensor("alpha", DType::kF32, {2, 3}, Pattern(1));
  writer.AddTensor("betas", DType::kI8, {64}, Pattern(2));
  writer.AddTensor("gamma", DType::kBf16, {5, 1, 1}, Pattern(3));
  return writer;
}

// The bytes of a file with access to its fields. Offsets are FORMAT.md's.
class DamagedFile {
 public:
  explicit DamagedFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  static DamagedFile Small() { return DamagedFile(*SmallWriter().WriteToBytes()); }

  std::vector<std::byte>& bytes() { return bytes_; }
  std::byte* at(uint64_t offset) { return bytes_.data() + offset; }
  uint64_t Get(uint64_t offset) { return layout::Load64(at(offset)); }
  void Put32(uint64_t offset, uint64_t value) {
    layout::Store32(at(offset), static_cast<uint32_t>(value));
  }
  void Put64(uint64_t offset, uint64_t value) { layout::Store64(at(offset), value); }
  void PutText(uint64_t offset, std::string_view text) {
    std::memcpy(at(offset), text.data(), text.size());
  }

  uint64_t Value(uint64_t index) {
    return layout::kPreambleBytes + index * layout::kValueRecordBytes;
  }
  uint64_t Tensor(uint64_t index) {
    return Value(Get(layout::kValueCountAt)) + index * layout::kTensorRecordBytes;
  }
  uint64_t KeyText(uint64_t index) { return Get(Value(index) + layout::kKeyOffsetAt); }
  uint64_t NameText(uint64_t index) { return Get(Tensor(index) + layout::kNameOffsetAt); }
  uint64_t Payload(uint64_t index) { return Get(Value(index) + layout::kValuePayloadAt); }
  uint64_t Data(uint64_t index) { return Get(Tensor(index) + layout::kDataOffsetAt); }
  uint64_t header_bytes() { return Get(layout::kHeaderBytesAt); }

  // Gives tensor `index` the type and shape, and the size that goes with them if it has one.
  void Reshape(uint64_t index, DType dtype, const std::vector<uint64_t>& shape) {
    const uint64_t record = Tensor(index);
    Put32(record + layout::kDTypeAt, static_cast<uint32_t>(dtype));
    Put32(record + layout::kRankAt, shape.size());
    uint64_t bytes = DTypeSize(dtype);
    for (size_t i = 0; i < kMaxRank; ++i) {
      Put64(record + layout::kShapeAt + 8 * i, i < shape.size() ? shape[i] : 0);
      if (i < shape.size()) bytes *= shape[i];  // wraps, as a careless reader's would
    }
    Put64(record + layout::kDataBytesAt, bytes);
  }

  // Makes the stated size of the file and the checksum of the header right again, so that the rule
  // under test is what refuses the file. Headers of nonsense sizes keep their checksum.
  void Seal(bool with_size = true) {
    if (bytes_.size() < layout::kPreambleBytes) return;
    if (with_size) Put64(layout::kFileBytesAt, bytes_.size());
    const uint64_t size = header_bytes();
    if (size < layout::kPreambleBytes || size > bytes_.size()) return;
    std::byte checksum[16];
    layout::HeaderChecksum({bytes_.data(), size}, checksum);
    std::memcpy(at(layout::kChecksumAt), checksum, sizeof(checksum));
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace attend::testing

#endif  // ATTEND_TESTS_FORMAT_TESTING_H_
