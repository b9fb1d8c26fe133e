// AdviseThreads on made-up machines: a folder that holds what /proc and /sys/fs/cgroup would.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "engine/parallel.h"

namespace attend {
namespace {

constexpr int kAffinity = 16;

// The files of a machine, by path; gone at the end.
class FakeMachine {
 public:
  explicit FakeMachine(const std::map<std::string, std::string>& files) {
    std::string name = (std::filesystem::temp_directory_path() / "attend-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
    for (const auto& [path, text] : files) {
      const std::filesystem::path file = root_ + path;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file, std::ios::binary) << text;
    }
  }
  ~FakeMachine() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  ThreadAdvice Advise(int affinity = kAffinity) const { return AdviseThreadsFrom(root_, affinity); }

 private:
  std::string root_;
};

bool Has(const ThreadAdvice& advice, const std::string& text) {
  return advice.reason.find(text) != std::string::npos;
}

TEST(ThreadAdvice, V2Quota) {
  const FakeMachine machine(
      {{"/proc/self/cgroup", "0::/box\n"}, {"/sys/fs/cgroup/box/cpu.max", "250000 100000\n"}});
  const ThreadAdvice advice = machine.Advise();
  EXPECT_EQ(advice.num_threads, 2);  // a third thread would be throttled
  EXPECT_TRUE(Has(advice, "cgroup v2 cpu.max allows 2.50 CPUs")) << advice.reason;
  EXPECT_TRUE(Has(advice, "affinity 16")) << advice.reason;
  // Where affinity allows less, it decides.
  EXPECT_EQ(machine.Advise(1).num_threads, 1);
  EXPECT_TRUE(Has(machine.Advise(1), "affinity allows 1 CPU")) << machine.Advise(1).reason;
}

TEST(ThreadAdvice, V2QuotaOfTheRootItself) {
  const FakeMachine machine(
      {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}});
  EXPECT_EQ(machine.Advise().num_threads, 4);
}

TEST(ThreadAdvice, V2QuotaBelowOneCpuIsOneThread) {
  const FakeMachine machine(
      {{"/proc/self/cgroup", "0::/box\n"}, {"/sys/fs/cgroup/box/cpu.max", "50000 100000\n"}});
  EXPECT_EQ(machine.Advise().num_threads, 1);
  EXPECT_TRUE(Has(machine.Advise(), "0.50")) << machine.Advise().reason;
}

TEST(ThreadAdvice, V2Max) {
  const FakeMachine machine(
      {{"/proc/self/cgroup", "0::/box\n"}, {"/sys/fs/cgroup/box/cpu.max", "max 100000\n"}});
  EXPECT_EQ(machine.Advise().num_threads, kAffinity);
  EXPECT_TRUE(Has(machine.Advise(), "affinity allows 16")) << machine.Advise().reason;
}

TEST(ThreadAdvice, V2AncestorIsSmaller) {
  const FakeMachine machine({{"/proc/self/cgroup", "0::/slice/pod/box\n"},
                             {"/sys/fs/cgroup/slice/cpu.max", "800000 100000\n"},
                             {"/sys/fs/cgroup/slice/pod/cpu.max", "300000 100000\n"},
                             {"/sys/fs/cgroup/slice/pod/box/cpu.max", "600000 100000\n"}});
  EXPECT_EQ(machine.Advise().num_threads, 3);
}

TEST(ThreadAdvice, V1Quota) {
  const FakeMachine machine({{"/proc/self/cgroup", "7:memory:/box\n4:cpu:/box\n0::/\n"},
                             {"/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000\n"},
                             {"/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "50000\n"}});
  EXPECT_EQ(machine.Advise().num_threads, 4);
  EXPECT_TRUE(Has(machine.Advise(), "cgroup v1 cpu.cfs_quota_us")) << machine.Advise().reason;
}

TEST(ThreadAdvice, V1WithoutAQuota) {
  const FakeMachine machine({{"/proc/self/cgroup", "4:cpu:/box\n"},
                             {"/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n"},
                             {"/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(machine.Advise().num_threads, kAffinity);
}

TEST(ThreadAdvice, V1MountOfCpuAndCpuacct) {
  // "cpuset" is another controller, and its path is not ours.
  const FakeMachine machine({{"/proc/self/cgroup", "9:cpuset:/other\n4:cpuacct,cpu:/box\n"},
                             {"/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "500000\n"},
                             {"/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n"},
                             {"/sys/fs/cgroup/cpu,cpuacct/other/cpu.cfs_quota_us", "100000\n"},
                             {"/sys/fs/cgroup/cpu,cpuacct/other/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(machine.Advise().num_threads, 5);
}

TEST(ThreadAdvice, NoCgroupAtAll) {
  const FakeMachine machine({});
  EXPECT_EQ(machine.Advise().num_threads, kAffinity);
  EXPECT_EQ(machine.Advise(0).num_threads, 1);
  EXPECT_EQ(machine.Advise(-5).num_threads, 1);
}

TEST(ThreadAdvice, GarbageIsNoQuota) {
  for (const char* groups : {"", "\n", ":", "::", "0:", "0::", "no colon at all", "0::/box",
                             "0::/../../..\n", "4:cpu\n", "\n\n0::/box\n"}) {
    for (const char* quota : {"", " ", "\n", "max", "max max\n", "x y\n", "100000\n", "0 0\n",
                              "100000 0\n", "0 100000\n", "-1 100000\n", "100000 -5\n",
                              "100000 100000x\n", "nan 100000\n", "100000 inf\n", "1e999 1\n"}) {
      const FakeMachine machine(
          {{"/proc/self/cgroup", groups}, {"/sys/fs/cgroup/box/cpu.max", quota}});
      const ThreadAdvice advice = machine.Advise();
      EXPECT_EQ(advice.num_threads, kAffinity) << groups << " / " << quota;
      EXPECT_FALSE(advice.reason.empty());
    }
  }
}

TEST(ThreadAdvice, AHugeQuotaIsNoLimit) {
  const FakeMachine machine(
      {{"/proc/self/cgroup", "0::/box\n"}, {"/sys/fs/cgroup/box/cpu.max", "1e300 1\n"}});
  EXPECT_EQ(machine.Advise().num_threads, kAffinity);
}

TEST(ThreadAdvice, ThisMachine) {
  const ThreadAdvice advice = AdviseThreads();
  EXPECT_GE(advice.num_threads, 1);
  EXPECT_FALSE(advice.reason.empty());
}

}  // namespace
}  // namespace attend
