// The safetensors format: eight bytes of length, a JSON header, data. Everything the header claims
// is checked when a file is opened; data is read in pieces, so nothing of it is held.
#ifndef ATTEND_TOOLS_SAFETENSORS_H_
#define ATTEND_TOOLS_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/status.h"
#include "tools/folder.h"

namespace attend {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
inline constexpr size_t kMaxSafetensorsRank = 8;
inline constexpr size_t kMaxSafetensorsName = 1024;

// The element types that the format knows. Weights are read from kF32, kF16 and kBf16 only.
enum class StoredType : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};
const char* StoredTypeName(StoredType type);  // as in the header: "F32"
uint64_t StoredTypeBits(StoredType type);     // bits of one element
bool IsWeightType(StoredType type);           // kF32, kF16, kBf16

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::kF32;
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // in the file
  uint64_t size_bytes = 0;

  uint64_t num_elements() const;
  std::string Describe() const;  // "F32 [3, 60]"
};

// Checks a header against the length of the file it begins and returns its tensors, sorted by name.
// `header` is what follows the eight bytes of length.
// Rules: one JSON object from the first byte on, only spaces behind it; no key twice; __metadata__
// holds strings; every tensor has dtype, shape and data_offsets and nothing else; the data of the
// tensors covers the rest of the file exactly: no hole, no overlap, nothing behind.
// Errors: kCorrupt naming tensor, expected, got.
Result<std::vector<StoredTensor>> ParseSafetensorsHeader(std::string_view header,
                                                         uint64_t file_bytes,
                                                         std::string_view where);

// An open file.
class SafetensorsFile {
 public:
  // Errors: as InputFile::Open; kCorrupt; what is no safetensors file at all is named.
  static Result<SafetensorsFile> Open(InputFile file);

  const std::string& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // by name
  const StoredTensor* Find(std::string_view name) const;                 // null if not there

  // Reads `out.size()` bytes of `tensor` from its byte `offset`. Errors: kIo, kCorrupt.
  Status Read(const StoredTensor& tensor, uint64_t offset, std::span<std::byte> out) const;

 private:
  SafetensorsFile(InputFile file, std::vector<StoredTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  InputFile file_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace attend

#endif  // ATTEND_TOOLS_SAFETENSORS_H_
