// .npy files: what NumPy writes is read, and what is something else is named.
#include "tools/npy_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/hf_folder.h"

namespace attend {
namespace {

using tools::NpyMatrix;
using tools::ParseNpyHeader;
using tools::ReadNpy;

std::string Npy(const std::string& header, const std::vector<float>& values, char version = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += {version, 0};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  }
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

constexpr char kHeader[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    \n";
const std::vector<float> kValues = {1.5f, -2, 3, 4e-30f, 5, 6};

TEST(NpyReader, WhatNumPyWrites) {
  const TestFolder folder;
  for (const char version : {'\1', '\2', '\3'}) {
    folder.Write("x.npy", Npy(kHeader, kValues, version));
    Result<NpyMatrix> matrix = ReadNpy(folder.Path("x.npy"));
    ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
    EXPECT_EQ(matrix->rows, 2u);
    EXPECT_EQ(matrix->columns, 3u);
    EXPECT_EQ(matrix->values, kValues);
  }
  folder.Write("empty.npy", Npy("{'shape': (0, 3), 'descr': \"<f4\", 'fortran_order': False}", {}));
  Result<NpyMatrix> empty = ReadNpy(folder.Path("empty.npy"));
  ASSERT_TRUE(empty.ok()) << empty.status().ToString();
  EXPECT_EQ(empty->rows, 0u);
}

TEST(NpyReader, WhatIsRefused) {
  const auto header = [](const std::string& descr, const std::string& order,
                         const std::string& shape) {
    return Npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}",
               kValues);
  };
  struct Case {
    const char* name;
    std::string bytes;
    ErrorCode code;
    const char* what;
  };
  const std::string good = Npy(kHeader, kValues);
  std::string long_header = good;
  long_header[8] = '\xFF';
  long_header[9] = '\xFF';
  std::string version = good;
  version[6] = 9;
  const Case cases[] = {
      {"empty", "", ErrorCode::kCorrupt, "an empty file"},
      {"text", "1 2 3\n", ErrorCode::kCorrupt, "expected a .npy file"},
      {"zip", "PK\x03\x04 an .npz file", ErrorCode::kCorrupt, "a zip archive"},
      {"magic_only", good.substr(0, 8), ErrorCode::kCorrupt, "expected a .npy file"},
      {"version", version, ErrorCode::kUnsupported, "format 9"},
      {"header_beyond", long_header, ErrorCode::kCorrupt, "65535"},
      {"double", header("'<f8'", "False", "(2, 3)"), ErrorCode::kUnsupported, "\"<f8\""},
      {"big_endian", header("'>f4'", "False", "(2, 3)"), ErrorCode::kUnsupported, "\">f4\""},
      {"fields", header("[('a', '<f4')]", "False", "(2, 3)"), ErrorCode::kCorrupt, "expected {"},
      {"fortran", header("'<f4'", "True", "(2, 3)"), ErrorCode::kUnsupported, "Fortran"},
      {"one_dimension", header("'<f4'", "False", "(6,)"), ErrorCode::kUnsupported,
       "1 dimensions; expected 2"},
      {"three_dimensions", header("'<f4'", "False", "(1, 2, 3)"), ErrorCode::kUnsupported, "3"},
      {"scalar", header("'<f4'", "False", "()"), ErrorCode::kUnsupported, "0 dimensions"},
      {"short_data", good.substr(0, good.size() - 1), ErrorCode::kCorrupt, "23 bytes of data"},
      {"long_data", good + "x", ErrorCode::kCorrupt, "25 bytes of data"},
      {"overflow", header("'<f4'", "False", "(4611686018427387904, 4)"), ErrorCode::kCorrupt,
       "4611686018427387904"},
      {"beyond_64_bits", header("'<f4'", "False", "(99999999999999999999, 4)"), ErrorCode::kCorrupt,
       "expected {"},
      {"negative", header("'<f4'", "False", "(-2, 3)"), ErrorCode::kCorrupt, "expected {"},
      {"twice", Npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False}", kValues),
       ErrorCode::kCorrupt, "expected {"},
      {"missing", Npy("{'descr': '<f4', 'fortran_order': False}", kValues), ErrorCode::kCorrupt,
       "expected {"},
      {"another_key", Npy("{'descr': '<f4', 'x': 1}", kValues), ErrorCode::kCorrupt, "expected {"},
      {"behind", Npy(std::string(kHeader) + "}", kValues), ErrorCode::kCorrupt, "expected {"},
  };
  const TestFolder folder;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    folder.Write("x.npy", c.bytes);
    const Result<NpyMatrix> matrix = ReadNpy(folder.Path("x.npy"));
    ASSERT_FALSE(matrix.ok());
    EXPECT_EQ(matrix.status().code(), c.code) << matrix.status().ToString();
    EXPECT_NE(matrix.status().ToString().find(c.what), std::string::npos)
        << matrix.status().ToString();
    EXPECT_TRUE(matrix.status().where().starts_with(folder.path())) << matrix.status().ToString();
  }
  EXPECT_EQ(ReadNpy(folder.Path("none.npy")).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(ReadNpy(folder.path()).status().code(), ErrorCode::kIo);
}

// Whatever the header holds, the parser ends and stays inside it.
TEST(NpyReader, EveryCutAndByteOfAHeader) {
  const std::string header = kHeader;
  for (size_t i = 0; i < header.size(); ++i) {
    ParseNpyHeader(header.substr(0, i), "cut").ok();
    for (const char byte : {'\0', '\'', '(', ')', ',', '9', '\xFF'}) {
      std::string changed = header;
      changed[i] = byte;
      ParseNpyHeader(changed, "changed").ok();
    }
  }
  EXPECT_TRUE(ParseNpyHeader(header, "whole").ok());
}

}  // namespace
}  // namespace attend
