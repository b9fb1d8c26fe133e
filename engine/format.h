// The .attend container (FORMAT.md): reader, verifier and writer. A file is hostile data: nothing
// is read from it that Verify has not proved to lie inside it.
#ifndef ATTEND_ENGINE_FORMAT_H_
#define ATTEND_ENGINE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/status.h"

namespace attend {

struct LoadOptions;  // attend.h

enum class DType : uint32_t { kF32 = 1, kF16 = 2, kBf16 = 3, kI8 = 4, kU8 = 5, kI32 = 6 };
// Bytes of one element; 0 for a value that is none of the above.
size_t DTypeSize(DType dtype);
const char* DTypeName(DType dtype);  // "F32", ...

inline constexpr uint32_t kMaxRank = 8;
inline constexpr uint64_t kTensorAlignment = 64;
inline constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxTensors = 65536;
inline constexpr uint64_t kMaxNameBytes = 255;

enum class VerifyLevel {
  kStructure,  // everything but the tensors' checksums: header, tables, ranges, padding
  kFull,       // and the tensors' checksums
};

inline constexpr uint64_t kMaxValues = 65536;

// What is wrong with a file; one value a rule of FORMAT.md, where each is explained. Files and
// programs may store the numbers: none is ever changed or used again.
enum class FormatError : uint32_t {
  kOk = 0,
  kTooShort = 1,
  kMagic = 2,
  kEndianness = 3,
  kVersion = 4,
  kRequiredFeature = 5,
  kReserved = 6,
  kTruncated = 7,
  kTrailingBytes = 8,
  kHeaderSize = 9,
  kValueCount = 10,
  kTensorCount = 11,
  kTablesSize = 12,
  kHeaderChecksum = 13,
  kKeyLength = 14,
  kKeyPlace = 15,
  kKeyCharacter = 16,
  kKeyOrder = 17,
  kKeyDuplicate = 18,
  kValueType = 19,
  kValueUnused = 20,
  kValueBool = 21,
  kValueFloat = 22,
  kValuePlace = 23,
  kValueLength = 24,
  kValueText = 25,
  kNameLength = 26,
  kNamePlace = 27,
  kNameCharacter = 28,
  kNameOrder = 29,
  kNameDuplicate = 30,
  kTensorType = 31,
  kTensorRank = 32,
  kTensorUnused = 33,
  kTensorDimension = 34,
  kTensorOverflow = 35,
  kTensorBytes = 36,
  kTensorRange = 37,
  kTensorMisaligned = 38,
  kTensorOverlap = 39,
  kTensorHole = 40,
  kTensorPadding = 41,
  kHeaderEnd = 42,
  kHeaderPadding = 43,
  kDataEnd = 44,
  kTensorChecksum = 45,
};
inline constexpr uint32_t kNumFormatErrors = 46;
const char* FormatErrorName(FormatError error);  // "TENSOR_OVERLAP", ...
const char* FormatErrorText(FormatError error);  // a sentence for people

struct VerifyReport {
  FormatError error{};
  uint64_t offset = 0;    // the byte of the file where it was seen
  uint64_t expected = 0;  // where numbers say more
  uint64_t got = 0;
  bool ok() const { return static_cast<uint32_t>(error) == 0; }
};

// Checks `bytes`, at any address, against every rule of FORMAT.md. Pure; allocates nothing; never
// throws. Cost: the header's bytes and one page for each tensor that ends in padding; at kFull
// every byte.
VerifyReport Verify(std::span<const std::byte> bytes, VerifyLevel level) noexcept;

// One tensor of a verified file. The views live as long as the file's bytes.
struct TensorView {
  std::string_view name;
  DType dtype = DType::kF32;
  std::span<const uint64_t> shape;
  std::span<const std::byte> bytes;
  uint64_t num_elements() const;
};

// A verified file. Borrows the bytes. Lookups are by name; a key of another type is "not there".
class FileView {
 public:
  // No file: has nothing, finds nothing.
  FileView() = default;

  // Requires: bytes aligned to 8 (FileBytes and malloc's are); tensors are aligned to 64 if bytes
  // are. Errors: kInvalidArgument (bytes not aligned); kCorrupt with the rule and the byte;
  // kUnsupported for a newer version or an unknown required feature; a special message for what is
  // not an .attend file at all (empty, Git-LFS pointer, HTML, JSON, zip, pickle, safetensors, GGUF,
  // ...).
  static Result<FileView> Open(std::span<const std::byte> bytes, VerifyLevel level,
                               std::string_view where);

  std::optional<int64_t> FindInt(std::string_view key) const;
  std::optional<double> FindFloat(std::string_view key) const;
  std::optional<bool> FindBool(std::string_view key) const;
  std::optional<std::string_view> FindString(std::string_view key) const;
  std::optional<std::vector<std::string_view>> FindStrings(std::string_view key) const;
  std::optional<std::vector<int64_t>> FindInts(std::string_view key) const;
  std::vector<std::string_view> keys() const;  // sorted

  size_t num_tensors() const;
  TensorView tensor(size_t index) const;  // sorted by name, which is the order of the file
  std::optional<TensorView> FindTensor(std::string_view name) const;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit FileView(std::span<const std::byte> bytes);
  // The record of the value `key`, if it has that type.
  const std::byte* FindValue(std::string_view key, uint32_t type) const;

  std::span<const std::byte> bytes_;
  size_t num_values_ = 0;
  size_t num_tensors_ = 0;
};

// The bytes of a file, mapped read-only or read into memory. Open once, fstat, then map: never by
// path twice. A mapped file that is truncated in place raises SIGBUS when the lost part is read,
// and one that is overwritten in place changes under its reader; renaming another file over it is
// safe, and kRead is immune to all of that.
class FileBytes {
 public:
  enum class Mode { kMap, kRead };
  // kMap falls back to reading where mapping fails.
  // Errors: kInvalidArgument (a path that no file can have), kNotFound, kIo (a folder, a device, no
  // permission: says which), kCapacity (not enough memory).
  static Result<FileBytes> Open(const std::string& path, Mode mode);
  // Held as the options say. Errors: also kInvalidArgument (their mode).
  static Result<FileBytes> Open(const std::string& path, const LoadOptions& options);
  // Copies to an address aligned to 64. Throws std::bad_alloc when there is no memory.
  static FileBytes Copy(std::span<const std::byte> bytes);

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  std::span<const std::byte> bytes() const { return bytes_; }
  bool mapped() const { return mapped_; }
  // Why kMap read the file instead: an errno. 0: it did not.
  int map_error() const { return map_error_; }
  // Tells the system that `range`, a part of bytes(), will not be read again soon (mapped files
  // only; without effect on the contents).
  void Release(std::span<const std::byte> range) const;

 private:
  FileBytes() = default;
  void Free();
  // Room for `size` bytes aligned to 64; false if there is no memory.
  bool Allocate(size_t size);

  std::span<const std::byte> bytes_;
  bool mapped_ = false;
  int map_error_ = 0;
  std::byte* owned_ = nullptr;
};

// Writes a file: deterministic (the same contents give the same bytes, in whatever order they were
// set) and atomic (a temporary file beside it, fsync, rename, fsync of the folder). Tensors are
// pulled one at a time, sorted by name.
class FileWriter {
 public:
  // Fills `out` (exactly the tensor's bytes) when the writer gets to it.
  using Fill = std::function<Status(std::span<std::byte> out)>;

  void SetInt(std::string_view key, int64_t value);
  void SetFloat(std::string_view key, double value);
  void SetBool(std::string_view key, bool value);
  void SetString(std::string_view key, std::string_view value);
  void SetStrings(std::string_view key, std::span<const std::string> values);
  void SetInts(std::string_view key, std::span<const int64_t> values);
  void AddTensor(std::string_view name, DType dtype, std::vector<uint64_t> shape, Fill fill);
  size_t num_tensors() const { return tensors_.size(); }

  // Errors: kInvalidArgument (a duplicate or over-long name, a limit, a folder or device in place
  // of a file), kIo, kCapacity, or what a Fill returns. On an error nothing is left behind and an
  // existing `path` is untouched. A symbolic link is replaced, not followed.
  Status Write(const std::string& path) const;
  // The same into memory.
  Result<std::vector<std::byte>> WriteToBytes() const;

 private:
  friend class FileLayout;  // the sorted contents with their places (format_writer.cc)
  struct Value {
    std::string key;
    uint32_t type = 0;
    uint64_t scalar = 0;           // of int, float, bool
    uint64_t count = 0;            // of string, strings, ints
    std::vector<std::byte> bytes;  // of string, strings, ints
  };
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<uint64_t> shape;
    Fill fill;
  };
  std::vector<Value> values_;
  std::vector<Tensor> tensors_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_FORMAT_H_
