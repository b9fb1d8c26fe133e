// What conversion takes: measured in a process of its own, on a folder with one large tensor.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/hf_folder.h"
#include "tests/process.h"
#include "tools/convert.h"

namespace attend {
namespace {

constexpr char kMemoryFolder[] = "ATTEND_CONVERT_MEMORY_FOLDER";

// What the next test runs in a process of its own.
TEST(ConvertMemoryTest, DISABLED_Child) {
  const char* folder = std::getenv(kMemoryFolder);
  ASSERT_NE(folder, nullptr) << "only as the child of UnderTwiceTheLargestTensor";
  const int64_t before = testing::StatusBytes("VmHWM");
  ConvertReport report;
  const std::string path = folder;
  const Status status = ConvertFolder({.folder = path, .output = path + "/out"}, &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::ofstream(path + "/taken") << testing::StatusBytes("VmHWM") - before;
}

TEST(ConvertMemoryTest, UnderTwiceTheLargestTensor) {
  TestFolder folder("bert");
  folder.Remove("tokenizer.json");
  const uint64_t rows = 500'000, largest = rows * 60 * sizeof(float);  // 120 MB
  folder.config["vocab_size"] = rows;
  const std::string name = "embeddings.word_embeddings.weight";
  folder.tensors.erase(name);
  folder.Write("config.json", folder.config.dump());
  // The large tensor goes last, as a hole of the file: zeros that take no disk and no time.
  std::string data;
  nlohmann::json header;
  for (const auto& [other, tensor] : folder.tensors) {
    header[other] = {{"dtype", "F32"},
                     {"shape", tensor.shape},
                     {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
    data += tensor.data;
  }
  header[name] = {{"dtype", "F32"},
                  {"shape", {rows, 60}},
                  {"data_offsets", {data.size(), data.size() + largest}}};
  const std::string bytes = WithLength(header.dump(), data);
  folder.Write("model.safetensors", bytes);
  std::filesystem::resize_file(folder.Path("model.safetensors"), bytes.size() + largest);

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv(kMemoryFolder, folder.path().c_str(), 1);
    execl("/proc/self/exe", "convert_memory_test", "--gtest_also_run_disabled_tests",
          "--gtest_filter=ConvertMemoryTest.DISABLED_Child", nullptr);
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const uint64_t taken = std::stoull(ReadWhole(folder.Path("taken")));
  RecordProperty("taken_mib", static_cast<int>(taken >> 20));
  std::printf("peak resident size grew by %.1f MiB for a tensor of %.1f MiB\n",
              static_cast<double>(taken) / 1048576, static_cast<double>(largest) / 1048576);
  EXPECT_LT(taken, 2 * largest + (uint64_t{64} << 20));
}

}  // namespace
}  // namespace attend
