// The rules of the format by name and in words. The order is that of FormatError.
#include <array>

#include "engine/format.h"

namespace attend {
namespace {

struct Rule {
  const char* name;
  const char* text;
};

constexpr std::array<Rule, kNumFormatErrors> kRules = {{
    {"OK", "The file keeps every rule."},
    {"TOO_SHORT", "The file is shorter than the 128 bytes that every .attend file begins with."},
    {"MAGIC", "The first eight bytes are not those of an .attend file."},
    {"ENDIANNESS", "The file's numbers are not little-endian."},
    {"VERSION", "The file's version is not one that this build reads."},
    {"REQUIRED_FEATURE", "The file needs a feature that this build does not know."},
    {"RESERVED", "A reserved byte is not zero."},
    {"TRUNCATED", "The file is shorter than it says: it was cut off."},
    {"TRAILING_BYTES", "Something follows the end of the file's contents."},
    {"HEADER_SIZE",
     "The size of the header is not a multiple of 64, or is too small, over 64 MiB, or more than "
     "the file."},
    {"VALUE_COUNT", "There are more than 65,536 values."},
    {"TENSOR_COUNT", "There are more than 65,536 tensors."},
    {"TABLES_SIZE", "The tables of values and tensors do not fit into the header."},
    {"HEADER_CHECKSUM", "The header does not have its checksum: it was damaged."},
    {"KEY_LENGTH", "A key has no byte, or more than 255."},
    {"KEY_PLACE", "A key is not where it belongs: right behind what was before it."},
    {"KEY_CHARACTER", "A key has a character that is not printable ASCII, or a space."},
    {"KEY_ORDER", "The keys are not sorted."},
    {"KEY_DUPLICATE", "A key stands there twice."},
    {"VALUE_TYPE", "A value has an unknown type."},
    {"VALUE_UNUSED", "An unused field of a value is not zero."},
    {"VALUE_BOOL", "A truth value is neither 0 nor 1."},
    {"VALUE_FLOAT", "A number is not finite."},
    {"VALUE_PLACE", "A value is not where it belongs: right behind its key."},
    {"VALUE_LENGTH", "A string or list does not fit into the header."},
    {"VALUE_TEXT", "A string is not UTF-8, or has a NUL in it."},
    {"NAME_LENGTH", "A tensor's name has no byte, or more than 255."},
    {"NAME_PLACE", "A tensor's name is not where it belongs: right behind what was before it."},
    {"NAME_CHARACTER", "A tensor's name has a character that is not printable ASCII, or a space."},
    {"NAME_ORDER", "The tensors are not sorted by name."},
    {"NAME_DUPLICATE", "Two tensors have the same name."},
    {"TENSOR_TYPE", "A tensor has an unknown element type."},
    {"TENSOR_RANK", "A tensor has no dimension, or more than 8."},
    {"TENSOR_UNUSED", "An unused field of a tensor is not zero."},
    {"TENSOR_DIMENSION", "A tensor has a dimension of size 0."},
    {"TENSOR_OVERFLOW", "A tensor has more than 2^64 bytes."},
    {"TENSOR_BYTES", "A tensor's size is not that of its shape and type."},
    {"TENSOR_RANGE", "A tensor lies outside the file."},
    {"TENSOR_MISALIGNED", "A tensor does not begin at a multiple of 64."},
    {"TENSOR_OVERLAP", "A tensor begins inside the header or the tensor before it."},
    {"TENSOR_HOLE", "There is a hole before a tensor."},
    {"TENSOR_PADDING", "A byte between two tensors is not zero."},
    {"HEADER_END", "The header is longer than its contents."},
    {"HEADER_PADDING", "A byte after the header's contents is not zero."},
    {"DATA_END", "The file does not end with the padding of its last tensor."},
    {"TENSOR_CHECKSUM", "A tensor does not have its checksum: it was damaged."},
}};

const Rule* Find(FormatError error) {
  const auto index = static_cast<uint32_t>(error);
  return index < kRules.size() ? &kRules[index] : nullptr;
}

}  // namespace

const char* FormatErrorName(FormatError error) {
  const Rule* rule = Find(error);
  return rule != nullptr ? rule->name : "UNKNOWN";
}

const char* FormatErrorText(FormatError error) {
  const Rule* rule = Find(error);
  return rule != nullptr ? rule->text : "An unknown rule.";
}

}  // namespace attend
