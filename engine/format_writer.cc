// FileWriter: lays the contents out in the one order that FORMAT.md allows, then writes them tensor
// by tensor to memory or, through an atomic file, to disk.
#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <utility>

#include "engine/atomic_file.h"
#include "engine/format.h"
#include "engine/format_layout.h"

namespace attend {

using namespace layout;  // NOLINT: this file is about nothing else

// Where everything of a writer goes, and the header that says so.
class FileLayout {
 public:
  // Takes the bytes of a file at any offset.
  using Put = std::function<Status(uint64_t offset, std::span<const std::byte> bytes)>;

  // Sorts and checks the contents, and builds the header without its checksums.
  Status Plan(const FileWriter& writer);

  // Pulls the tensors, and puts them and last the header: what was interrupted is no .attend file.
  Status Emit(const Put& put);

  uint64_t file_bytes() const { return file_bytes_; }

 private:
  Status PlanTensors(uint64_t header_bytes);
  void BuildHeader(uint64_t header_bytes);
  void AppendName(std::byte* record, std::string_view name);

  std::vector<const FileWriter::Value*> values_;
  std::vector<const FileWriter::Tensor*> tensors_;
  std::vector<uint64_t> offsets_;  // of the tensors' data
  std::vector<uint64_t> sizes_;    // of the tensors' data
  std::vector<std::byte> header_;
  uint64_t pool_ = 0;  // where the next name or string goes
  uint64_t file_bytes_ = 0;
};

namespace {

Status Invalid(std::string what, std::string_view where) {
  return Status(ErrorCode::kInvalidArgument, std::move(what), std::string(where));
}

Status CheckName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Invalid("A name must have 1 to 255 bytes, got " + std::to_string(name.size()) + ".",
                   name.substr(0, kMaxNameBytes));
  }
  if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return Invalid("A name must be printable ASCII without spaces.", "");
  }
  return Status();
}

bool AddTo(uint64_t* sum, uint64_t value) { return !__builtin_add_overflow(*sum, value, sum); }

// Sorts by `name_of`; an error if two are the same.
template <typename T, typename NameOf>
Status SortByName(std::vector<const T*>* items, NameOf name_of) {
  std::sort(items->begin(), items->end(),
            [&](const T* a, const T* b) { return name_of(*a) < name_of(*b); });
  for (size_t i = 1; i < items->size(); ++i) {
    if (name_of(*(*items)[i - 1]) == name_of(*(*items)[i])) {
      return Invalid("The name was given twice.", name_of(*(*items)[i]));
    }
  }
  return Status();
}

// Whether the contents of a value are ones that the verifier takes.
Status CheckValue(uint32_t type, uint64_t scalar, uint64_t count,
                  const std::vector<std::byte>& bytes, std::string_view key) {
  if (type == kFloat && !std::isfinite(std::bit_cast<double>(scalar))) {
    return Invalid("A number must be finite.", key);
  }
  if (type == kString && !IsText(Chars(bytes.data(), bytes.size()))) {
    return Invalid("A string must be UTF-8 without NUL.", key);
  }
  if (type != kStrings) return Status();
  const std::byte* text = bytes.data() + 4 * count;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = Load32(bytes.data() + 4 * i);
    if (length > static_cast<uint64_t>(bytes.data() + bytes.size() - text)) {
      return Invalid("A string is longer than 64 MiB.", key);
    }
    if (!IsText(Chars(text, length))) {
      return Invalid("String " + std::to_string(i) + " must be UTF-8 without NUL.", key);
    }
    text += length;
  }
  return Status();
}

std::vector<std::byte> ToBytes(const void* data, size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  return std::vector<std::byte>(begin, begin + size);
}

}  // namespace

Status FileLayout::Plan(const FileWriter& writer) {
  if (writer.values_.size() > kMaxValues || writer.tensors_.size() > kMaxTensors) {
    return Invalid("More than 65,536 values or tensors.", "");
  }
  uint64_t pool_bytes = 0;  // cannot wrap: it all is in memory already
  for (const FileWriter::Value& value : writer.values_) {
    ATTEND_RETURN_IF_ERROR(CheckName(value.key));
    ATTEND_RETURN_IF_ERROR(
        CheckValue(value.type, value.scalar, value.count, value.bytes, value.key));
    pool_bytes += value.key.size() + value.bytes.size();
    values_.push_back(&value);
  }
  for (const FileWriter::Tensor& tensor : writer.tensors_) {
    ATTEND_RETURN_IF_ERROR(CheckName(tensor.name));
    pool_bytes += tensor.name.size();
    tensors_.push_back(&tensor);
  }
  ATTEND_RETURN_IF_ERROR(
      SortByName(&values_, [](const auto& v) { return std::string_view(v.key); }));
  ATTEND_RETURN_IF_ERROR(
      SortByName(&tensors_, [](const auto& t) { return std::string_view(t.name); }));
  pool_ =
      kPreambleBytes + values_.size() * kValueRecordBytes + tensors_.size() * kTensorRecordBytes;
  const uint64_t header_bytes = pool_ + pool_bytes + PaddingAfter(pool_ + pool_bytes);
  if (header_bytes > kMaxHeaderBytes) {
    return Invalid("Names, strings and lists take " + std::to_string(header_bytes) +
                       " bytes; at most 64 MiB are allowed.",
                   "");
  }
  ATTEND_RETURN_IF_ERROR(PlanTensors(header_bytes));
  BuildHeader(header_bytes);
  return Status();
}

Status FileLayout::PlanTensors(uint64_t header_bytes) {
  file_bytes_ = header_bytes;
  for (const FileWriter::Tensor* tensor : tensors_) {
    uint64_t bytes = DTypeSize(tensor->dtype);
    if (bytes == 0) return Invalid("Unknown element type.", tensor->name);
    if (tensor->shape.empty() || tensor->shape.size() > kMaxRank) {
      return Invalid(
          "A tensor must have 1 to 8 dimensions, got " + std::to_string(tensor->shape.size()) + ".",
          tensor->name);
    }
    if (!tensor->fill) return Invalid("Nothing fills the tensor.", tensor->name);
    bool fits = true;
    for (const uint64_t dimension : tensor->shape) {
      if (dimension == 0) return Invalid("A dimension must not be 0.", tensor->name);
      fits = fits && !__builtin_mul_overflow(bytes, dimension, &bytes);
    }
    offsets_.push_back(file_bytes_);
    sizes_.push_back(bytes);
    fits = fits && AddTo(&file_bytes_, bytes) && AddTo(&file_bytes_, PaddingAfter(bytes)) &&
           file_bytes_ <= static_cast<uint64_t>(INT64_MAX);
    if (!fits) return Invalid("The tensor is too large for a file.", tensor->name);
  }
  return Status();
}

void FileLayout::AppendName(std::byte* record, std::string_view name) {
  Store64(record + kNameOffsetAt, pool_);
  Store32(record + kNameBytesAt, static_cast<uint32_t>(name.size()));
  std::memcpy(header_.data() + pool_, name.data(), name.size());
  pool_ += name.size();
}

void FileLayout::BuildHeader(uint64_t header_bytes) {
  header_.assign(header_bytes, std::byte{0});
  std::byte* header = header_.data();
  std::memcpy(header, kMagic.data(), kMagic.size());
  Store32(header + kVersionAt, kVersion);
  Store32(header + kEndianTagAt, kEndianTag);
  Store64(header + kFileBytesAt, file_bytes_);
  Store64(header + kHeaderBytesAt, header_bytes);
  Store64(header + kValueCountAt, values_.size());
  Store64(header + kTensorCountAt, tensors_.size());
  std::byte* record = header + kPreambleBytes;
  for (const FileWriter::Value* value : values_) {
    AppendName(record, value->key);
    Store32(record + kValueTypeAt, value->type);
    Store64(record + kValuePayloadAt, value->type >= kString ? pool_ : value->scalar);
    Store64(record + kValueElementsAt, value->count);
    std::copy(value->bytes.begin(), value->bytes.end(), header + pool_);
    pool_ += value->bytes.size();
    record += kValueRecordBytes;
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const FileWriter::Tensor& tensor = *tensors_[i];
    AppendName(record, tensor.name);
    Store32(record + kDTypeAt, static_cast<uint32_t>(tensor.dtype));
    Store32(record + kRankAt, static_cast<uint32_t>(tensor.shape.size()));
    Store64(record + kDataOffsetAt, offsets_[i]);
    Store64(record + kDataBytesAt, sizes_[i]);
    for (size_t k = 0; k < tensor.shape.size(); ++k) {
      Store64(record + kShapeAt + 8 * k, tensor.shape[k]);
    }
    record += kTensorRecordBytes;
  }
}

Status FileLayout::Emit(const Put& put) {
  const uint64_t largest = sizes_.empty() ? 0 : *std::max_element(sizes_.begin(), sizes_.end());
  // Not a vector: its allocation throws, and a model's largest tensor is what memory lacks first.
  const std::unique_ptr<std::byte[]> buffer(new (std::nothrow)
                                                std::byte[largest + PaddingAfter(largest)]);
  if (buffer == nullptr) {
    return Status(ErrorCode::kCapacity,
                  "No memory for a tensor of " + std::to_string(largest) + " bytes.");
  }
  std::byte* record = header_.data() + kPreambleBytes + values_.size() * kValueRecordBytes;
  for (size_t i = 0; i < tensors_.size(); ++i, record += kTensorRecordBytes) {
    const std::span<std::byte> data(buffer.get(), sizes_[i]);
    const uint64_t padded_bytes = data.size() + PaddingAfter(data.size());
    std::memset(buffer.get(), 0, padded_bytes);
    ATTEND_RETURN_IF_ERROR(tensors_[i]->fill(data));
    Store64(record + kDataChecksumAt, DataChecksum(data));
    ATTEND_RETURN_IF_ERROR(put(offsets_[i], {buffer.get(), padded_bytes}));
  }
  std::byte checksum[16];
  HeaderChecksum(header_, checksum);
  std::memcpy(header_.data() + kChecksumAt, checksum, sizeof(checksum));
  return put(0, header_);
}

void FileWriter::SetInt(std::string_view key, int64_t value) {
  values_.push_back({std::string(key), kInt, std::bit_cast<uint64_t>(value), 0, {}});
}

void FileWriter::SetFloat(std::string_view key, double value) {
  values_.push_back({std::string(key), kFloat, std::bit_cast<uint64_t>(value), 0, {}});
}

void FileWriter::SetBool(std::string_view key, bool value) {
  values_.push_back({std::string(key), kBool, value ? uint64_t{1} : uint64_t{0}, 0, {}});
}

void FileWriter::SetString(std::string_view key, std::string_view value) {
  values_.push_back(
      {std::string(key), kString, 0, value.size(), ToBytes(value.data(), value.size())});
}

void FileWriter::SetStrings(std::string_view key, std::span<const std::string> values) {
  std::vector<std::byte> bytes(4 * values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    // A string that does not fit into the header has a length that Plan will refuse.
    const size_t length = std::min<size_t>(values[i].size(), UINT32_MAX);
    Store32(bytes.data() + 4 * i, static_cast<uint32_t>(length));
  }
  for (const std::string& value : values) {
    const auto* begin = reinterpret_cast<const std::byte*>(value.data());
    bytes.insert(bytes.end(), begin, begin + value.size());
  }
  values_.push_back({std::string(key), kStrings, 0, values.size(), std::move(bytes)});
}

void FileWriter::SetInts(std::string_view key, std::span<const int64_t> values) {
  values_.push_back(
      {std::string(key), kInts, 0, values.size(), ToBytes(values.data(), values.size_bytes())});
}

void FileWriter::AddTensor(std::string_view name, DType dtype, std::vector<uint64_t> shape,
                           Fill fill) {
  tensors_.push_back({std::string(name), dtype, std::move(shape), std::move(fill)});
}

Status FileWriter::Write(const std::string& path) const {
  FileLayout layout;
  ATTEND_RETURN_IF_ERROR(layout.Plan(*this));
  AtomicFile file;
  ATTEND_RETURN_IF_ERROR(file.Create(path));
  ATTEND_RETURN_IF_ERROR(layout.Emit(
      [&](uint64_t offset, std::span<const std::byte> bytes) { return file.Put(offset, bytes); }));
  return file.Commit();
}

Result<std::vector<std::byte>> FileWriter::WriteToBytes() const {
  FileLayout layout;
  ATTEND_RETURN_IF_ERROR(layout.Plan(*this));
  std::vector<std::byte> out;
  if (layout.file_bytes() > out.max_size()) {
    return Status(ErrorCode::kCapacity, "The file is too large for memory.");
  }
  try {
    out.resize(layout.file_bytes());
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity,
                  "No memory for a file of " + std::to_string(layout.file_bytes()) + " bytes.");
  }
  ATTEND_RETURN_IF_ERROR(layout.Emit([&](uint64_t offset, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<ptrdiff_t>(offset));
    return Status();
  }));
  return out;
}

}  // namespace attend
