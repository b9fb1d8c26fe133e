// Damage by chance: flipped bits, files cut off or spliced, random headers. Damage by design:
// format_corrupt_test.cc.
#include <gtest/gtest.h>

#include <random>
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

// W83: no bit of the header can change unseen, at any load.
TEST(FlipsTest, EveryBitOfTheHeader) {
  DamagedFile file = DamagedFile::Small();
  const uint64_t bits = file.header_bytes() * 8;
  for (uint64_t bit = 0; bit < bits; ++bit) {
    *file.at(bit / 8) ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_FALSE(Verify(file.bytes(), VerifyLevel::kStructure).ok()) << "bit " << bit;
    *file.at(bit / 8) ^= static_cast<std::byte>(1 << bit % 8);
  }
  ASSERT_TRUE(Verify(file.bytes(), VerifyLevel::kFull).ok());
  RecordProperty("bits", static_cast<int>(bits));
}

// A file of some hundred kilobytes, with padding after every tensor.
std::vector<std::byte> LargerFile() {
  FileWriter writer;
  for (uint32_t i = 0; i < 100; ++i) {
    writer.AddTensor("t" + std::to_string(i), DType::kU8, {1000 + 61 * i}, testing::Pattern(i));
  }
  return *writer.WriteToBytes();
}

TEST(FlipsTest, TenThousandRandomBitsOfTheData) {
  DamagedFile file(LargerFile());
  std::mt19937_64 random(20240601);
  const uint64_t begin = file.header_bytes();
  int checksums = 0;
  for (int i = 0; i < 10000; ++i) {
    const uint64_t at = begin + random() % (file.bytes().size() - begin);
    const auto mask = static_cast<std::byte>(1 << random() % 8);
    *file.at(at) ^= mask;
    const VerifyReport report = Verify(file.bytes(), VerifyLevel::kFull);
    ASSERT_TRUE(report.error == E::kTensorChecksum || report.error == E::kTensorPadding) << at;
    checksums += report.error == E::kTensorChecksum ? 1 : 0;
    *file.at(at) ^= mask;
  }
  EXPECT_GT(checksums, 9000);
  EXPECT_TRUE(Verify(file.bytes(), VerifyLevel::kFull).ok());
}

TEST(FlipsTest, AnErrorOfADataChecksumNamesTheTensor) {
  DamagedFile file = DamagedFile::Small();
  *file.at(file.Data(1) + 5) ^= std::byte{4};
  EXPECT_TRUE(FileView::Open(file.bytes(), VerifyLevel::kStructure, "x").ok());
  const Result<FileView> view = FileView::Open(file.bytes(), VerifyLevel::kFull, "x");
  ASSERT_FALSE(view.ok());
  EXPECT_NE(view.status().what().find("TENSOR_CHECKSUM"), std::string::npos);
  EXPECT_NE(view.status().what().find("tensor betas"), std::string::npos);
}

// W53: cut off anywhere.
TEST(TruncationTest, EveryLengthOfASmallFile) {
  const std::vector<std::byte> bytes = DamagedFile::Small().bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const VerifyReport report = Verify(std::span(bytes).first(size), VerifyLevel::kStructure);
    ASSERT_EQ(report.error, size < kPreambleBytes ? E::kTooShort : E::kTruncated) << size;
    ASSERT_EQ(report.got, size);
  }
}

TEST(TruncationTest, AThousandLengthsOfALargerFile) {
  const std::vector<std::byte> bytes = LargerFile();
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    const size_t size = random() % bytes.size();
    ASSERT_FALSE(Verify(std::span(bytes).first(size), VerifyLevel::kStructure).ok()) << size;
  }
}

// The same with sizes and checksum repaired: it is not the stated size alone that protects.
TEST(TruncationTest, EveryLengthOfASmallFileThatStatesIt) {
  for (size_t size = 0; size < DamagedFile::Small().bytes().size(); ++size) {
    DamagedFile file = DamagedFile::Small();
    file.bytes().resize(size);
    file.Seal();
    ASSERT_FALSE(Verify(file.bytes(), VerifyLevel::kStructure).ok()) << size;
  }
}

// W83: the head of one file and the tail of another.
TEST(SpliceTest, TwoFilesNeverMakeAThird) {
  const std::vector<std::byte> first = LargerFile();
  FileWriter writer;
  for (uint32_t i = 0; i < 100; ++i) {
    writer.AddTensor("t" + std::to_string(i), DType::kU8, {1000 + 61 * i},
                     testing::Pattern(1000 + i));
  }
  const std::vector<std::byte> second = *writer.WriteToBytes();
  ASSERT_EQ(first.size(), second.size());
  std::mt19937_64 random(11);
  for (int i = 0; i < 1000; ++i) {
    const auto at = static_cast<ptrdiff_t>(65 + random() % (first.size() - 200));
    std::vector<std::byte> spliced(first.begin(), first.begin() + at);
    spliced.insert(spliced.end(), second.begin() + at, second.end());
    ASSERT_FALSE(Verify(spliced, VerifyLevel::kFull).ok()) << at;
  }
}

// Random headers with right checksums: whatever passes has disjoint ranges inside the file.
TEST(PropertyTest, WhatVerifiesLiesInsideTheFile) {
  std::mt19937_64 random(3);
  const std::vector<std::byte> good = DamagedFile::Small().bytes();
  int passed = 0;
  for (int i = 0; i < 200000; ++i) {
    DamagedFile file(good);
    const uint64_t header = file.header_bytes();
    for (uint64_t n = random() % 3 + 1; n > 0; --n) {
      const uint64_t at = kFileBytesAt + random() % (header - kFileBytesAt);
      *file.at(at) = static_cast<std::byte>(random() % 4 == 0 ? random() : random() % 9);
    }
    file.Seal(/*with_size=*/random() % 8 != 0);
    if (!Verify(file.bytes(), VerifyLevel::kStructure).ok()) continue;
    ++passed;
    const Result<FileView> view = FileView::Open(file.bytes(), VerifyLevel::kStructure, "x");
    const std::byte* end = file.at(header);
    for (size_t k = 0; k < view->num_tensors(); ++k) {
      const TensorView tensor = view->tensor(k);
      ASSERT_GE(tensor.bytes.data(), end);
      end = tensor.bytes.data() + tensor.bytes.size();
      ASSERT_LE(end, file.bytes().data() + file.bytes().size());
      ASSERT_EQ(tensor.num_elements() * DTypeSize(tensor.dtype), tensor.bytes.size());
    }
  }
  EXPECT_GT(passed, 1000);  // scalars, checksums and letters may change freely
}

}  // namespace
}  // namespace attend
