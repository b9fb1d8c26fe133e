// The .attend container (FORMAT.md): reader, verifier and writer. A file is hostile data: nothing is
// read from it that Verify has not proved to lie inside it.
#ifndef ATTEND_ENGINE_FORMAT_H_
#define ATTEND_ENGINE_FORMAT_H_

#include <array>
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

// What is wrong with a file; one value a rule of FORMAT.md. kOk is 0.
enum class FormatError : uint32_t;
const char* FormatErrorName(FormatError error);  // "TENSOR_OVERLAP", ...
const char* FormatErrorText(FormatError error);  // a sentence for people

struct VerifyReport {
  FormatError error{};
  uint64_t offset = 0;    // the byte of the file where it was seen
  uint64_t expected = 0;  // where numbers say more
  uint64_t got = 0;
  bool ok() const { return static_cast<uint32_t>(error) == 0; }
};

// Checks `bytes` against every rule of FORMAT.md. Pure; allocates nothing; never throws.
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
  // Errors: kCorrupt with the rule and the byte; kUnsupported for a newer version or an unknown
  // required feature; a special message for what is not an .attend file at all (empty, Git-LFS
  // pointer, HTML, JSON, zip, pickle, safetensors, GGUF).
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
  TensorView tensor(size_t index) const;  // in the order of the file
  std::optional<TensorView> FindTensor(std::string_view name) const;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// The bytes of a file, mapped read-only or read into memory. Open once, fstat, then map: never by
// path twice.
class FileBytes {
 public:
  enum class Mode { kMap, kRead };
  // Errors: kNotFound, kIo (a folder, a device, no permission: says which), kCapacity.
  static Result<FileBytes> Open(const std::string& path, Mode mode);
  static FileBytes Copy(std::span<const std::byte> bytes);

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  std::span<const std::byte> bytes() const { return bytes_; }
  // Tells the system that [begin, begin+size) will not be read again soon (mapped files only).
  void Release(std::span<const std::byte> range) const;

 private:
  FileBytes() = default;
  std::span<const std::byte> bytes_;
  bool mapped_ = false;
  void* owned_ = nullptr;
};

// Writes a file: deterministic (the same calls give the same bytes, keys sorted) and atomic (a
// temporary file beside it, fsync, rename, fsync of the folder). Tensors are pulled one at a time.
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

  // Errors: kInvalidArgument (a duplicate or over-long name, a limit), kIo, or what a Fill returns.
  // On an error nothing is left behind and an existing `path` is untouched.
  Status Write(const std::string& path) const;
  // The same into memory.
  Result<std::vector<std::byte>> WriteToBytes() const;

 private:
  struct Value {
    uint32_t type = 0;
    std::vector<std::byte> bytes;
  };
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<uint64_t> shape;
    Fill fill;
  };
  std::vector<std::pair<std::string, Value>> values_;
  std::vector<Tensor> tensors_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_FORMAT_H_
