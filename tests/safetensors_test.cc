// The safetensors reader: every rule of the format, broken one at a time.
#include "tools/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/hf_folder.h"

namespace attend {
namespace {

Result<SafetensorsFile> OpenBytes(const TestFolder& folder, const std::string& bytes) {
  folder.Write("t.safetensors", bytes);
  Result<InputFile> file = InputFile::Open(folder.Path("t.safetensors"));
  if (!file.ok()) return file.status();
  return SafetensorsFile::Open(*std::move(file));
}

// A header's entry.
std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

std::string LengthBytes(uint64_t length) {
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes;
}

std::string Repeat(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(SafetensorsTest, ReadsWhatTheFormatAllows) {
  TestFolder folder;
  const std::string data = "abcdefghijklmnop";
  const struct {
    const char* name;
    std::string bytes;
    size_t tensors;
  } cases[] = {
      {"one", WithLength("{" + Entry("a", "F32", "[2,2]", "[0,16]") + "}", data), 1},
      {"scalar", WithLength("{" + Entry("a", "F64", "[]", "[0,8]") + "}", "12345678"), 1},
      {"no_elements", WithLength("{" + Entry("a", "F32", "[3,0]", "[0,0]") + "}", ""), 1},
      {"no_tensors", WithLength("{}", ""), 0},
      {"only_metadata", WithLength("{\"__metadata__\":{\"format\":\"pt\",\"a\":\"\"}}", ""), 0},
      {"trailing_spaces", WithLength("{" + Entry("a", "I8", "[16]", "[0,16]") + "}   ", data), 1},
      {"not_in_order",
       WithLength("{" + Entry("a", "I64", "[1]", "[8,16]") + "," +
                      Entry("b", "BF16", "[4]", "[0,8]") + "}",
                  data),
       2},
      {"empty_between",
       WithLength("{" + Entry("a", "U8", "[8]", "[0,8]") + "," + Entry("b", "U8", "[0]", "[8,8]") +
                      "," + Entry("c", "U8", "[8]", "[8,16]") + "}",
                  data),
       3},
      {"sub_byte", WithLength("{" + Entry("a", "F4", "[2,1]", "[0,1]") + "}", "x"), 1},
      {"other_types",
       WithLength("{" + Entry("a", "F8_E4M3", "[8]", "[0,8]") + "," +
                      Entry("b", "C64", "[1]", "[8,16]") + "}",
                  data),
       2},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto file = OpenBytes(folder, c.bytes);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_EQ(file->tensors().size(), c.tensors);
  }
  const auto file = OpenBytes(folder, cases[6].bytes);
  const StoredTensor* b = file->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(file->Find("c"), nullptr);
  EXPECT_EQ(b->type, StoredType::kBf16);
  EXPECT_EQ(b->Describe(), "BF16 [4]");
  EXPECT_EQ(b->num_elements(), 4u);
  std::string read(4, '\0');
  ASSERT_TRUE(file->Read(*b, 2, std::as_writable_bytes(std::span<char>(read))).ok());
  EXPECT_EQ(read, "cdef");
  EXPECT_EQ(file->Read(*b, 6, std::as_writable_bytes(std::span<char>(read))).code(),
            ErrorCode::kInternal);
}

struct RefusedFile {
  const char* name;
  std::string bytes;
  const char* what;
};

void ExpectRefused(const std::vector<RefusedFile>& cases) {
  TestFolder folder;
  for (const RefusedFile& c : cases) {
    SCOPED_TRACE(c.name);
    const auto file = OpenBytes(folder, c.bytes);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(file.status().where(), folder.Path("t.safetensors"));
    EXPECT_NE(file.status().what().find(c.what), std::string::npos) << file.status().ToString();
  }
}

TEST(SafetensorsTest, RefusesWhatIsNoSafetensors) {
  const std::string good = WithLength("{" + Entry("a", "U8", "[4]", "[0,4]") + "}", "abcd");
  ExpectRefused({
      {"S01_empty", "", "an empty file"},
      {"S01_short", "1234567", "something else"},
      {"S02_length_0", LengthBytes(0) + "{}", "the header does not begin"},
      {"S02_length_1", LengthBytes(1) + "{}", "does not end with '}'"},
      {"S02_length_max", LengthBytes(UINT64_MAX) + "{}", "header is 18446744073709551615"},
      {"S02_length_wraps", LengthBytes(UINT64_MAX - 7) + "{}", "header is 18446744073709551608"},
      {"S02_length_2_63", LengthBytes(uint64_t{1} << 63) + "{}", "header is 9223372036854775808"},
      {"S03_over_limit", LengthBytes(100'000'001) + "{}", "header is 100000001"},
      {"S04_beyond_file", LengthBytes(3) + "{}", "header is 3 bytes long; expected at most 2"},
      {"S05_leading_space", WithLength(" {}", ""), "something else"},
      {"S05_bom", WithLength("\xEF\xBB\xBF{}", ""), "something else"},
      {"S34_lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n",
       "a Git-LFS pointer"},
      {"html", "<!DOCTYPE html><html><body>Not found</body></html>", "an HTML page"},
      {"zip", "PK\x03\x04" + std::string(30, 'x'), "a zip archive"},
      {"pickle", "\x80\x02}q" + std::string(30, 'x'), "a Python pickle"},
      {"gguf", "GGUF" + std::string(30, 'x'), "a GGUF file"},
      {"S29_trailing_bytes", good + "x", "something behind the last tensor"},
      {"S28_data_cut", good.substr(0, good.size() - 1), "but the file holds 3"},
  });
}

TEST(SafetensorsTest, RefusesABadHeader) {
  ExpectRefused({
      {"S06_trailing_tab", WithLength("{}\t", ""), "does not end with '}'"},
      {"S06_trailing_nul", WithLength(std::string("{}\0", 3), ""), "does not end with '}'"},
      {"S06_garbage", WithLength("{}x}", ""), "not valid JSON"},
      {"S06_two_objects", WithLength("{}{}", ""), "not valid JSON"},
      {"S06_nul_inside", WithLength(std::string("{\0}", 3), ""), "NUL"},
      {"S07_invalid_utf8", WithLength("{\"\xFF\":{}}", ""), "not valid JSON"},
      {"S08_depth", WithLength(Repeat("{\"a\":", 100'000) + "1" + Repeat("}", 100'000), ""),
       "has the field \"a\""},
      {"S08_depth_of_shape",
       WithLength("{\"a\":{\"shape\":" + Repeat("[", 100'000) + Repeat("]", 100'000) + "}}", ""),
       "an array in its shape"},
      {"S09_entry_array", WithLength("{\"a\":[]}", ""), "\"a\" is an array"},
      {"S09_entry_string", WithLength("{\"a\":\"\"}", ""), "\"a\" is the string"},
      {"S09_entry_null", WithLength("{\"a\":null}", ""), "\"a\" is null"},
      {"S11_duplicate",
       WithLength(
           "{" + Entry("a", "U8", "[1]", "[0,1]") + "," + Entry("a", "U8", "[1]", "[1,2]") + "}",
           "xy"),
       "\"a\" appears twice"},
      {"S11_duplicate_escaped",
       WithLength("{" + Entry("a", "U8", "[1]", "[0,1]") + "," +
                      Entry("\\u0061", "U8", "[1]", "[1,2]") + "}",
                  "xy"),
       "\"a\" appears twice"},
      {"S11_duplicate_field",
       WithLength(
           "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x"),
       "\"dtype\" twice"},
      {"S12_metadata_number", WithLength("{\"__metadata__\":{\"a\":1}}", ""), "strings only"},
      {"S12_metadata_nested", WithLength("{\"__metadata__\":{\"a\":{}}}", ""), "strings only"},
      {"S12_metadata_array", WithLength("{\"__metadata__\":[]}", ""), "an array"},
      {"S12_metadata_twice", WithLength("{\"__metadata__\":{},\"__metadata__\":{}}", ""), "twice"},
      {"S12_metadata_key_twice", WithLength("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", ""),
       "twice"},
      {"S13_lower_case", WithLength("{" + Entry("a", "f32", "[1]", "[0,4]") + "}", "abcd"),
       "the dtype \"f32\""},
      {"S13_unknown", WithLength("{" + Entry("a", "F31", "[1]", "[0,4]") + "}", "abcd"), "\"F31\""},
      {"S26_no_dtype", WithLength("{\"a\":{\"shape\":[],\"data_offsets\":[0,1]}}", "x"),
       "lacks the field \"dtype\""},
      {"S26_no_shape", WithLength("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", "x"),
       "lacks the field \"shape\""},
      {"S26_no_offsets", WithLength("{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", "x"),
       "lacks the field \"data_offsets\""},
      {"S26_unknown_field", WithLength("{\"a\":{\"dtype\":\"U8\",\"strides\":[1]}}", "x"),
       "\"strides\""},
      {"S27_nul_name", WithLength("{" + Entry("a\\u0000b", "U8", "[1]", "[0,1]") + "}", "x"),
       "a tensor is called \"a\\x00b\""},
      {"S27_lone_surrogate", WithLength("{" + Entry("\\ud800", "U8", "[1]", "[0,1]") + "}", "x"),
       "not valid JSON"},
      {"S27_long_name",
       WithLength("{" + Entry(std::string(10'000'000, 'n'), "U8", "[1]", "[0,1]") + "}", "x"),
       "expected 1 to 1024 bytes"},
      {"S27_empty_name", WithLength("{" + Entry("", "U8", "[1]", "[0,1]") + "}", "x"),
       "expected 1 to 1024 bytes"},
  });
}

TEST(SafetensorsTest, RefusesBadShapesAndOffsets) {
  const auto one = [](const std::string& dtype, const std::string& shape,
                      const std::string& offsets, size_t bytes) {
    return WithLength("{" + Entry("a", dtype, shape, offsets) + "}", std::string(bytes, 'x'));
  };
  const auto two = [](const std::string& first, const std::string& second, size_t bytes) {
    return WithLength(
        "{" + Entry("a", "U8", "[4]", first) + "," + Entry("b", "U8", "[4]", second) + "}",
        std::string(bytes, 'x'));
  };
  std::string many = "1";
  for (int i = 0; i < 99'999; ++i) many += ",1";
  ExpectRefused({
      {"S14_negative", one("U8", "[-1]", "[0,1]", 1), "-1 in its shape"},
      {"S14_float", one("U8", "[1.0]", "[0,1]", 1), "1.0 in its shape"},
      {"S14_exponent", one("U8", "[1e3]", "[0,1000]", 1000), "1e3 in its shape"},
      {"S14_string", one("U8", "[\"16\"]", "[0,16]", 16), "in its shape"},
      {"S14_null", one("U8", "[null]", "[0,1]", 1), "null in its shape"},
      {"S14_nested", one("U8", "[[1]]", "[0,1]", 1), "an array in its shape"},
      {"S14_2_64", one("U8", "[18446744073709551616]", "[0,1]", 1), "in its shape"},
      {"S14_dims", one("U8", "[" + many + "]", "[0,1]", 1), "more than 8 dimensions"},
      {"S14_not_an_array", one("U8", "4", "[0,4]", 4), "as shape"},
      {"S17_zero_with_bytes", one("U8", "[0]", "[0,1]", 1), "expected 0 bytes, got 1"},
      {"S18_reversed", one("U8", "[1]", "[1,0]", 1), "expected begin <= end"},
      {"S18_one", one("U8", "[1]", "[0]", 1), "1 data_offsets"},
      {"S18_three", one("U8", "[1]", "[0,1,2]", 1), "in its data_offsets"},
      {"S18_none", one("U8", "[1]", "[]", 1), "0 data_offsets"},
      {"S18_float", one("U8", "[1]", "[0,1.0]", 1), "1.0 in its data_offsets"},
      {"S18_negative", one("U8", "[1]", "[-1,0]", 1), "-1 in its data_offsets"},
      {"S18_string", one("U8", "[1]", "[\"0\",\"1\"]", 1), "in its data_offsets"},
      {"S19_beyond_file", one("U8", "[9]", "[0,9]", 8), "the file holds 8"},
      {"S19_far_beyond", one("U8", "[18446744073709551615]", "[0,18446744073709551615]", 8),
       "more than 2^64 bits"},
      {"S20_overlap", two("[0,4]", "[3,7]", 7), "overlap"},
      {"S20_same_place", two("[0,4]", "[0,4]", 4), "overlap"},
      {"S21_hole", two("[0,4]", "[5,9]", 9), "hole"},
      {"S21_hole_in_front", one("U8", "[1]", "[1,2]", 2), "hole"},
      {"S23_one_less", one("F32", "[2]", "[0,7]", 7), "expected 8 bytes, got 7"},
      {"S23_one_more", one("F32", "[2]", "[0,9]", 9), "expected 8 bytes, got 9"},
      {"S24_wraps_to_small", one("U8", "[4294967297,4294967296]", "[0,0]", 0), "2^64 bits"},
      {"S24_wraps_to_zero", one("U8", "[4294967296,4294967296]", "[0,0]", 0), "2^64 bits"},
      {"S24_wraps_by_type", one("F64", "[9223372036854775808]", "[0,0]", 0), "2^64 bits"},
      {"S24_wraps_before_zero", one("U8", "[4294967296,4294967296,0]", "[0,0]", 0), "2^64 bits"},
      {"S25_half_a_byte", one("F4", "[3]", "[0,2]", 2), "not a whole number of bytes"},
      {"S25_three_quarters", one("F6_E2M3", "[3]", "[0,3]", 3), "not a whole number of bytes"},
  });
}

// Whatever is cut off or flipped in the header: an error, or a file whose tensors lie inside it.
TEST(SafetensorsTest, EveryTruncationIsRefusedAndEveryFlipIsHarmless) {
  TestFolder folder;
  const std::string good =
      WithLength("{\"__metadata__\":{\"a\":\"b\"}," + Entry("a", "F32", "[2,3]", "[0,24]") + "," +
                     Entry("b", "I64", "[1]", "[24,32]") + "}",
                 std::string(32, 'd'));
  ASSERT_TRUE(OpenBytes(folder, good).ok());
  for (size_t length = 0; length < good.size(); ++length) {
    ASSERT_FALSE(OpenBytes(folder, good.substr(0, length)).ok()) << length;
  }
  for (size_t bit = 0; bit < (good.size() - 32) * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const auto file = OpenBytes(folder, bytes);
    if (!file.ok()) continue;
    for (const StoredTensor& tensor : file->tensors()) {
      ASSERT_LE(tensor.offset, bytes.size()) << bit;
      ASSERT_LE(tensor.size_bytes, bytes.size() - tensor.offset) << bit;
    }
  }
}

TEST(SafetensorsTest, AMillionTensorsAreRead) {
  std::string header = "{";
  for (int i = 0; i < 1'000'000; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  }
  header += "}";
  const auto tensors = ParseSafetensorsHeader(header, 8 + header.size(), "x");
  ASSERT_TRUE(tensors.ok()) << tensors.status().ToString();
  EXPECT_EQ(tensors->size(), 1'000'000u);
}

TEST(SafetensorsTest, AFileCutWhileItIsReadIsAnError) {
  TestFolder folder;
  const auto file =
      OpenBytes(folder, WithLength("{" + Entry("a", "U8", "[4]", "[0,4]") + "}", "abcd"));
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(folder.Path("t.safetensors"), 20);
  std::string read(4, '\0');
  const Status status =
      file->Read(*file->Find("a"), 0, std::as_writable_bytes(std::span<char>(read)));
  EXPECT_EQ(status.code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace attend
