// Files as they are found and as they are left: what is no file, what changes while it is read, and
// writers that fail. The numbers W.. are those of format_corrupt_test.cc. W72, W73 (truncated or
// overwritten while mapped) are the caller's to avoid, as format.h says; kRead is immune, as is
// tested here. W76-W79: what a process can do to itself; injected faults: io_fault_test.cc,
// memory_fault_test.cc.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/format.h"
#include "engine/format_layout.h"
#include "tests/format_testing.h"

namespace attend {
namespace {

namespace fs = std::filesystem;
using Mode = FileBytes::Mode;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "attend_file_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Save(const std::string& name, std::string_view text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  size_t NumFiles() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void ExpectError(const std::string& path, ErrorCode code, const std::string& word) {
  for (const Mode mode : {Mode::kMap, Mode::kRead}) {
    const Result<FileBytes> file = FileBytes::Open(path, mode);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.status().code(), code) << file.status().ToString();
    EXPECT_NE(file.status().ToString().find(word), std::string::npos) << file.status().ToString();
  }
}

// Runs `body` in a child, whose limits are its own; the child's exit code.
int InChild(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

void Limit(int resource, rlim_t value) {
  rlimit limit;
  getrlimit(resource, &limit);
  limit.rlim_cur = value;
  setrlimit(resource, &limit);
}

TEST_F(FileTest, BothModesGiveTheBytes) {
  const std::string text(100000, 'x');
  Save("a", text);
  for (const Mode mode : {Mode::kMap, Mode::kRead}) {
    Result<FileBytes> file = FileBytes::Open(Path("a"), mode);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(Text(file->bytes()), text);
    EXPECT_EQ(file->mapped(), mode == Mode::kMap);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file->bytes().data()) % 64, 0u);
    file->Release(file->bytes().subspan(5, 90000));
    file->Release({});
    EXPECT_EQ(Text(file->bytes()), text);
    FileBytes moved = std::move(*file);
    EXPECT_EQ(Text(moved.bytes()), text);
    EXPECT_TRUE(file->bytes().empty());
    FileBytes other = FileBytes::Copy(moved.bytes().first(3));
    other = std::move(moved);
    EXPECT_EQ(Text(other.bytes()), text);
  }
  Save("empty", "");
  EXPECT_TRUE(FileBytes::Open(Path("empty"), Mode::kMap)->bytes().empty());
}

TEST_F(FileTest, W69WhatIsNoFile) {
  ExpectError(folder_.string(), ErrorCode::kIo, "a folder");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  ExpectError(Path("pipe"), ErrorCode::kIo, "a named pipe");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, Path("sock").c_str(), sizeof(address.sun_path) - 1);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ExpectError(Path("sock"), ErrorCode::kIo, "a socket");
  close(server);
  ExpectError("/dev/zero", ErrorCode::kIo, "a device");
  ExpectError("/dev/full", ErrorCode::kIo, "a device");
  ExpectError("/proc/self/mem", ErrorCode::kIo, "/proc");
  ExpectError("/proc/self/status", ErrorCode::kIo, "/proc");
}

TEST_F(FileTest, W70Links) {
  fs::create_symlink(Path("b"), Path("a"));
  ExpectError(Path("a"), ErrorCode::kNotFound, "No such file");  // dangling
  fs::create_symlink(Path("a"), Path("b"));
  ExpectError(Path("a"), ErrorCode::kIo, "circle");
  Save("c", "text");
  fs::create_symlink(Path("c"), Path("d"));
  EXPECT_EQ(Text(FileBytes::Open(Path("d"), Mode::kRead)->bytes()), "text");
}

TEST_F(FileTest, W71Paths) {
  ExpectError(Path("none"), ErrorCode::kNotFound, "No such file");
  Save("a", "text");
  ExpectError(Path("a/b"), ErrorCode::kNotFound, "Not a directory");
  ExpectError("", ErrorCode::kInvalidArgument, "empty");
  ExpectError(std::string("a\0b", 3), ErrorCode::kInvalidArgument, "NUL");
  ExpectError(std::string(5000, 'a'), ErrorCode::kIo, "shorter path");
  Save("\xFF\xFE", "text");  // a name is bytes
  EXPECT_TRUE(FileBytes::Open(Path("\xFF\xFE"), Mode::kMap).ok());
  chmod(Path("a").c_str(), 0);
  EXPECT_EQ(0, InChild([&] {  // root may read everything, so be nobody
              if (geteuid() == 0 && seteuid(65534) != 0) return false;
              const Result<FileBytes> file = FileBytes::Open(Path("a"), Mode::kMap);
              return file.status().code() == ErrorCode::kIo &&
                     file.status().hint().find("permissions") != std::string::npos;
            }));
}

TEST_F(FileTest, W72W73ReadFilesAreImmune) {
  Save("a", std::string(20000, 'x'));
  const Result<FileBytes> file = FileBytes::Open(Path("a"), Mode::kRead);
  Save("a", "y");
  EXPECT_EQ(Text(file->bytes()), std::string(20000, 'x'));
}

TEST_F(FileTest, W74RenamedOverWhileMapped) {
  Save("a", std::string(20000, 'x'));
  Save("b", "y");
  const Result<FileBytes> file = FileBytes::Open(Path("a"), Mode::kMap);
  fs::rename(Path("b"), Path("a"));
  EXPECT_EQ(Text(file->bytes()), std::string(20000, 'x'));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(FileTest, W75W76NoRoomToMapOrRead) {
  Save("a", "");
  fs::resize_file(Path("a"), 512 << 20);
  EXPECT_EQ(0, InChild([&] {
              Limit(RLIMIT_AS, 256 << 20);
              const Result<FileBytes> file = FileBytes::Open(Path("a"), Mode::kMap);
              return !file.ok() && file.status().code() == ErrorCode::kCapacity;
            }));
}
#endif

TEST_F(FileTest, W78NoDescriptorLeft) {
  Save("a", "text");
  EXPECT_EQ(0, InChild([&] {
              Limit(RLIMIT_NOFILE, 0);
              const Result<FileBytes> file = FileBytes::Open(Path("a"), Mode::kMap);
              const Status written = testing::SmallWriter().Write(Path("b"));
              return file.status().code() == ErrorCode::kIo && written.code() == ErrorCode::kIo &&
                     file.status().hint().find("ulimit") != std::string::npos;
            }));
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(FileTest, W80ManyThreadsAndManyTimes) {
  ASSERT_TRUE(testing::SmallWriter().Write(Path("a")).ok());
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 160; ++i) {
        const Result<FileBytes> file = FileBytes::Open(Path("a"), i % 2 ? Mode::kMap : Mode::kRead);
        good += file.ok() && Verify(file->bytes(), VerifyLevel::kFull).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 64 * 160);
  EXPECT_LT(open("/dev/null", O_RDONLY | O_CLOEXEC), 100);  // no descriptor was kept
}

// W40, W54: sizes past 32 bits, and a file that is almost all hole.
TEST_F(FileTest, W40FiveGibibytes) {
  const uint64_t large = uint64_t{5} << 30;
  testing::DamagedFile file = testing::DamagedFile::Small();
  file.Reshape(1, DType::kI8, {large});
  file.Put64(file.Tensor(2) + layout::kDataOffsetAt, file.Data(1) + large);
  const uint64_t total = file.Data(1) + large + 64;
  file.Put64(layout::kFileBytesAt, total);
  file.Seal(/*with_size=*/false);
  file.bytes().resize(file.Data(1));
  Save("a", Text(file.bytes()));
  std::error_code error;
  fs::resize_file(Path("a"), total, error);
  if (error) GTEST_SKIP() << "no sparse files here";
  const Result<FileBytes> mapped = FileBytes::Open(Path("a"), Mode::kMap);
  ASSERT_TRUE(mapped.ok()) << mapped.status().ToString();
  const auto view = FileView::Open(mapped->bytes(), VerifyLevel::kStructure, "a");
  ASSERT_TRUE(view.ok()) << view.status().ToString();
  EXPECT_EQ(view->FindTensor("betas")->bytes.size(), large);
  EXPECT_EQ(view->FindTensor("gamma")->bytes.data() - view->bytes().data(),
            static_cast<ptrdiff_t>(total - 64));
}

TEST_F(FileTest, W54SparseFile) {
  Save("a", Text(testing::DamagedFile::Small().bytes()));
  std::error_code error;
  for (uint64_t size = uint64_t{7} << 60; size > 1 << 30; size >>= 1) {
    fs::resize_file(Path("a"), size, error);
    if (!error) break;
  }
  if (error) GTEST_SKIP() << "no sparse files here";
  const Result<FileBytes> file = FileBytes::Open(Path("a"), Mode::kMap);
  if (!file.ok()) {
    EXPECT_EQ(file.status().code(), ErrorCode::kCapacity) << file.status().ToString();
  } else {
    EXPECT_EQ(Verify(file->bytes(), VerifyLevel::kStructure).error, FormatError::kTrailingBytes);
  }
}

TEST_F(FileTest, WritesWhatItWritesToMemory) {
  const FileWriter writer = testing::SmallWriter();
  const std::string expected = Text(*writer.WriteToBytes());
  for (int i = 0; i < 2; ++i) {  // new, and over itself
    ASSERT_TRUE(writer.Write(Path("a")).ok());
    EXPECT_EQ(Text(FileBytes::Open(Path("a"), Mode::kRead)->bytes()), expected);
    EXPECT_EQ(NumFiles(), 1u);
  }
}

TEST_F(FileTest, RefusesPathsThatAreNoFiles) {
  const FileWriter writer = testing::SmallWriter();
  fs::create_directory(Path("folder"));
  mkfifo(Path("pipe").c_str(), 0600);
  for (const std::string& path :
       {Path("folder"), Path("folder/"), Path("folder/.."), Path("pipe"), std::string("/dev/full"),
        std::string("/dev/null"), std::string(), std::string("a\0b", 3)}) {
    EXPECT_EQ(writer.Write(path).code(), ErrorCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(writer.Write(Path("none/a")).code(), ErrorCode::kNotFound);
  EXPECT_EQ(NumFiles(), 2u);
}

TEST_F(FileTest, AFailingFillLeavesTheOldFile) {
  Save("a", "old");
  FileWriter writer = testing::SmallWriter();
  writer.AddTensor("zulu", DType::kF32, {1},
                   [](std::span<std::byte>) { return Status(ErrorCode::kCorrupt, "bad source"); });
  EXPECT_EQ(writer.Write(Path("a")).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(writer.Write(Path("b")).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(Text(FileBytes::Open(Path("a"), Mode::kRead)->bytes()), "old");
  EXPECT_EQ(NumFiles(), 1u);
}

FileWriter LargeWriter() {
  FileWriter writer;
  for (int i = 0; i < 20; ++i) {
    writer.AddTensor("t" + std::to_string(100 + i), DType::kU8, {20000}, testing::Pattern(1));
  }
  return writer;
}

// The disk fills up at any point: a limit on the size of files acts as one.
TEST_F(FileTest, NoRoomLeavesTheOldFile) {
  Save("a", "old");
  const size_t size = LargeWriter().WriteToBytes()->size();
  for (size_t limit = 0; limit < size; limit += 7919) {
    ASSERT_EQ(0, InChild([&] {
                std::signal(SIGXFSZ, SIG_IGN);
                Limit(RLIMIT_FSIZE, limit);
                const Status status = LargeWriter().Write(Path("a"));
                return status.code() == ErrorCode::kIo &&
                       status.hint().find("ulimit") != std::string::npos;
              }))
        << limit;
    ASSERT_EQ(Text(FileBytes::Open(Path("a"), Mode::kRead)->bytes()), "old");
    ASSERT_EQ(NumFiles(), 1u) << limit;
  }
}

// Killed at any point, the file is absent, old or whole, and never something else by that name.
TEST_F(FileTest, KilledAtTwoHundredPoints) {
  std::mt19937 random(1);
  const std::string whole = Text(*LargeWriter().WriteToBytes());
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) (void)LargeWriter().Write(Path("a")).ok();
    }
    usleep(static_cast<useconds_t>(random() % 3000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const Result<FileBytes> file = FileBytes::Open(Path("a"), Mode::kRead);
    if (file.ok()) {
      ASSERT_TRUE(Text(file->bytes()) == whole);
    }
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == "a" || name.ends_with(".tmp")) << name;
  }
}

}  // namespace
}  // namespace attend
