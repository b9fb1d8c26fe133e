// Files that must be refused: one change each to a good file, the rule it breaks in the case's
// name. The number of a case is its kind in the catalogue of bad files that the project keeps:
//   W01-W18, W20-W31, W33-W51: the container, here, most of them with the checksum repaired (W16),
//     since a checksum is no defence. W14's optional bit, W23's names that differ by case and W34's
//     odd finite numbers are good files, and here too.
//   W19, W32, W42, W43: no such thing in this format (an alignment field, nested arrays, elements
//     smaller than a byte, block quantisation).
//   W29, W30, W52, W55-W68: the model's description, in config_test.cc and config_tensors_test.cc.
//   W04 (what it is instead): format_test.cc. W53 (cut off), W83 (flips, splices):
//     format_damage_test.cc. W40's and W54's sparse files, W69-W84 (file system, process):
//     file_bytes_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "engine/format.h"
#include "engine/format_layout.h"
#include "tests/format_testing.h"

namespace attend {
namespace {

using namespace layout;  // NOLINT: the fields' places
using testing::DamagedFile;
using E = FormatError;

enum class Keep { kNothing, kSize, kChecksum };  // what Seal must not repair

struct Case {
  const char* kind;
  FormatError error;
  const char* what;
  std::function<void(DamagedFile&)> damage;
  Keep keep = Keep::kNothing;
};

// Damages that are one field set to one value.
std::function<void(DamagedFile&)> Preamble64(uint64_t at, uint64_t value) {
  return [=](DamagedFile& f) { f.Put64(at, value); };
}
std::function<void(DamagedFile&)> Value32(uint64_t index, uint64_t at, uint64_t value) {
  return [=](DamagedFile& f) { f.Put32(f.Value(index) + at, value); };
}
std::function<void(DamagedFile&)> Value64(uint64_t index, uint64_t at, uint64_t value) {
  return [=](DamagedFile& f) { f.Put64(f.Value(index) + at, value); };
}
std::function<void(DamagedFile&)> Tensor32(uint64_t index, uint64_t at, uint64_t value) {
  return [=](DamagedFile& f) { f.Put32(f.Tensor(index) + at, value); };
}
std::function<void(DamagedFile&)> Tensor64(uint64_t index, uint64_t at, uint64_t value) {
  return [=](DamagedFile& f) { f.Put64(f.Tensor(index) + at, value); };
}
// The same, relative to what is there.
std::function<void(DamagedFile&)> TensorAdd(uint64_t index, uint64_t at, uint64_t value) {
  return
      [=](DamagedFile& f) { f.Put64(f.Tensor(index) + at, f.Get(f.Tensor(index) + at) + value); };
}
std::function<void(DamagedFile&)> Key(uint64_t index, std::string text) {
  return [=](DamagedFile& f) { f.PutText(f.KeyText(index), text); };
}
std::function<void(DamagedFile&)> NameOf(uint64_t index, std::string text) {
  return [=](DamagedFile& f) { f.PutText(f.NameText(index), text); };
}
std::function<void(DamagedFile&)> Shape(DType dtype, std::vector<uint64_t> shape) {
  return [=](DamagedFile& f) { f.Reshape(1, dtype, shape); };
}
std::function<void(DamagedFile&)> Append(std::string text) {
  return [=](DamagedFile& f) {
    for (const char c : text) f.bytes().push_back(static_cast<std::byte>(c));
  };
}

constexpr uint64_t kAll = ~uint64_t{0};
constexpr uint64_t k2To32 = uint64_t{1} << 32;
constexpr uint64_t k2To61 = uint64_t{1} << 61;
constexpr uint64_t k2To63 = uint64_t{1} << 63;

std::vector<Case> PreambleCases() {
  return {
      {"W01", E::kTooShort, "empty", [](DamagedFile& f) { f.bytes().clear(); }},
      {"W02", E::kTooShort, "127_bytes", [](DamagedFile& f) { f.bytes().resize(127); }},
      {"W03", E::kMagic, "gguf", [](DamagedFile& f) { f.PutText(0, "GGUF"); }},
      {"W03", E::kMagic, "line_ends", [](DamagedFile& f) { f.PutText(4, "\n\x1a\n"); }},
      {"W03", E::kMagic, "seven_bits", [](DamagedFile& f) { f.PutText(0, "\t"); }},
      {"W05", E::kVersion, "zero", [](DamagedFile& f) { f.Put32(kVersionAt, 0); }},
      {"W05", E::kVersion, "next", [](DamagedFile& f) { f.Put32(kVersionAt, kVersion + 1); }},
      {"W05", E::kVersion, "largest", [](DamagedFile& f) { f.Put32(kVersionAt, kAll); }},
      {"W06", E::kEndianness, "swapped_twin",
       [](DamagedFile& f) {
         for (const uint64_t at : {kVersionAt, kEndianTagAt}) std::reverse(f.at(at), f.at(at + 4));
         for (uint64_t at = kRequiredFeaturesAt; at < kChecksumAt; at += 8) {
           std::reverse(f.at(at), f.at(at + 8));
         }
       },
       Keep::kSize},
      {"W07", E::kHeaderSize, "zero", Preamble64(kHeaderBytesAt, 0)},
      {"W07", E::kHeaderSize, "below_preamble", Preamble64(kHeaderBytesAt, 64)},
      {"W08", E::kTensorOverlap, "whole_file",
       [](DamagedFile& f) { f.Put64(kHeaderBytesAt, f.bytes().size()); }},
      {"W08", E::kHeaderSize, "file_plus_1",
       [](DamagedFile& f) { f.Put64(kHeaderBytesAt, f.bytes().size() + 1); }},
      {"W08", E::kHeaderSize, "file_plus_64",
       [](DamagedFile& f) { f.Put64(kHeaderBytesAt, f.bytes().size() + 64); }},
      {"W08", E::kHeaderSize, "file_minus_1",
       [](DamagedFile& f) { f.Put64(kHeaderBytesAt, f.bytes().size() - 1); }},
      {"W09", E::kHeaderSize, "2_to_64_minus_1", Preamble64(kHeaderBytesAt, kAll)},
      {"W09", E::kHeaderSize, "2_to_64_minus_64", Preamble64(kHeaderBytesAt, kAll - 63)},
      {"W09", E::kHeaderSize, "2_to_63", Preamble64(kHeaderBytesAt, k2To63)},
      {"W09", E::kHeaderSize, "2_to_32", Preamble64(kHeaderBytesAt, k2To32)},
      {"W09", E::kHeaderSize, "2_to_32_plus_right",
       [](DamagedFile& f) { f.Put64(kHeaderBytesAt, k2To32 + f.header_bytes()); }},
      {"W10", E::kHeaderSize, "cap_beyond_file", Preamble64(kHeaderBytesAt, kMaxHeaderBytes)},
      {"W10", E::kHeaderSize, "above_cap_inside_file",
       [](DamagedFile& f) {
         f.bytes().resize(kMaxHeaderBytes + 128);
         f.Put64(kHeaderBytesAt, kMaxHeaderBytes + 64);
       }},
      {"W11", E::kTensorCount, "2_to_64_minus_1", Preamble64(kTensorCountAt, kAll)},
      {"W11", E::kTensorCount, "size_wraps", Preamble64(kTensorCountAt, k2To61)},
      {"W11", E::kTensorCount, "2_to_32_plus_right", Preamble64(kTensorCountAt, k2To32 + 3)},
      {"W11", E::kTensorCount, "cap_plus_1", Preamble64(kTensorCountAt, kMaxTensors + 1)},
      {"W11", E::kTablesSize, "cap", Preamble64(kTensorCountAt, kMaxTensors)},
      {"W12", E::kKeyPlace, "one_more", Preamble64(kTensorCountAt, 4)},
      {"W12", E::kKeyPlace, "one_less", Preamble64(kTensorCountAt, 2)},
      {"W13", E::kValueCount, "2_to_64_minus_1", Preamble64(kValueCountAt, kAll)},
      {"W13", E::kValueCount, "size_wraps", Preamble64(kValueCountAt, uint64_t{1} << 59)},
      {"W13", E::kValueCount, "cap_plus_1", Preamble64(kValueCountAt, kMaxValues + 1)},
      {"W13", E::kTablesSize, "cap", Preamble64(kValueCountAt, kMaxValues)},
      {"W13", E::kKeyPlace, "one_more", Preamble64(kValueCountAt, 7)},
      {"W13", E::kKeyPlace, "one_less", Preamble64(kValueCountAt, 5)},
      {"W14", E::kRequiredFeature, "lowest", Preamble64(kRequiredFeaturesAt, 1)},
      {"W14", E::kRequiredFeature, "highest", Preamble64(kRequiredFeaturesAt, k2To63)},
      {"W14", E::kReserved, "first", [](DamagedFile& f) { f.Put32(kReservedAt, 1); }},
      {"W14", E::kReserved, "last",
       [](DamagedFile& f) { *f.at(kPreambleBytes - 1) = std::byte{128}; }},
      {"W14", E::kOk, "optional_bits", Preamble64(kOptionalFeaturesAt, kAll)},
      {"W15", E::kHeaderChecksum, "low_bit",
       [](DamagedFile& f) { *f.at(kChecksumAt) ^= std::byte{1}; }, Keep::kChecksum},
      {"W15", E::kHeaderChecksum, "high_bit",
       [](DamagedFile& f) { *f.at(kChecksumAt + 15) ^= std::byte{128}; }, Keep::kChecksum},
      {"W15", E::kHeaderChecksum, "other_name", NameOf(2, "gammb"), Keep::kChecksum},
      {"W17", E::kTruncated, "states_one_more",
       [](DamagedFile& f) { f.Put64(kFileBytesAt, f.bytes().size() + 1); }, Keep::kSize},
      {"W17", E::kTrailingBytes, "states_one_less",
       [](DamagedFile& f) { f.Put64(kFileBytesAt, f.bytes().size() - 1); }, Keep::kSize},
      {"W17", E::kTruncated, "states_2_to_64_minus_1", Preamble64(kFileBytesAt, kAll), Keep::kSize},
      {"W17", E::kTrailingBytes, "states_0", Preamble64(kFileBytesAt, 0), Keep::kSize},
      {"W18", E::kTrailingBytes, "one_byte", Append(std::string(1, '\0')), Keep::kSize},
      {"W18", E::kTrailingBytes, "zip_end", Append("PK\x05\x06" + std::string(18, '\0')),
       Keep::kSize},
      {"W18", E::kDataEnd, "stated_trailing_block", Append(std::string(64, '\0'))},
      {"W18", E::kDataEnd, "stated_trailing_zip", Append("PK\x05\x06" + std::string(18, '\0'))},
      {"W20", E::kHeaderPadding, "after_names",
       [](DamagedFile& f) { *f.at(f.header_bytes() - 1) = std::byte{1}; }},
      {"W20", E::kTensorPadding, "after_first",
       [](DamagedFile& f) { *f.at(f.Data(0) + 24) = std::byte{1}; }},
      {"W20", E::kTensorPadding, "last_of_file",
       [](DamagedFile& f) { f.bytes().back() = std::byte{255}; }},
      {"W20", E::kHeaderEnd, "block_of_padding",
       [](DamagedFile& f) {
         const auto end = f.bytes().begin() + static_cast<ptrdiff_t>(f.header_bytes());
         f.bytes().insert(end, 64, std::byte{0});
         f.Put64(kHeaderBytesAt, f.header_bytes() + 64);
         for (uint64_t i = 0; i < 3; ++i) TensorAdd(i, kDataOffsetAt, 64)(f);
       }},
  };
}

std::vector<Case> ValueCases() {
  const auto float_bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  const double infinity = std::numeric_limits<double>::infinity();
  return {
      {"W21", E::kValueLength, "2_to_64_minus_1", Value64(4, kValueElementsAt, kAll)},
      {"W21", E::kValueLength, "one_too_many",
       [](DamagedFile& f) {
         f.Put64(f.Value(4) + kValueElementsAt, f.header_bytes() - f.Payload(4) + 1);
       }},
      {"W21", E::kValueLength, "string_of_list",
       [](DamagedFile& f) { f.Put32(f.Payload(5), kAll); }},
      {"W21", E::kKeyPlace, "one_byte_less", Value64(4, kValueElementsAt, 5)},
      {"W21", E::kValuePlace, "offset_wraps", Value64(4, kValuePayloadAt, kAll - 2)},
      {"W21", E::kKeyPlace, "key_offset_wraps", Value64(4, kKeyOffsetAt, kAll)},
      {"W21", E::kNamePlace, "name_offset_wraps", Tensor64(0, kNameOffsetAt, kAll)},
      {"W22", E::kKeyLength, "empty_key", Value32(0, kKeyBytesAt, 0)},
      {"W22", E::kNameLength, "empty_name", Tensor32(0, kNameBytesAt, 0)},
      {"W23", E::kNameDuplicate, "same_name", NameOf(1, "alpha")},
      {"W23", E::kNameCharacter, "trailing_nul", NameOf(1, std::string("alph\0", 5))},
      {"W23", E::kOk, "other_case", NameOf(0, "Betas")},
      {"W24", E::kNameCharacter, "nul", NameOf(0, std::string("al\0ha", 5))},
      {"W24", E::kNameCharacter, "newline", NameOf(0, "al\nha")},
      {"W24", E::kNameCharacter, "escape", NameOf(0, "\x1b[31m")},
      {"W24", E::kNameCharacter, "space", NameOf(0, "al ha")},
      {"W24", E::kNameCharacter, "delete", NameOf(0, "al\x7fha")},
      {"W24", E::kKeyCharacter, "key_newline", Key(1, "k\n")},
      {"W24", E::kOk, "path", NameOf(0, "../ab")},  // a name is never a path
      {"W24", E::kNameLength, "256_bytes", Tensor32(0, kNameBytesAt, 256)},
      {"W24", E::kNameLength, "65536_bytes", Tensor32(0, kNameBytesAt, 65536)},
      {"W24", E::kNamePlace, "255_bytes_beyond_header", Tensor32(2, kNameBytesAt, 255)},
      {"W24", E::kKeyLength, "key_256_bytes", Value32(0, kKeyBytesAt, 256)},
      {"W25", E::kNameCharacter, "high_byte",
       NameOf(0,
              "al\xC3\xA9"
              "a")},
      {"W25", E::kKeyCharacter, "key_high_byte", Key(0, "k\x80")},
      {"W25", E::kValueText, "string_not_utf8",
       [](DamagedFile& f) { f.PutText(f.Payload(4), "\xFF"); }},
      {"W25", E::kValueText, "string_of_list_not_utf8",
       [](DamagedFile& f) { f.PutText(f.Payload(5) + 12, "\xC3"); }},
      {"W25", E::kValueText, "string_with_nul",
       [](DamagedFile& f) { f.PutText(f.Payload(4), std::string(1, '\0')); }},
      {"W26", E::kValuePlace, "string_in_tensor",
       [](DamagedFile& f) { f.Put64(f.Value(4) + kValuePayloadAt, f.Data(1)); }},
      {"W26", E::kValuePlace, "string_in_string",
       [](DamagedFile& f) { f.Put64(f.Value(5) + kValuePayloadAt, f.Payload(4)); }},
      {"W26", E::kKeyPlace, "key_in_key",
       [](DamagedFile& f) { f.Put64(f.Value(1) + kKeyOffsetAt, f.KeyText(0)); }},
      {"W26", E::kNamePlace, "name_in_name",
       [](DamagedFile& f) { f.Put64(f.Tensor(1) + kNameOffsetAt, f.NameText(0)); }},
      {"W27", E::kKeyDuplicate, "same_key", Key(1, "k0")},
      {"W27", E::kKeyOrder, "keys_swapped",
       [](DamagedFile& f) { Key(1, "k2")(f), Key(2, "k1")(f); }},
      {"W28", E::kValueType, "zero", Value32(0, kValueTypeAt, 0)},
      {"W28", E::kValueType, "next", Value32(0, kValueTypeAt, kInts + 1)},
      {"W28", E::kValueType, "negative", Value32(0, kValueTypeAt, kAll)},
      {"W28", E::kValueUnused, "count_of_scalar", Value64(2, kValueElementsAt, 1)},
      {"W31", E::kValueLength, "list_size_wraps", Value64(3, kValueElementsAt, k2To61)},
      {"W31", E::kValueLength, "list_size_wraps_to_right",
       Value64(3, kValueElementsAt, k2To61 + 2)},
      {"W31", E::kValueLength, "strings_size_wraps", Value64(5, kValueElementsAt, k2To61 * 2 + 3)},
      {"W31", E::kKeyPlace, "list_of_one_less", Value64(3, kValueElementsAt, 1)},
      {"W33", E::kValueBool, "2", Value64(0, kValuePayloadAt, 2)},
      {"W33", E::kValueBool, "255", Value64(0, kValuePayloadAt, 255)},
      {"W33", E::kValueBool, "2_to_63", Value64(0, kValuePayloadAt, k2To63)},
      {"W34", E::kValueFloat, "nan", Value64(1, kValuePayloadAt, float_bits(std::nan("")))},
      {"W34", E::kValueFloat, "infinity", Value64(1, kValuePayloadAt, float_bits(infinity))},
      {"W34", E::kValueFloat, "minus_infinity", Value64(1, kValuePayloadAt, float_bits(-infinity))},
      {"W34", E::kOk, "minus_zero", Value64(1, kValuePayloadAt, float_bits(-0.0))},
      {"W34", E::kOk, "subnormal", Value64(1, kValuePayloadAt, 1)},
  };
}

std::vector<Case> TensorCases() {
  return {
      {"W35", E::kTensorRank, "0", Shape(DType::kI8, {})},
      {"W35", E::kTensorRank, "9", Tensor32(1, kRankAt, 9)},
      {"W35", E::kTensorRank, "255", Tensor32(1, kRankAt, 255)},
      {"W35", E::kTensorRank, "2_to_32_minus_1", Tensor32(1, kRankAt, kAll)},
      {"W35", E::kOk, "8", Shape(DType::kI8, {2, 1, 2, 1, 2, 1, 2, 4})},
      {"W35", E::kTensorUnused, "dimension_past_rank", Tensor64(1, kShapeAt + 8, 1)},
      {"W35", E::kTensorUnused, "field", Tensor32(1, kTensorUnusedAt, 1)},
      {"W36", E::kTensorDimension, "first_0", Shape(DType::kI8, {0, 64})},
      {"W36", E::kTensorDimension, "last_0", Shape(DType::kI8, {64, 0})},
      {"W36", E::kTensorDimension, "0_with_bytes", Tensor64(1, kShapeAt, 0)},
      {"W37", E::kTensorOverflow, "wraps_to_64",
       Shape(DType::kI8, {k2To32 + 1, (k2To32 - 1) * 64, k2To32})},
      {"W37", E::kTensorOverflow, "wraps_to_exactly_0", Shape(DType::kI8, {k2To32, k2To32})},
      {"W37", E::kTensorOverflow, "wraps_to_exactly_0_by_sign", Shape(DType::kI8, {k2To63, 2})},
      {"W37", E::kTensorOverflow, "0_after_overflow_by_a_reader",
       Shape(DType::kI8, {k2To32, k2To32, 64})},
      {"W37", E::kTensorRange, "negative_as_signed", Shape(DType::kI8, {k2To63})},
      {"W38", E::kTensorOverflow, "element_size_wraps", Shape(DType::kF32, {uint64_t{1} << 62})},
      {"W38", E::kTensorOverflow, "element_size_wraps_to_right",
       Shape(DType::kF32, {(uint64_t{1} << 62) + 16})},
      {"W39", E::kTensorRange, "padding_wraps", Shape(DType::kI8, {kAll - 15})},
      {"W40", E::kTensorRange, "sum_wraps",
       [](DamagedFile& f) {
         f.Reshape(0, DType::kI8, {k2To63});
         f.Reshape(1, DType::kI8, {k2To63});
       }},
      {"W40", E::kTensorRange, "sum_wraps_in_32_bits", Shape(DType::kI8, {k2To32 + 64})},
      {"W41", E::kTensorType, "0", Tensor32(1, kDTypeAt, 0)},
      {"W41", E::kTensorType, "next", Tensor32(1, kDTypeAt, 7)},
      {"W41", E::kTensorType, "negative", Tensor32(1, kDTypeAt, kAll)},
      {"W44", E::kTensorBytes, "one_more", TensorAdd(1, kDataBytesAt, 1)},
      {"W44", E::kTensorBytes, "one_less", TensorAdd(1, kDataBytesAt, kAll)},
      {"W44", E::kTensorBytes, "of_other_type", Tensor32(1, kDTypeAt, 1)},
      {"W45", E::kTensorRange, "at_end",
       [](DamagedFile& f) { f.Put64(f.Tensor(2) + kDataOffsetAt, f.bytes().size()); }},
      {"W45", E::kTensorRange, "one_past",
       [](DamagedFile& f) { f.Put64(f.Tensor(2) + kDataOffsetAt, f.bytes().size() - 9); }},
      {"W45", E::kTensorRange, "wraps", Tensor64(2, kDataOffsetAt, kAll - 5)},
      {"W45", E::kTensorRange, "wraps_to_inside", Tensor64(2, kDataOffsetAt, kAll - 9)},
      {"W45", E::kDataEnd, "padding_cut", [](DamagedFile& f) { f.bytes().resize(f.Data(2) + 10); }},
      {"W46", E::kTensorOverlap, "in_header", Tensor64(0, kDataOffsetAt, 64)},
      {"W46", E::kTensorOverlap, "at_0", Tensor64(0, kDataOffsetAt, 0)},
      {"W47", E::kTensorMisaligned, "by_1", TensorAdd(0, kDataOffsetAt, 1)},
      {"W47", E::kTensorMisaligned, "by_2", TensorAdd(0, kDataOffsetAt, 2)},
      {"W47", E::kTensorMisaligned, "by_63", TensorAdd(0, kDataOffsetAt, 63)},
      {"W48", E::kTensorOverlap, "same_range",
       [](DamagedFile& f) { f.Put64(f.Tensor(1) + kDataOffsetAt, f.Data(0)); }},
      {"W48", E::kTensorOverlap, "by_one_byte",
       [](DamagedFile& f) {  // zeros there look like padding
         std::memset(f.at(f.Data(1)), 0, 64);
         f.Reshape(0, DType::kI8, {65});
       }},
      {"W49", E::kTensorHole, "64_bytes",
       [](DamagedFile& f) {
         const auto at = f.bytes().begin() + static_cast<ptrdiff_t>(f.Data(1));
         f.bytes().insert(at, 64, std::byte{0});
         TensorAdd(1, kDataOffsetAt, 64)(f), TensorAdd(2, kDataOffsetAt, 64)(f);
       }},
      {"W50", E::kTensorHole, "data_swapped",
       [](DamagedFile& f) {
         const uint64_t first = f.Data(1), second = f.Data(2);
         f.Put64(f.Tensor(1) + kDataOffsetAt, second), f.Put64(f.Tensor(2) + kDataOffsetAt, first);
       }},
      {"W50", E::kNameOrder, "names_swapped",
       [](DamagedFile& f) { NameOf(0, "betas")(f), NameOf(1, "alpha")(f); }},
  };
}

// For the test's messages.
void PrintTo(const Case& test, std::ostream* out) {
  *out << test.kind << " " << FormatErrorName(test.error) << " " << test.what;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases = PreambleCases();
  for (Case& value : ValueCases()) cases.push_back(std::move(value));
  for (Case& tensor : TensorCases()) cases.push_back(std::move(tensor));
  return cases;
}

class CorruptTest : public ::testing::TestWithParam<Case> {};

TEST_P(CorruptTest, GivesItsError) {
  const Case& test = GetParam();
  DamagedFile file = DamagedFile::Small();
  test.damage(file);
  if (test.keep != Keep::kChecksum) file.Seal(/*with_size=*/test.keep != Keep::kSize);
  const auto start = std::chrono::steady_clock::now();
  const VerifyReport report = Verify(file.bytes(), VerifyLevel::kStructure);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  EXPECT_STREQ(FormatErrorName(report.error), FormatErrorName(test.error))
      << "at " << report.offset << ": expected " << report.expected << ", got " << report.got;
  EXPECT_LE(report.offset, file.bytes().size());
  EXPECT_LT(took.count(), 50);
  const FileBytes copy = FileBytes::Copy(file.bytes());
  const Result<FileView> view = FileView::Open(copy.bytes(), VerifyLevel::kStructure, "x.attend");
  EXPECT_EQ(view.ok(), test.error == E::kOk);
  if (view.ok()) return;
  const bool newer = test.error == E::kVersion || test.error == E::kRequiredFeature;
  EXPECT_EQ(view.status().code(), newer ? ErrorCode::kUnsupported : ErrorCode::kCorrupt);
  EXPECT_EQ(view.status().where(), "x.attend");
  EXPECT_FALSE(view.status().hint().empty());
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.kind) + "_" + FormatErrorName(info.param.error) + "_" +
         info.param.what;
}
INSTANTIATE_TEST_SUITE_P(W, CorruptTest, ::testing::ValuesIn(AllCases()), CaseName);

TEST(CorruptCoverageTest, EveryRuleHasACase) {
  std::vector<bool> covered(kNumFormatErrors);
  for (const Case& test : AllCases()) covered[static_cast<size_t>(test.error)] = true;
  covered[static_cast<size_t>(E::kTensorChecksum)] = true;  // format_damage_test.cc
  for (uint32_t i = 0; i < kNumFormatErrors; ++i) {
    EXPECT_TRUE(covered[i]) << FormatErrorName(static_cast<FormatError>(i));
  }
}

TEST(CorruptCoverageTest, EveryRuleHasANameAndASentenceOfItsOwn) {
  for (uint32_t i = 0; i < kNumFormatErrors; ++i) {
    const std::string name = FormatErrorName(static_cast<FormatError>(i));
    const std::string text = FormatErrorText(static_cast<FormatError>(i));
    EXPECT_EQ(text.back(), '.');
    for (uint32_t k = 0; k < i; ++k) {
      EXPECT_NE(name, FormatErrorName(static_cast<FormatError>(k)));
      EXPECT_NE(text, FormatErrorText(static_cast<FormatError>(k)));
    }
  }
  EXPECT_STREQ(FormatErrorName(static_cast<FormatError>(kNumFormatErrors)), "UNKNOWN");
  EXPECT_STREQ(FormatErrorText(static_cast<FormatError>(kNumFormatErrors)), "An unknown rule.");
}

}  // namespace
}  // namespace attend
