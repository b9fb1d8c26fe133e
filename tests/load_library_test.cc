// A library that programs load while they run: a thousand times loaded, used and let go of, and
// two copies of it in one process.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "attend/attend_c.h"
#include "tests/child.h"
#include "tests/process.h"
#include "tests/random_model.h"
#include "tests/sanitized.h"

namespace attend {
namespace {

const std::string kLibrary = ATTEND_BINARY_DIR "/libattend.so";

// One loaded copy, by its own functions.
class Loaded {
 public:
  explicit Loaded(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Loaded() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  bool ok() const { return handle_ != nullptr; }

  template <typename Function>
  Function* Get(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

  // The hidden states of one sequence of the model in `bytes`.
  std::vector<float> Hidden(const std::vector<std::byte>& bytes, int32_t backend) const {
    attend_error error = ATTEND_ERROR_INIT;
    attend_model* model = nullptr;
    attend_session* session = nullptr;
    attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;
    options.num_threads = 2;
    options.max_tokens = 64;
    options.backend = backend;
    const int32_t ids[] = {5, 6, 7, 8, 9}, offsets[] = {0, 5};
    attend_batch batch = ATTEND_BATCH_INIT;
    batch.ids = ids;
    batch.num_tokens = 5;
    batch.offsets = offsets;
    batch.num_sequences = 1;
    attend_output output = ATTEND_OUTPUT_INIT;
    std::vector<float> hidden;
    if (Get<decltype(attend_model_from_bytes)>("attend_model_from_bytes")(
            bytes.data(), bytes.size(), &model, &error) == ATTEND_OK &&
        Get<decltype(attend_session_create)>("attend_session_create")(model, &options, &session,
                                                                      &error) == ATTEND_OK &&
        Get<decltype(attend_session_run)>("attend_session_run")(session, &batch, &output, &error) ==
            ATTEND_OK) {
      hidden.assign(output.hidden, output.hidden + output.num_hidden);
    }
    EXPECT_STREQ(error.message, "");
    Get<decltype(attend_session_free)>("attend_session_free")(session);
    Get<decltype(attend_model_free)>("attend_model_free")(model);
    return hidden;
  }

 private:
  void* handle_;
};

std::vector<std::byte> ModelBytes() {
  const auto bytes = testing::RandomModelBytes(testing::EncoderConfig(16, 1, 2, 32), 1);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return *bytes;
}

class LoadLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kLibrary)) GTEST_SKIP() << "no shared library in this build";
    if (ATTEND_TEST_SANITIZED) GTEST_SKIP() << "a sanitizer must be there from the start";
  }
};

// With threads of its own: those of OpenMP live in libgomp, which nobody unloads.
TEST_F(LoadLibrary, AThousandTimes) {
  const std::vector<std::byte> bytes = ModelBytes();
  std::vector<float> expected;
  int64_t before = 0;
  for (int round = 0; round < 1000; ++round) {
    if (round == 100) before = testing::StatusBytes("VmRSS");
    const Loaded library(kLibrary);
    ASSERT_TRUE(library.ok()) << dlerror();
    const std::vector<float> hidden = library.Hidden(bytes, ATTEND_THREADS_OWN);
    if (round == 0) expected = hidden;
    ASSERT_EQ(hidden.size(), 5u * 16);
    ASSERT_EQ(hidden, expected) << "round " << round;
  }
  EXPECT_LT(testing::StatusBytes("VmRSS") - before, 1 << 20) << "bytes more than after 100 rounds";
  // It was really gone each time.
  EXPECT_EQ(dlopen(kLibrary.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST_F(LoadLibrary, TwoCopiesInOneProcess) {
  const std::vector<std::byte> bytes = ModelBytes();
  const testing::TemporaryFolder folder;
  std::filesystem::copy(kLibrary, folder / "libother.so");
  const Loaded first(kLibrary), second(folder / "libother.so");
  ASSERT_TRUE(first.ok() && second.ok()) << dlerror();
  EXPECT_NE(first.Get<decltype(attend_version)>("attend_version"),
            second.Get<decltype(attend_version)>("attend_version"));
  const std::vector<float> expected = first.Hidden(bytes, ATTEND_THREADS_DEFAULT);
  ASSERT_EQ(expected.size(), 5u * 16);
  for (const int32_t backend : {ATTEND_THREADS_DEFAULT, ATTEND_THREADS_OWN}) {
    EXPECT_EQ(second.Hidden(bytes, backend), expected);
    EXPECT_EQ(first.Hidden(bytes, backend), expected);
  }
}

}  // namespace
}  // namespace attend
