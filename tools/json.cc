#include "tools/json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/folder.h"

namespace attend {
namespace {

using nlohmann::json;

// Line and column, both from 1, of byte `position` of `text`.
std::string LineAndColumn(std::string_view text, size_t position) {
  position = std::min(position, text.size());
  const std::string_view before = text.substr(0, position);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t line_begin =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(position - line_begin + 1);
}

// Builds the value from the parser's events. The parser keeps its stack on the heap, and this
// handler refuses what is nested too deeply before it grows, so depth costs no stack.
class Builder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return Fail(ErrorCode::kCorrupt, "binary data in JSON"); }
  bool start_object(std::size_t) override { return Open(json::object()); }
  bool start_array(std::size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& value) override {
    auto [place, inserted] = open_.back()->emplace(value, nullptr);
    if (!inserted) {
      return Fail(ErrorCode::kCorrupt, "the key " + Quoted(value) + " appears twice");
    }
    place_ = &*place;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    const std::string_view text = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...".
    size_t begin = text.find(": ");
    begin = begin == std::string_view::npos ? text.find("] ") : begin;
    code_ = ErrorCode::kCorrupt;
    what_ = "not valid JSON: " +
            Printable(begin == std::string_view::npos ? text : text.substr(begin + 2));
    return false;
  }

  json& root() { return root_; }
  ErrorCode code() const { return code_; }
  const std::string& what() const { return what_; }
  std::optional<size_t> position() const { return position_; }

 private:
  bool Fail(ErrorCode code, std::string what) {
    code_ = code;
    what_ = std::move(what);
    return false;
  }

  // The value is `value` from now on; returns where it is.
  json* Put(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *place_ = std::move(value);
    return place_;
  }

  bool Add(json value) {
    Put(std::move(value));
    return true;
  }

  bool Open(json value) {
    if (open_.size() == kMaxJsonDepth) {
      return Fail(ErrorCode::kUnsupported,
                  "nested more than " + std::to_string(kMaxJsonDepth) + " levels deep");
    }
    open_.push_back(Put(std::move(value)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  json root_;
  std::vector<json*> open_;  // the containers that are not closed yet, outermost first
  json* place_ = nullptr;    // where the value of the last key goes
  ErrorCode code_ = ErrorCode::kOk;
  std::string what_;
  std::optional<size_t> position_;
};

std::string Where(std::string_view where) { return std::string(where); }

Status Missing(std::string_view key, std::string_view what, std::string_view where) {
  return {ErrorCode::kCorrupt,
          "the field \"" + std::string(key) + "\" is missing; expected " + std::string(what),
          Where(where)};
}

std::string IntRange(int64_t min, int64_t max) {
  return "an integer from " + std::to_string(min) + " to " + std::to_string(max);
}

std::string FloatRange(double min, double max) {
  return "a number from " + json(min).dump() + " to " + json(max).dump();
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    if (shown.size() >= max_bytes) return shown + "...";
    const auto byte = static_cast<unsigned char>(text[i]);
    size_t length = byte < 0x80 ? 1 : byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    if (byte >= 0xF5 || i + length > text.size()) length = 0;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) length = 0;
    }
    // C1 controls and the bidirectional overrides can make a terminal show something else.
    const std::string_view sequence = text.substr(i, length);
    const bool hidden = sequence.starts_with("\xC2") && sequence[1] < '\xA0';
    const bool turns =
        sequence.starts_with("\xE2\x80") && sequence[2] >= '\xAA' && sequence[2] <= '\xAE';
    if (length == 0 || byte < 0x20 || byte == 0x7F || hidden || turns) {
      shown += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      ++i;
      continue;
    }
    shown += sequence;
    i += length;
  }
  return shown;
}

std::string Quoted(std::string_view text, size_t max_bytes) {
  std::string quoted(1, '"');
  quoted += Printable(text, max_bytes);
  quoted += '"';
  return quoted;
}

std::string JsonExcerpt(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  return Printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 80);
}

std::string_view GuessContent(std::string_view bytes) {
  const std::string_view text =
      bytes.substr(std::min(bytes.size(), bytes.find_first_not_of(" \t\r\n")));
  if (bytes.empty()) return "an empty file";
  if (text.starts_with("version https://git-lfs")) return "a Git-LFS pointer";
  if (text.starts_with("<")) return "an HTML page";
  if (bytes.starts_with("PK\x03\x04")) return "a zip archive (PyTorch's own format)";
  if (bytes.starts_with("\x80\x02") || bytes.starts_with("\x80\x04")) return "a Python pickle";
  if (bytes.starts_with("GGUF")) return "a GGUF file";
  if (bytes.starts_with("\x1F\x8B")) return "a gzip archive";
  if (bytes.starts_with("\x89"
                        "HDF"))
    return "an HDF5 file";
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return "UTF-16 text";
  if (bytes.starts_with("\xEF\xBB\xBF")) return "text with a byte order mark";
  return "";
}

std::string_view GuessHint(std::string_view guess) {
  if (guess.find("Git-LFS") != guess.npos) return "fetch the content with: git lfs pull";
  if (guess.find("HTML") != guess.npos) return "the download failed; fetch the file again";
  if (guess.find("empty") != guess.npos) return "the download failed; fetch the file again";
  if (guess.find("PyTorch") != guess.npos || guess.find("pickle") != guess.npos) {
    return "save the model again with save_pretrained(FOLDER, safe_serialization=True)";
  }
  return "";
}

Result<json> ParseJson(std::string_view text, std::string_view where) {
  if (const std::string_view guess = GuessContent(text.substr(0, 512)); !guess.empty()) {
    return Status(ErrorCode::kCorrupt, "expected JSON, got " + std::string(guess), Where(where),
                  std::string(GuessHint(guess)));
  }
  // The lexer takes NUL for the end of its input.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Status(ErrorCode::kCorrupt, "not valid JSON: a NUL byte",
                  Where(where) + ", " + LineAndColumn(text, nul));
  }
  Builder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder, json::input_format_t::json,
                      /*strict=*/true)) {
    return std::move(builder.root());
  }
  std::string place = Where(where);
  if (const auto position = builder.position(); position.has_value()) {
    place += ", " + LineAndColumn(text, *position == 0 ? 0 : *position - 1);
  }
  return Status(builder.code(), builder.what(), std::move(place));
}

Result<json> ParseJsonFile(const std::string& path, size_t max_bytes) {
  Result<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  Result<std::string> text = file->ReadAll(max_bytes);
  if (!text.ok()) return text.status();
  return ParseJson(*text, path);
}

const json* JsonFind(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Status JsonFieldError(std::string_view key, const json& value, std::string_view allowed,
                      std::string_view where) {
  return {ErrorCode::kCorrupt,
          "the field \"" + std::string(key) + "\" is " + JsonExcerpt(value) + "; expected " +
              std::string(allowed),
          Where(where)};
}

Result<int64_t> JsonInt(const json& object, std::string_view key, int64_t min, int64_t max,
                        std::string_view where) {
  const json* value = JsonFind(object, key);
  if (value == nullptr) return Missing(key, IntRange(min, max), where);
  // A float such as 12.0, and an integer that does not fit into 64 bits, is not an integer here.
  bool fits = value->is_number_integer();
  if (const auto* large = value->get_ptr<const json::number_unsigned_t*>(); large != nullptr) {
    fits = *large <= static_cast<uint64_t>(INT64_MAX);
  }
  if (!fits) return JsonFieldError(key, *value, IntRange(min, max), where);
  const auto number = value->get<int64_t>();
  if (number < min || number > max) {
    return JsonFieldError(key, *value, IntRange(min, max), where);
  }
  return number;
}

Result<int64_t> JsonInt(const json& object, std::string_view key, int64_t min, int64_t max,
                        std::string_view where, int64_t fallback) {
  if (JsonFind(object, key) == nullptr) return fallback;
  return JsonInt(object, key, min, max, where);
}

Result<double> JsonFloat(const json& object, std::string_view key, double min, double max,
                         std::string_view where) {
  const json* value = JsonFind(object, key);
  if (value == nullptr) return Missing(key, FloatRange(min, max), where);
  if (!value->is_number()) return JsonFieldError(key, *value, FloatRange(min, max), where);
  const auto number = value->get<double>();
  if (!(number >= min && number <= max)) {
    return JsonFieldError(key, *value, FloatRange(min, max), where);
  }
  return number;
}

Result<double> JsonFloat(const json& object, std::string_view key, double min, double max,
                         std::string_view where, double fallback) {
  if (JsonFind(object, key) == nullptr) return fallback;
  return JsonFloat(object, key, min, max, where);
}

Result<bool> JsonBool(const json& object, std::string_view key, std::string_view where) {
  const json* value = JsonFind(object, key);
  if (value == nullptr) return Missing(key, "true or false", where);
  if (!value->is_boolean()) return JsonFieldError(key, *value, "true or false", where);
  return value->get<bool>();
}

Result<bool> JsonBool(const json& object, std::string_view key, std::string_view where,
                      bool fallback) {
  if (JsonFind(object, key) == nullptr) return fallback;
  return JsonBool(object, key, where);
}

Result<std::string> JsonString(const json& object, std::string_view key, std::string_view where) {
  const json* value = JsonFind(object, key);
  if (value == nullptr) return Missing(key, "a string", where);
  if (!value->is_string()) return JsonFieldError(key, *value, "a string", where);
  return value->get<std::string>();
}

Result<std::string> JsonString(const json& object, std::string_view key, std::string_view where,
                               std::string_view fallback) {
  if (JsonFind(object, key) == nullptr) return std::string(fallback);
  return JsonString(object, key, where);
}

}  // namespace attend
