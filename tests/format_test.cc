// The container as it should be: what is written is read again, the same contents are the same
// bytes, and the verifier costs what it promises. Bad files: format_corrupt_test.cc; the file
// system: file_bytes_test.cc.
#include "engine/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "engine/format_guess.h"
#include "engine/format_layout.h"
#include "tests/format_testing.h"

namespace {
std::atomic<int64_t> allocations{0};
}

// Every allocation of the program passes here. Not inlined: g++ would take the halves apart and
// warn.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace attend {
namespace {

using testing::Pattern;

FileView MustOpen(std::span<const std::byte> bytes) {
  Result<FileView> view = FileView::Open(bytes, VerifyLevel::kFull, "test");
  EXPECT_TRUE(view.ok()) << view.status().ToString();
  return view.ok() ? *view : FileView();
}

TEST(FormatTest, ValuesOfEveryTypeComeBack) {
  FileWriter writer = testing::SmallWriter();
  writer.SetInt("min", std::numeric_limits<int64_t>::min());
  writer.SetFloat("tiny", std::numeric_limits<double>::denorm_min());
  writer.SetBool("no", false);
  writer.SetString("empty", "");
  writer.SetStrings("none", {});
  writer.SetInts("nil", {});
  const auto bytes = writer.WriteToBytes();
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const FileView file = MustOpen(*bytes);
  EXPECT_EQ(file.FindBool("k0"), true);
  EXPECT_EQ(file.FindFloat("k1"), 1.5);
  EXPECT_EQ(file.FindInt("k2"), -7);
  EXPECT_EQ(file.FindInts("k3"), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(file.FindString("k4"), "h\xC3\xA9llo");
  EXPECT_EQ(file.FindStrings("k5"), (std::vector<std::string_view>{"one", "", "two"}));
  EXPECT_EQ(file.FindInt("min"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(file.FindFloat("tiny"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(file.FindBool("no"), false);
  EXPECT_EQ(file.FindString("empty"), "");
  EXPECT_EQ(file.FindStrings("none"), std::vector<std::string_view>());
  EXPECT_EQ(file.FindInts("nil"), std::vector<int64_t>());
  const auto keys = file.keys();
  EXPECT_EQ(keys.size(), 12u);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

TEST(FormatTest, AnotherTypeOrNameIsNotThere) {
  const auto bytes = testing::SmallWriter().WriteToBytes();
  const FileView file = MustOpen(*bytes);
  for (const char* key : {"k0", "k1", "k2", "k3", "k4", "k5"}) {
    const int found = file.FindBool(key).has_value() + file.FindFloat(key).has_value() +
                      file.FindInt(key).has_value() + file.FindInts(key).has_value() +
                      file.FindString(key).has_value() + file.FindStrings(key).has_value();
    EXPECT_EQ(found, 1) << key;
  }
  for (const char* key : {"", "a", "k", "k00", "k6", "z"}) {
    EXPECT_FALSE(file.FindInt(key)) << key;
    EXPECT_FALSE(file.FindTensor(key)) << key;
  }
  const FileView none;
  EXPECT_EQ(none.num_tensors(), 0u);
  EXPECT_TRUE(none.keys().empty());
  EXPECT_FALSE(none.FindTensor("alpha"));
  EXPECT_FALSE(none.FindInt("k2"));
}

TEST(FormatTest, TensorsComeBackAligned) {
  const auto bytes = testing::SmallWriter().WriteToBytes();
  const FileBytes copy = FileBytes::Copy(*bytes);
  const FileView file = MustOpen(copy.bytes());
  ASSERT_EQ(file.num_tensors(), 3u);
  const auto gamma = file.FindTensor("gamma");
  ASSERT_TRUE(gamma);
  EXPECT_EQ(gamma->name, "gamma");
  EXPECT_EQ(gamma->dtype, DType::kBf16);
  EXPECT_EQ(std::vector<uint64_t>(gamma->shape.begin(), gamma->shape.end()),
            (std::vector<uint64_t>{5, 1, 1}));
  EXPECT_EQ(gamma->num_elements(), 5u);
  std::vector<std::byte> expected(10);
  ASSERT_TRUE(Pattern(3)(expected).ok());
  EXPECT_TRUE(
      std::equal(expected.begin(), expected.end(), gamma->bytes.begin(), gamma->bytes.end()));
  for (size_t i = 0; i < file.num_tensors(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file.tensor(i).bytes.data()) % 64, 0u);
  }
}

TEST(FormatTest, TypesHaveSizesAndNames) {
  const std::map<DType, std::pair<size_t, std::string>> all = {
      {DType::kF32, {4, "F32"}}, {DType::kF16, {2, "F16"}}, {DType::kBf16, {2, "BF16"}},
      {DType::kI8, {1, "I8"}},   {DType::kU8, {1, "U8"}},   {DType::kI32, {4, "I32"}}};
  for (const auto& [dtype, expected] : all) {
    EXPECT_EQ(DTypeSize(dtype), expected.first);
    EXPECT_EQ(DTypeName(dtype), expected.second);
  }
  EXPECT_EQ(DTypeSize(static_cast<DType>(0)), 0u);
  EXPECT_EQ(DTypeSize(static_cast<DType>(7)), 0u);
  EXPECT_STREQ(DTypeName(static_cast<DType>(7)), "UNKNOWN");
}

// W81.
TEST(FormatTest, MisalignedBytesVerifyButDoNotOpen) {
  const auto bytes = testing::SmallWriter().WriteToBytes();
  std::vector<std::byte> shifted(bytes->size() + 1);
  std::copy(bytes->begin(), bytes->end(), shifted.begin() + 1);
  const auto view = std::span(shifted).subspan(1);
  EXPECT_TRUE(Verify(view, VerifyLevel::kFull).ok());
  const Result<FileView> opened = FileView::Open(view, VerifyLevel::kFull, "test");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), ErrorCode::kInvalidArgument);
  const FileBytes copy = FileBytes::Copy(view);
  shifted.clear();  // nothing is borrowed from it any more
  EXPECT_TRUE(FileView::Open(copy.bytes(), VerifyLevel::kFull, "test").ok());
}

// The first bytes of a file are for ever: a reader of another version must understand them.
TEST(FormatTest, TheEmptyFileIsTheseBytes) {
  const auto bytes = FileWriter().WriteToBytes();
  ASSERT_TRUE(bytes.ok());
  const unsigned char expected[128] = {
      0x89, 'A', 'T', 'T', '\r', '\n', 0x1A, '\n', 1,   0, 0, 0, 4, 3, 2, 1,   // version, tag
      0,    0,   0,   0,   0,    0,    0,    0,    0,   0, 0, 0, 0, 0, 0, 0,   // features
      128,  0,   0,   0,   0,    0,    0,    0,    128, 0, 0, 0, 0, 0, 0, 0,   // file, header
      0,    0,   0,   0,   0,    0,    0,    0,    0,   0, 0, 0, 0, 0, 0, 0};  // counts
  ASSERT_EQ(bytes->size(), sizeof(expected));
  EXPECT_EQ(0, std::memcmp(bytes->data(), expected, 64));
  EXPECT_EQ(0, std::memcmp(bytes->data() + 80, expected + 80, 48));
}

// Contents drawn at random, set in two orders.
struct RandomContents {
  std::map<std::string, int64_t> ints;
  std::map<std::string, std::vector<std::string>> strings;
  std::map<std::string, std::vector<uint64_t>> tensors;
};

std::string RandomName(std::mt19937_64& random) {
  std::string name(1 + random() % (random() % 8 == 0 ? 255 : 12), ' ');
  for (char& c : name) c = static_cast<char>('!' + random() % ('~' - '!' + 1));
  return name;
}

RandomContents Draw(std::mt19937_64& random) {
  RandomContents contents;
  for (uint64_t n = random() % 20; n > 0; --n) {
    contents.ints["i" + RandomName(random).substr(0, 254)] = static_cast<int64_t>(random());
  }
  for (uint64_t n = random() % 5; n > 0; --n) {
    std::vector<std::string> texts(random() % 4);
    for (std::string& text : texts) text.assign(random() % 40, 'x');
    contents.strings["s" + RandomName(random).substr(0, 254)] = texts;
  }
  for (uint64_t n = random() % 20; n > 0; --n) {
    std::vector<uint64_t> shape(1 + random() % 8);
    for (uint64_t& dimension : shape) dimension = 1 + random() % 4;
    contents.tensors[RandomName(random)] = shape;
  }
  return contents;
}

template <typename Map, typename Add>
void ForEach(const Map& map, bool backwards, Add add) {
  if (backwards) {
    for (auto it = map.rbegin(); it != map.rend(); ++it) add(it->first, it->second);
  } else {
    for (const auto& [name, value] : map) add(name, value);
  }
}

DType TypeOf(const std::string& name) { return static_cast<DType>(1 + name.size() % 6); }

std::vector<std::byte> WriteContents(const RandomContents& contents, bool backwards) {
  FileWriter writer;
  ForEach(contents.ints, backwards, [&](const auto& k, int64_t v) { writer.SetInt(k, v); });
  ForEach(contents.strings, backwards, [&](const auto& k, auto& v) { writer.SetStrings(k, v); });
  ForEach(contents.tensors, backwards, [&](const auto& name, auto& shape) {
    writer.AddTensor(name, TypeOf(name), shape, Pattern(static_cast<uint32_t>(name.size())));
  });
  const auto bytes = writer.WriteToBytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return *bytes;
}

TEST(FormatPropertyTest, RandomContentsComeBackAndHaveOneLayout) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 500; ++i) {
    const RandomContents contents = Draw(random);
    const std::vector<std::byte> bytes = WriteContents(contents, /*backwards=*/false);
    ASSERT_EQ(bytes, WriteContents(contents, /*backwards=*/true));
    const FileView file = MustOpen(bytes);
    ASSERT_EQ(file.keys().size(), contents.ints.size() + contents.strings.size());
    for (const auto& [key, value] : contents.ints) ASSERT_EQ(file.FindInt(key), value);
    for (const auto& [key, texts] : contents.strings) {
      ASSERT_EQ(file.FindStrings(key), (std::vector<std::string_view>(texts.begin(), texts.end())));
    }
    ASSERT_EQ(file.num_tensors(), contents.tensors.size());
    for (const auto& [name, shape] : contents.tensors) {
      const auto tensor = file.FindTensor(name);
      ASSERT_TRUE(tensor) << name;
      ASSERT_EQ(tensor->dtype, TypeOf(name));
      ASSERT_TRUE(
          std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end()));
      std::vector<std::byte> expected(tensor->bytes.size());
      ASSERT_TRUE(Pattern(static_cast<uint32_t>(name.size()))(expected).ok());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), tensor->bytes.begin()));
    }
  }
}

// A writer that must fail, and the word its message must have.
void ExpectRefused(const FileWriter& writer, const std::string& word) {
  const auto bytes = writer.WriteToBytes();
  ASSERT_FALSE(bytes.ok()) << word;
  EXPECT_EQ(bytes.status().code(), ErrorCode::kInvalidArgument) << word;
  EXPECT_NE(bytes.status().ToString().find(word), std::string::npos) << bytes.status().ToString();
}

FileWriter WithTensor(std::string_view name, DType dtype, std::vector<uint64_t> shape) {
  FileWriter writer;
  writer.AddTensor(name, dtype, std::move(shape), Pattern(1));
  return writer;
}

TEST(FormatWriterTest, RefusesWhatTheVerifierWould) {
  FileWriter twice;
  twice.SetInt("key", 1);
  twice.SetBool("key", true);
  ExpectRefused(twice, "twice");
  FileWriter same = WithTensor("name", DType::kF32, {1});
  same.AddTensor("name", DType::kF32, {1}, Pattern(1));
  ExpectRefused(same, "twice");
  ExpectRefused(WithTensor("", DType::kF32, {1}), "255");
  ExpectRefused(WithTensor(std::string(256, 'a'), DType::kF32, {1}), "255");
  ExpectRefused(WithTensor("a b", DType::kF32, {1}), "ASCII");
  ExpectRefused(WithTensor("a\x1b[", DType::kF32, {1}), "ASCII");
  ExpectRefused(WithTensor("a", static_cast<DType>(9), {1}), "type");
  ExpectRefused(WithTensor("a", DType::kF32, {}), "dimensions");
  ExpectRefused(WithTensor("a", DType::kF32, std::vector<uint64_t>(9, 1)), "dimensions");
  ExpectRefused(WithTensor("a", DType::kF32, {2, 0}), "0");
  ExpectRefused(WithTensor("a", DType::kI8, {uint64_t{1} << 63}), "too large");
  ExpectRefused(WithTensor("a", DType::kI8, {uint64_t{1} << 32, uint64_t{1} << 32}), "too large");
  FileWriter unfilled;
  unfilled.AddTensor("a", DType::kF32, {1}, nullptr);
  ExpectRefused(unfilled, "fills");
  FileWriter infinite;
  infinite.SetFloat("key", std::numeric_limits<double>::infinity());
  ExpectRefused(infinite, "finite");
  FileWriter garbled;
  garbled.SetString("key", "\xFF");
  ExpectRefused(garbled, "UTF-8");
  FileWriter list;
  list.SetStrings("key", std::vector<std::string>{"good", std::string("a\0b", 3)});
  ExpectRefused(list, "String 1");
  FileWriter large;
  large.SetString("key", std::string(kMaxHeaderBytes, 'x'));
  ExpectRefused(large, "64 MiB");
}

TEST(FormatWriterTest, TooManyTensorsAreRefused) {
  FileWriter writer;
  for (uint64_t i = 0; i <= kMaxTensors; ++i) {
    writer.AddTensor("t" + std::to_string(i), DType::kU8, {1}, Pattern(1));
  }
  ExpectRefused(writer, "65,536");
}

TEST(FormatWriterTest, AFillsErrorIsTheWriters) {
  FileWriter writer = WithTensor("a", DType::kF32, {1});
  writer.AddTensor("b", DType::kF32, {1},
                   [](std::span<std::byte>) { return Status(ErrorCode::kIo, "no such weight"); });
  const auto bytes = writer.WriteToBytes();
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), ErrorCode::kIo);
  EXPECT_EQ(bytes.status().what(), "no such weight");
}

// The sanitizers end a program that asks for so much.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(FormatWriterTest, LackOfMemoryIsAnError) {
  const FileWriter writer = WithTensor("a", DType::kI8, {uint64_t{1} << 62});
  const auto bytes = writer.WriteToBytes();
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), ErrorCode::kCapacity);
}
#endif

// W10: a header of exactly the largest size.
TEST(FormatLimitTest, TheLargestHeader) {
  FileWriter writer;
  writer.SetString("k", std::string(kMaxHeaderBytes - 128 - 32 - 1, 'x'));
  const auto bytes = writer.WriteToBytes();
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  EXPECT_EQ(bytes->size(), kMaxHeaderBytes);
  EXPECT_TRUE(Verify(*bytes, VerifyLevel::kFull).ok());
}

std::vector<std::byte> ManyTensors(uint64_t count) {
  FileWriter writer;
  for (uint64_t i = 0; i < count; ++i) {
    writer.AddTensor("layers." + std::to_string(i) + ".attention.output.weight", DType::kU8, {1},
                     Pattern(static_cast<uint32_t>(i)));
  }
  return *writer.WriteToBytes();
}

// The best of several, in milliseconds.
double VerifyMs(std::span<const std::byte> bytes, VerifyLevel level) {
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(Verify(bytes, level).ok());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr double kSlack = 40;
#else
constexpr double kSlack = 1;
#endif

TEST(FormatCostTest, TenThousandTensorsTakeFiveMilliseconds) {
  const std::vector<std::byte> bytes = ManyTensors(10000);
  const double structure = VerifyMs(bytes, VerifyLevel::kStructure);
  const double full = VerifyMs(bytes, VerifyLevel::kFull);
  std::printf("10,000 tensors: structure %.2f ms, full %.2f ms\n", structure, full);
  EXPECT_LE(structure, 5 * kSlack);
}

// W51.
TEST(FormatCostTest, AsManyTensorsAsAllowed) {
  const std::vector<std::byte> bytes = ManyTensors(kMaxTensors);
  const double structure = VerifyMs(bytes, VerifyLevel::kStructure);
  std::printf("65,536 tensors: structure %.2f ms\n", structure);
  EXPECT_LE(structure, 50 * kSlack);
}

TEST(FormatCostTest, ChecksumsAreFasterThanDisks) {
  const auto bytes = WithTensor("a", DType::kU8, {64 << 20}).WriteToBytes();
  const double full = VerifyMs(*bytes, VerifyLevel::kFull);
  std::printf("full: %.1f GB/s\n", 64 * 1.048576 / full);
  EXPECT_LE(full, 64 * kSlack);  // a gigabyte a second, on the busiest machine
}

TEST(FormatCostTest, VerifyAllocatesNothing) {
  const std::vector<std::byte> good = ManyTensors(100);
  testing::DamagedFile bad = testing::DamagedFile::Small();
  bad.Put64(bad.Tensor(1) + layout::kDataOffsetAt, 1);
  bad.Seal();
  const int64_t before = allocations;
  const bool verified = Verify(good, VerifyLevel::kFull).ok();
  const bool refused = !Verify(bad.bytes(), VerifyLevel::kFull).ok();
  const int64_t after = allocations;
  EXPECT_EQ(after, before);
  EXPECT_TRUE(verified && refused);
  static_assert(noexcept(Verify({}, VerifyLevel::kFull)));
  const std::vector<int> probe(10);  // the counter counts
  EXPECT_GT(allocations, after);
}

TEST(FormatGuessTest, SaysWhatItSeemsToBe) {
  const std::string zeros(120, '\0');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git-LFS"},
      {"<!DOCTYPE html><html>", "web page"},
      {"\n  <HTML lang=en>", "web page"},
      {"<?xml version='1.0'?><Error/>", "web page"},
      {"{\"error\": \"not found\"}", "JSON"},
      {"\xEF\xBB\xBF [1]", "JSON"},
      {"PK\x03\x04" + zeros, "zip"},
      {"PK\x05\x06" + zeros, "zip"},
      {"\x80\x02}q" + zeros, "pickle"},
      {"\x80\x04\x95" + zeros, "pickle"},
      {"GGUF" + zeros, "GGUF"},
      {"\x1f\x8b\x08" + zeros, "gzip"},
      {"\x7f"
       "ELF" +
           zeros,
       "ELF"},
      {"\x93NUMPY\x01" + zeros, "NumPy"},
      {"\x89HDF\r\n\x1a\n" + zeros, "HDF5"},
      {std::string("\x40\0\0\0\0\0\0\0{\"a\"", 12) + zeros, "safetensors"},
      {std::string("\x40\0\0\0\0\0\0\x80{\"a\"", 12) + zeros, "not an .attend"},
      {"\x89"
       "ATT\n\x1a\n" +
           zeros,
       "text mode"},
      {"ATT\r\n\x1a\n" + zeros, "text mode"},
      {"\tATT\r\n\x1a\n" + zeros, "text mode"},
      {"\x89"
       "ATT\r\n\x1a\n" +
           zeros.substr(0, 50),
       "cut off"},
      {"x", "not an .attend"},
      {"   ", "not an .attend"},
      {"Hello", "not an .attend"}};
  for (const auto& [start, word] : cases) {
    const FileBytes bytes = FileBytes::Copy(std::as_bytes(std::span(start)));
    const auto view = FileView::Open(bytes.bytes(), VerifyLevel::kStructure, "model.attend");
    ASSERT_FALSE(view.ok()) << word;
    EXPECT_EQ(view.status().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(view.status().where(), "model.attend");
    EXPECT_NE(view.status().ToString().find(word), std::string::npos)
        << word << ": " << view.status().ToString();
    EXPECT_FALSE(view.status().hint().empty());
  }
}

TEST(TextTest, IsUtf8WithoutNul) {
  for (const char* good : {"", "a", "\x7f", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                           "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF",
                           "\xE4\xB8\xAD"
                           "a\xC3\xA9"}) {
    EXPECT_TRUE(layout::IsText(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2",
        "\xC2"
        "a",
        "\xE0\x80\x80", "\xE0\xA0", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xE4\xB8"
        "a",
        "\xF0\x80\x80\x80", "\xF0\x90\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
        "\xF0\x90"
        "aa",
        "\xE4\xC0\x80"}) {
    EXPECT_FALSE(layout::IsText(bad)) << bad;
  }
  EXPECT_FALSE(layout::IsText(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace attend
