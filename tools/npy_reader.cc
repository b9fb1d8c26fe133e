#include "tools/npy_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "tools/folder.h"
#include "tools/json.h"

namespace attend::tools {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeader = 65536;

Status CorruptArray(std::string what, const std::string& where) {
  return Status(ErrorCode::kCorrupt, std::move(what), where);
}

// A Python dictionary of a string, a truth value and a tuple of numbers.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::optional<NpyHeader> Parse() {
    NpyHeader header;
    unsigned seen = 0;
    if (!Take("{")) return std::nullopt;
    while (!Take("}")) {
      const auto key = TakeString();
      if (!key || !Take(":")) return std::nullopt;
      const unsigned bit = *key == "descr"           ? 1u
                           : *key == "fortran_order" ? 2u
                           : *key == "shape"         ? 4u
                                                     : 0u;
      if (bit == 0 || (seen & bit) != 0) return std::nullopt;
      seen |= bit;
      const bool read = bit == 1   ? TakeDescr(&header.descr)
                        : bit == 2 ? TakeBool(&header.fortran_order)
                                   : TakeShape(&header.shape);
      if (!read) return std::nullopt;
      if (!Take(",") && !Next("}")) return std::nullopt;
    }
    SkipSpace();
    if (seen != 7 || !text_.empty()) return std::nullopt;
    return header;
  }

 private:
  void SkipSpace() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }
  bool Next(std::string_view word) {
    SkipSpace();
    return text_.starts_with(word);
  }
  bool Take(std::string_view word) {
    if (!Next(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> TakeString() {
    SkipSpace();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return value;
  }
  bool TakeDescr(std::string* out) {
    const auto value = TakeString();
    if (value) *out = *value;
    return value.has_value();
  }
  bool TakeBool(bool* out) {
    *out = Take("True");
    return *out || Take("False");
  }
  bool TakeShape(std::vector<size_t>* out) {
    if (!Take("(")) return false;
    while (!Take(")")) {
      SkipSpace();
      size_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc() || out->size() == 32) return false;
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      out->push_back(value);
      if (!Take(",") && !Next(")")) return false;
    }
    return true;
  }

  std::string_view text_;
};

// Reads the header's text; `data` becomes the place behind it.
Result<std::string> ReadHeader(const InputFile& file, uint64_t* data) {
  std::byte start[12] = {};
  const size_t there = static_cast<size_t>(std::min<uint64_t>(file.size(), sizeof start));
  ATTEND_RETURN_IF_ERROR(file.Read(0, std::span(start).first(there)));
  const auto at = [&](size_t i) { return std::to_integer<uint32_t>(start[i]); };
  if (there < 10 || std::memcmp(start, kMagic.data(), kMagic.size()) != 0) {
    const std::string_view bytes(reinterpret_cast<const char*>(start), there);
    const std::string_view guess = GuessContent(bytes);
    return CorruptArray("expected a .npy file, got " +
                            (guess.empty() ? std::string("something else") : std::string(guess)),
                        file.path());
  }
  const uint32_t version = at(6);
  if (version < 1 || version > 3) {
    return Status(ErrorCode::kUnsupported,
                  "the .npy file has format " + std::to_string(version) + "; allowed: 1, 2, 3",
                  file.path());
  }
  const uint64_t begin = version == 1 ? 10 : 12;
  const uint64_t size =
      version == 1 ? at(8) | at(9) << 8
                   : at(8) | at(9) << 8 | at(10) << 16 | static_cast<uint64_t>(at(11)) << 24;
  if (size > kMaxHeader || begin + size > file.size()) {
    return CorruptArray("the header has " + std::to_string(size) + " bytes, the file " +
                            std::to_string(file.size()) + "; expected a header of at most " +
                            std::to_string(kMaxHeader) + " bytes inside the file",
                        file.path());
  }
  std::string text(static_cast<size_t>(size), '\0');
  ATTEND_RETURN_IF_ERROR(file.Read(begin, std::as_writable_bytes(std::span(text))));
  *data = begin + size;
  return text;
}

Status CheckHeader(const NpyHeader& header, const std::string& where) {
  if (header.descr != "<f4") {
    return Status(ErrorCode::kUnsupported,
                  "the array has the type " + Quoted(header.descr, 40) + "; allowed: \"<f4\"",
                  where, "save it as numpy.save(FILE, array.astype(\"<f4\"))");
  }
  if (header.fortran_order) {
    return Status(ErrorCode::kUnsupported, "the array is in Fortran order; allowed: C order", where,
                  "save numpy.ascontiguousarray(array)");
  }
  if (header.shape.size() != 2) {
    return Status(ErrorCode::kUnsupported,
                  "the array has " + std::to_string(header.shape.size()) +
                      " dimensions; expected 2: [length, input_size]",
                  where);
  }
  return {};
}

}  // namespace

Result<NpyHeader> ParseNpyHeader(std::string_view text, const std::string& where) {
  std::optional<NpyHeader> header = HeaderParser(text).Parse();
  if (header) return *std::move(header);
  return CorruptArray("the header is " + Quoted(text, 120) +
                          "; expected {'descr': ..., 'fortran_order': ..., 'shape': (...)}",
                      where);
}

Result<NpyMatrix> ReadNpy(const std::string& path) {
  Result<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  uint64_t data = 0;
  Result<std::string> text = ReadHeader(*file, &data);
  if (!text.ok()) return text.status();
  Result<NpyHeader> header = ParseNpyHeader(*text, path);
  if (!header.ok()) return header.status();
  ATTEND_RETURN_IF_ERROR(CheckHeader(*header, path));
  NpyMatrix matrix{.rows = header->shape[0], .columns = header->shape[1], .values = {}};
  uint64_t bytes = 0;
  const uint64_t there = file->size() - data;
  if (__builtin_mul_overflow(matrix.rows, matrix.columns, &bytes) ||
      __builtin_mul_overflow(bytes, sizeof(float), &bytes) || bytes != there) {
    return CorruptArray("the array is [" + std::to_string(matrix.rows) + ", " +
                            std::to_string(matrix.columns) + "] of 4 bytes, and the file has " +
                            std::to_string(there) + " bytes of data",
                        path);
  }
  matrix.values.resize(matrix.rows * matrix.columns);
  ATTEND_RETURN_IF_ERROR(file->Read(data, std::as_writable_bytes(std::span(matrix.values))));
  return matrix;
}

}  // namespace attend::tools
