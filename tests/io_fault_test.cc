// The operating system failing at every call in turn, while files are read and models converted:
// W75 (no mapping: the file is read instead), W79 (short, interrupted and failing reads), and a
// converter whose output is whole or not there, whatever fails.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <functional>
#include <string>

#include "attend/attend.h"
#include "attend/text.h"
#include "engine/format.h"
#include "tests/child.h"
#include "tests/log_testing.h"
#include "tools/convert.h"

namespace {

// What the calls below do instead of their work.
struct Faults {
  int64_t left = -1;  // calls before the one that fails; below 0: none will
  int error = 0;
  const char* only = nullptr;  // the one call that fails, every time
  bool stutters = false;       // reads and writes move 7 bytes at a time, after an EINTR
  int64_t calls = 0;
};
Faults faults;

bool Fails(const char* call) {
  ++faults.calls;
  const bool chosen = faults.only != nullptr && std::string_view(faults.only) == call;
  if (!chosen && (faults.left < 0 || faults.left-- > 0)) return false;
  errno = faults.error;
  return true;
}

bool Interrupts() {
  if (!faults.stutters || faults.calls % 2 != 0) return false;
  errno = EINTR;
  return true;
}

size_t Part(size_t count) { return faults.stutters ? std::min<size_t>(count, 7) : count; }

}  // namespace

// In place of the C library's, for the whole program.
extern "C" {
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return Fails("open") ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return Fails("openat") ? -1 : static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (Fails("mmap")) return MAP_FAILED;
  // NOLINTNEXTLINE: the address comes as a number
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}
ssize_t pread(int fd, void* out, size_t count, off_t offset) {
  if (Fails("pread") || Interrupts()) return -1;
  return syscall(SYS_pread64, fd, out, Part(count), offset);
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  if (Fails("pwrite") || Interrupts()) return -1;
  return syscall(SYS_pwrite64, fd, bytes, Part(count), offset);
}
int fsync(int fd) { return Fails("fsync") ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (Fails("linkat")) return -1;
  return static_cast<int>(syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (Fails("renameat")) return -1;
  return static_cast<int>(syscall(SYS_renameat, from_folder, from, to_folder, to));
}
}

namespace attend::testing {
namespace {

using Mode = FileBytes::Mode;

// Calls `attempt` with its first, second, ... call of the system failing, until none fails.
int64_t FailEach(int error, const std::function<void()>& attempt) {
  for (int64_t k = 0;; ++k) {
    faults = {.left = k, .error = error};
    attempt();
    const bool reached = faults.left < 0;
    faults = {};
    if (!reached) return k;
  }
}

std::string Text(const FileBytes& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

class IoFault : public ::testing::Test {
 protected:
  IoFault() {
    options_.folder = ATTEND_TEST_DATA "/hf/bert", options_.output = folder_ / "x.attend";
  }
  ~IoFault() override { faults = {}; }

  Status Convert() const {
    ConvertReport report;
    return ConvertFolder(options_, &report);
  }
  std::string Whole() const {
    EXPECT_TRUE(Convert().ok());
    const std::string whole = ReadFile(options_.output);
    std::filesystem::remove(options_.output);
    EXPECT_GT(whole.size(), 10000u);
    return whole;
  }

  TemporaryFolder folder_;
  ConvertOptions options_;
};

TEST_F(IoFault, TheLoggerIsToldThatAFileIsNotMapped) {
  Whole();
  ASSERT_TRUE(Convert().ok());
  const std::string tagger = ATTEND_SOURCE_DIR "/models/pos-en.attend";
  KeepingLogger logger;
  for (const int error : {0, ENODEV}) {
    if (error != 0) faults = {.error = error, .only = "mmap"};
    const Result<Model> model = Model::Load(options_.output, {.logger = &logger});
    faults = {};
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    const std::vector<KeptEntry> told = logger.Take();
    EXPECT_TRUE(Has(EntryOf(told, LogCode::kModelLoaded).message,
                    error == 0 ? "bytes, mapped" : "bytes, read into memory"));
    const KeptEntry warning = EntryOf(told, LogCode::kNotMapped);
    EXPECT_EQ(told.size(), error == 0 ? 1u : 2u);
    // A tokenizer alone tells the same.
    if (error != 0) faults = {.error = error, .only = "mmap"};
    const Result<Tokenizer> tokenizer = Tokenizer::Load(tagger, {.logger = &logger});
    faults = {};
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    const std::vector<KeptEntry> of_tokenizer = logger.Take();
    EXPECT_TRUE(Has(EntryOf(of_tokenizer, LogCode::kModelLoaded).message,
                    error == 0 ? "bytes, mapped" : "bytes, read into memory"));
    EXPECT_EQ(of_tokenizer.size(), error == 0 ? 1u : 2u);
    if (error == 0) continue;
    EXPECT_EQ(EntryOf(of_tokenizer, LogCode::kNotMapped).level, LogLevel::kWarning);
    EXPECT_EQ(warning.level, LogLevel::kWarning);
    EXPECT_TRUE(Has(warning.message, "No such device")) << warning.message;
    EXPECT_TRUE(Has(warning.message, options_.output)) << warning.message;
  }
}

TEST_F(IoFault, W75WithoutAMappingTheFileIsRead) {
  const std::string text(100000, 'x');
  const std::string path = folder_.Write("a", text);
  for (const int error : {ENOMEM, EAGAIN, EACCES, ENODEV}) {
    faults = {.error = error, .only = "mmap"};
    Result<FileBytes> file = FileBytes::Open(path, Mode::kMap);
    EXPECT_GT(faults.calls, 1);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_EQ(Text(*file), text);
  }
}

TEST_F(IoFault, W79ReadsThatFailAreErrors) {
  const std::string text(100000, 'x');
  const std::string path = folder_.Write("a", text);
  for (const int error : {EIO, ENOMEM, ESTALE}) {
    const int64_t calls = FailEach(error, [&] {
      Result<FileBytes> file = FileBytes::Open(path, Mode::kRead);
      EXPECT_EQ(file.ok(), faults.left >= 0);
      if (file.ok()) {
        EXPECT_EQ(Text(*file), text);
      } else {
        EXPECT_NE(file.status().where().find(path), std::string::npos);
      }
    });
    EXPECT_GE(calls, 2);  // to open and to read
  }
}

TEST_F(IoFault, W79ShortAndInterruptedReadsAndWritesAreGoneOnWith) {
  const std::string whole = Whole();
  faults = {.stutters = true};
  const Status status = Convert();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_GT(faults.calls, 10000);
  EXPECT_TRUE(Text(*FileBytes::Open(options_.output, Mode::kRead)) == whole);
}

TEST_F(IoFault, ConversionIsWholeOrNotThere) {
  const std::string whole = Whole();
  for (const int error : {EIO, ENOSPC, EDQUOT, EROFS}) {
    int64_t failures = 0;
    const int64_t calls = FailEach(error, [&] {
      const Status status = Convert();
      const bool fired = faults.left < 0;
      faults = {.left = fired ? -1 : faults.left};
      failures += status.ok() ? 0 : 1;
      EXPECT_TRUE(status.ok() || status.code() == ErrorCode::kIo) << status.ToString();
      // After all but the folder is on the disk, the file is there though that is an error.
      const bool there = std::filesystem::exists(options_.output);
      EXPECT_TRUE(there || !status.ok());
      EXPECT_TRUE(!there || ReadFile(options_.output) == whole) << status.ToString();
      std::filesystem::remove(options_.output);
      EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << status.ToString();
    });
    EXPECT_GE(calls, 40) << "fewer calls than tensors";
    EXPECT_GE(failures, calls / 2);
  }
}

TEST_F(IoFault, AFailedConversionLeavesTheOldFile) {
  for (const char* call : {"pread", "pwrite", "fsync", "renameat"}) {
    folder_.Write("x.attend", "old");
    faults = {.error = EIO, .only = call};
    const Status status = Convert();
    faults = {};
    EXPECT_EQ(status.code(), ErrorCode::kIo) << call << ": " << status.ToString();
    EXPECT_EQ(ReadFile(options_.output), "old") << call;
  }
}

}  // namespace
}  // namespace attend::testing
