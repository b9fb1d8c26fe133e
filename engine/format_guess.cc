#include "engine/format_guess.h"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace attend {
namespace {

constexpr const char* kDownloadAgain =
    "something went wrong when it was downloaded: open it in an editor, then fetch it again";
constexpr const char* kConvert =
    "make an .attend file of the Hugging Face folder with: attend convert FOLDER -o FILE";

// The text in front, without a byte-order mark and white space.
std::string_view SkipSpace(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  while (!text.empty() && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r'))) {
    text.remove_prefix(1);
  }
  return text;
}

// `prefix` is in lower case.
bool StartsWithIgnoringCase(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    const char c = text[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != prefix[i]) return false;
  }
  return true;
}

// Eight bytes of a small length, then a JSON object.
bool LooksLikeSafetensors(std::span<const std::byte> bytes) {
  if (bytes.size() < 10 || bytes[8] != std::byte{'{'}) return false;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length <= 100'000'000;
}

// An object, or a list: "[" and a value, not the "[PAD]" that a vocabulary begins with.
bool LooksLikeJson(std::string_view text) {
  if (text.empty() || text[0] != '[') return !text.empty() && text[0] == '{';
  text = SkipSpace(text.substr(1));
  return text.empty() || std::strchr("{[]\"-0123456789", text[0]) != nullptr;
}

}  // namespace

FormatGuess GuessFormat(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) {
    return {"The file is empty.", "a download or a copy stopped before it began: fetch it again"};
  }
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size() < 256 ? bytes.size() : 256);
  const auto starts_with = [&](std::string_view magic) {
    return start.substr(0, magic.size()) == magic;
  };
  if (starts_with("version https://git-lfs")) {
    return {"This is a Git-LFS pointer, not the model itself.",
            "fetch the file that it stands for with: git lfs pull"};
  }
  if (starts_with("\x89"
                  "ATT\r\n\x1a\n")) {
    return {"The .attend file ends inside its first 128 bytes.", "it was cut off: fetch it again"};
  }
  if (starts_with("\x89"
                  "ATT") ||
      starts_with("ATT\r\n") || starts_with("\tATT")) {
    return {"This was an .attend file, but its line ends or its high bits were changed.",
            "it was sent in text mode: fetch it again in binary mode"};
  }
  if (starts_with("PK\x03\x04") || starts_with("PK\x05\x06")) {
    return {"This is a zip archive, as PyTorch's .bin and .pt files are.",
            "save the model as safetensors (save_pretrained), then use: attend convert"};
  }
  if (start.size() >= 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5) {
    return {"This is a Python pickle, which could run any code when it is opened.",
            "save the model as safetensors (save_pretrained), then use: attend convert"};
  }
  if (starts_with("GGUF")) return {"This is a GGUF file.", kConvert};
  if (starts_with("\x1f\x8b")) {
    return {"This is compressed by gzip.", "unpack it first with: gzip -d"};
  }
  if (starts_with("\x7f"
                  "ELF")) {
    return {"This is a program or a library (ELF).", "name the model file instead"};
  }
  if (starts_with("\x93NUMPY")) return {"This is a NumPy array.", kConvert};
  if (starts_with("\x89HDF\r\n")) return {"This is an HDF5 file.", kConvert};
  if (LooksLikeSafetensors(bytes)) return {"This is a safetensors file.", kConvert};
  const std::string_view text = SkipSpace(start);
  if (StartsWithIgnoringCase(text, "<!doctype") || StartsWithIgnoringCase(text, "<html") ||
      StartsWithIgnoringCase(text, "<?xml")) {
    return {"This is a web page (HTML or XML), perhaps an error message.", kDownloadAgain};
  }
  if (LooksLikeJson(text)) {
    return {
        "This is JSON: a config.json, a tokenizer.json, or an error message of a server.",
        "name the .attend file; from a folder with config.json it is made with: attend convert"};
  }
  return {"This is not an .attend file.", kConvert};
}

}  // namespace attend
