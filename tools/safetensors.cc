#include "tools/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;

struct TypeRow {
  StoredType type;
  const char* name;
  uint64_t bits;
};

constexpr TypeRow kTypes[] = {
    {StoredType::kBool, "BOOL", 8},      {StoredType::kF4, "F4", 4},
    {StoredType::kF6E2M3, "F6_E2M3", 6}, {StoredType::kF6E3M2, "F6_E3M2", 6},
    {StoredType::kU8, "U8", 8},          {StoredType::kI8, "I8", 8},
    {StoredType::kF8E5M2, "F8_E5M2", 8}, {StoredType::kF8E4M3, "F8_E4M3", 8},
    {StoredType::kF8E8M0, "F8_E8M0", 8}, {StoredType::kI16, "I16", 16},
    {StoredType::kU16, "U16", 16},       {StoredType::kF16, "F16", 16},
    {StoredType::kBf16, "BF16", 16},     {StoredType::kI32, "I32", 32},
    {StoredType::kU32, "U32", 32},       {StoredType::kF32, "F32", 32},
    {StoredType::kC64, "C64", 64},       {StoredType::kF64, "F64", 64},
    {StoredType::kI64, "I64", 64},       {StoredType::kU64, "U64", 64},
};

const TypeRow& Row(StoredType type) { return kTypes[static_cast<size_t>(type)]; }

// Receives the header's events and keeps only what it asks for: unlike a document tree, a header of
// 100 MB costs little more than the names in it.
class HeaderHandler : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return Unexpected(std::to_string(value));  // only negative numbers come here
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected(Printable(text, 40));
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::kShape) {
      if (tensor_.shape.size() == kMaxSafetensorsRank) {
        return Fail(TensorText() + "has more than " + std::to_string(kMaxSafetensorsRank) +
                    " dimensions");
      }
      tensor_.shape.push_back(value);
      return true;
    }
    if (state_ == State::kOffsets && num_offsets_ < 2) {
      offsets_[num_offsets_++] = value;
      return true;
    }
    return Unexpected(std::to_string(value));
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadata && has_key_) {
      has_key_ = false;
      return true;
    }
    if (state_ != State::kTensor || field_ != "dtype") {
      return Unexpected("the string " + Quoted(value, 40));
    }
    const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const TypeRow& r) { return value == r.name; });
    if (row == std::end(kTypes)) {
      return Fail(TensorText() + "has the dtype " + Quoted(value, 40) +
                  "; expected one of BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F4, F6_*, "
                  "F8_*, F16, BF16, F32, F64, C64");
    }
    tensor_.type = row->type;
    field_.clear();
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::kStart) {
      state_ = State::kTop;
      return true;
    }
    if (state_ != State::kTop) return Unexpected("an object");
    if (name_ == "__metadata__") {
      state_ = State::kMetadata;
      return true;
    }
    state_ = State::kTensor;
    tensor_ = {};
    tensor_.name = name_;
    seen_ = {};
    num_offsets_ = 0;
    return true;
  }

  bool key(string_t& value) override {
    if (state_ == State::kTop) {
      if (value == "__metadata__" && std::exchange(has_metadata_, true)) {
        return Fail("__metadata__ appears twice");
      }
      return TakeName(value);
    }
    if (state_ == State::kMetadata) {
      if (!metadata_keys_.insert(value).second) {
        return Fail("__metadata__ has the key " + Quoted(value, 40) + " twice");
      }
      has_key_ = true;
      return true;
    }
    for (size_t i = 0; i < kFields.size(); ++i) {
      if (value != kFields[i]) continue;
      if (std::exchange(seen_[i], true)) {
        return Fail(TensorText() + "has the field \"" + value + "\" twice");
      }
      field_ = value;
      return true;
    }
    return Fail(TensorText() + "has the field " + Quoted(value, 40) +
                "; expected dtype, shape and data_offsets");
  }

  bool end_object() override {
    if (state_ == State::kTop) {
      state_ = State::kEnd;
      return true;
    }
    if (state_ == State::kTensor) {
      for (size_t i = 0; i < kFields.size(); ++i) {
        if (!seen_[i]) return Fail(TensorText() + "lacks the field \"" + kFields[i] + "\"");
      }
      if (offsets_[1] < offsets_[0]) {
        return Fail(TensorText() + "has data_offsets [" + std::to_string(offsets_[0]) + ", " +
                    std::to_string(offsets_[1]) + "]; expected begin <= end");
      }
      tensor_.offset = offsets_[0];
      tensor_.size_bytes = offsets_[1] - offsets_[0];
      tensors_.push_back(std::move(tensor_));
    }
    state_ = State::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ == State::kTensor && field_ == "shape") {
      state_ = State::kShape;
    } else if (state_ == State::kTensor && field_ == "data_offsets") {
      state_ = State::kOffsets;
    } else {
      return Unexpected("an array");
    }
    field_.clear();
    return true;
  }

  bool end_array() override {
    if (state_ == State::kOffsets && num_offsets_ != 2) {
      return Fail(TensorText() + "has " + std::to_string(num_offsets_) +
                  " data_offsets; expected two");
    }
    state_ = State::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string_view text = error.what();
    const size_t begin = text.find(": ");
    return Fail("the header is not valid JSON at its byte " + std::to_string(position) + ": " +
                Printable(begin == text.npos ? text : text.substr(begin + 2)));
  }

  std::vector<StoredTensor> TakeTensors() { return std::move(tensors_); }
  const std::string& error() const { return error_; }

 private:
  enum class State { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };
  static constexpr std::array<const char*, 3> kFields = {"dtype", "shape", "data_offsets"};

  bool Fail(std::string what) {
    error_ = std::move(what);
    return false;
  }

  std::string TensorText() const { return "the tensor " + Quoted(tensor_.name) + " "; }

  bool Unexpected(const std::string& got) {
    switch (state_) {
      case State::kStart:
      case State::kEnd:
        return Fail("the header is " + got + "; expected an object");
      case State::kTop:
        return Fail(Quoted(name_) + " is " + got +
                    "; expected an object with dtype, shape and data_offsets");
      case State::kMetadata:
        return Fail("__metadata__ holds " + got + "; expected strings only");
      case State::kTensor:
        return Fail(TensorText() + "has " + got + " as " + field_ + "; expected " +
                    (field_ == "dtype" ? "a string" : "an array of integers"));
      case State::kShape:
        return Fail(TensorText() + "has " + got +
                    " in its shape; expected integers from 0 to 2^64-1");
      case State::kOffsets:
        return Fail(TensorText() + "has " + got +
                    " in its data_offsets; expected two integers, begin, end");
    }
    return Fail("unexpected " + got);
  }

  bool TakeName(string_t& value) {
    const bool odd = std::any_of(value.begin(), value.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    });
    if (value.empty() || value.size() > kMaxSafetensorsName || odd) {
      return Fail("a tensor is called " + Quoted(value, 80) + "; expected 1 to " +
                  std::to_string(kMaxSafetensorsName) + " bytes without control characters");
    }
    name_ = std::move(value);
    return true;
  }

  State state_ = State::kStart;
  std::string name_;   // the last key at the top
  std::string field_;  // the field of a tensor whose value is due
  bool has_key_ = false;
  bool has_metadata_ = false;
  std::set<std::string> metadata_keys_;
  StoredTensor tensor_;
  std::array<bool, 3> seen_ = {};
  std::array<uint64_t, 2> offsets_ = {};
  size_t num_offsets_ = 0;
  std::vector<StoredTensor> tensors_;
  std::string error_;
};

// Bytes of `tensor` by its type and shape, or an error text.
Status CheckSize(const StoredTensor& tensor, std::string_view where) {
  const std::string who = "the tensor " + Quoted(tensor.name) + " ";
  // A product that overflows is an error even if a later dimension is 0: it must never wrap to a
  // small number, nor to 0.
  uint64_t bits = Row(tensor.type).bits;
  for (const uint64_t dimension : tensor.shape) {
    if (__builtin_mul_overflow(bits, dimension, &bits)) {
      return {ErrorCode::kCorrupt, who + "is " + tensor.Describe() + ", more than 2^64 bits",
              std::string(where)};
    }
  }
  if (bits % 8 != 0) {
    return {ErrorCode::kCorrupt, who + "is " + tensor.Describe() + ", not a whole number of bytes",
            std::string(where)};
  }
  if (bits / 8 != tensor.size_bytes) {
    return {ErrorCode::kCorrupt,
            who + "is " + tensor.Describe() + ", expected " + std::to_string(bits / 8) +
                " bytes, got " + std::to_string(tensor.size_bytes),
            std::string(where)};
  }
  return {};
}

// Every byte of the data belongs to exactly one tensor. Offsets are still relative to the data.
Status CheckCover(const std::vector<StoredTensor>& tensors, uint64_t data_bytes,
                  std::string_view where) {
  std::vector<const StoredTensor*> order;
  order.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->offset, a->size_bytes) < std::pair(b->offset, b->size_bytes);
  });
  uint64_t end = 0;
  for (const StoredTensor* tensor : order) {
    const std::string who = "the tensor " + Quoted(tensor->name) + " ";
    if (tensor->offset != end) {
      return {ErrorCode::kCorrupt,
              who + "begins at byte " + std::to_string(tensor->offset) + " of the data, expected " +
                  std::to_string(end) + ": tensors " +
                  (tensor->offset < end ? "overlap" : "leave a hole"),
              std::string(where)};
    }
    // No overflow: offset + size_bytes is the end that the header gave.
    end += tensor->size_bytes;
    if (end > data_bytes) {
      return {ErrorCode::kCorrupt,
              who + "ends at byte " + std::to_string(end) + " of the data, but the file holds " +
                  std::to_string(data_bytes),
              std::string(where), "the file was cut; fetch it again"};
    }
  }
  if (end != data_bytes) {
    return {ErrorCode::kCorrupt,
            "expected " + std::to_string(end) + " bytes of data, got " +
                std::to_string(data_bytes) + ": there is something behind the last tensor",
            std::string(where)};
  }
  return {};
}

}  // namespace

const char* StoredTypeName(StoredType type) { return Row(type).name; }
uint64_t StoredTypeBits(StoredType type) { return Row(type).bits; }
bool IsWeightType(StoredType type) {
  return type == StoredType::kF32 || type == StoredType::kF16 || type == StoredType::kBf16;
}

uint64_t StoredTensor::num_elements() const { return size_bytes * 8 / StoredTypeBits(type); }

std::string StoredTensor::Describe() const {
  std::string text = std::string(StoredTypeName(type)) + " [";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

Result<std::vector<StoredTensor>> ParseSafetensorsHeader(std::string_view header,
                                                         uint64_t file_bytes,
                                                         std::string_view where) {
  const auto corrupt = [&](std::string what) {
    return Status(ErrorCode::kCorrupt, std::move(what), std::string(where));
  };
  if (header.empty() || header.front() != '{') {
    return corrupt("the header does not begin with '{'");
  }
  // The format allows spaces behind the object, and nothing else; the parser would take any white
  // space, and a NUL for the end.
  const uint64_t header_bytes = header.size();
  header = header.substr(0, header.find_last_not_of(' ') + 1);
  if (header.back() != '}') return corrupt("the header does not end with '}' and spaces");
  if (header.find('\0') != header.npos) return corrupt("the header holds a NUL byte");
  HeaderHandler handler;
  if (!json::sax_parse(header.begin(), header.end(), &handler, json::input_format_t::json,
                       /*strict=*/true)) {
    return corrupt(handler.error());
  }
  std::vector<StoredTensor> tensors = handler.TakeTensors();
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      tensors.begin(), tensors.end(),
      [](const StoredTensor& a, const StoredTensor& b) { return a.name == b.name; });
  if (twice != tensors.end()) {
    return corrupt("the tensor " + Quoted(twice->name) + " appears twice");
  }
  for (const StoredTensor& tensor : tensors) ATTEND_RETURN_IF_ERROR(CheckSize(tensor, where));
  const uint64_t data_begin = 8 + header_bytes;
  if (file_bytes < data_begin) return corrupt("the file ends inside its header");
  ATTEND_RETURN_IF_ERROR(CheckCover(tensors, file_bytes - data_begin, where));
  for (StoredTensor& tensor : tensors) tensor.offset += data_begin;
  return tensors;
}

Result<SafetensorsFile> SafetensorsFile::Open(InputFile file) {
  const auto corrupt = [&](std::string what, std::string hint) {
    return Status(ErrorCode::kCorrupt, std::move(what), file.path(), std::move(hint));
  };
  std::array<char, 512> start_bytes = {};
  const auto num_start = static_cast<size_t>(std::min<uint64_t>(file.size(), start_bytes.size()));
  ATTEND_RETURN_IF_ERROR(
      file.Read(0, std::as_writable_bytes(std::span<char>(start_bytes.data(), num_start))));
  const std::string_view start(start_bytes.data(), num_start);
  const std::string_view guess = GuessContent(start);
  if (file.size() < 9 || start[8] != '{') {
    if (!guess.empty()) {
      return corrupt("expected a safetensors file, got " + std::string(guess),
                     std::string(GuessHint(guess)));
    }
    return corrupt("expected a safetensors file (8 bytes of length, then '{'), got something else",
                   "");
  }
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < 8; ++i) {
    header_bytes |= static_cast<uint64_t>(static_cast<unsigned char>(start[i])) << (8 * i);
  }
  if (header_bytes > kMaxSafetensorsHeader || header_bytes > file.size() - 8) {
    return corrupt("the header is " + std::to_string(header_bytes) +
                       " bytes long; expected at most " +
                       std::to_string(std::min(kMaxSafetensorsHeader, file.size() - 8)),
                   header_bytes > kMaxSafetensorsHeader ? "" : "the file was cut; fetch it again");
  }
  std::string header(static_cast<size_t>(header_bytes), '\0');
  ATTEND_RETURN_IF_ERROR(file.Read(8, std::as_writable_bytes(std::span<char>(header))));
  auto tensors = ParseSafetensorsHeader(header, file.size(), file.path());
  if (!tensors.ok()) return tensors.status();
  return SafetensorsFile(std::move(file), std::move(*tensors));
}

const StoredTensor* SafetensorsFile::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& tensor, std::string_view key) { return tensor.name < key; });
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

Status SafetensorsFile::Read(const StoredTensor& tensor, uint64_t offset,
                             std::span<std::byte> out) const {
  if (offset > tensor.size_bytes || out.size() > tensor.size_bytes - offset) {
    return {ErrorCode::kInternal, "a read beyond the end of a tensor", tensor.name};
  }
  return file_.Read(tensor.offset + offset, out);
}

}  // namespace attend
