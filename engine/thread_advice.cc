// How many threads this process should use: affinity and the cgroup's CPU quota, v1 and v2.
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "attend/attend.h"
#include "engine/parallel.h"

namespace attend {
namespace {

std::optional<std::string> ReadSmallFile(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return std::nullopt;
  char buffer[4096];
  const size_t size = std::fread(buffer, 1, sizeof(buffer), file);
  std::fclose(file);
  return std::string(buffer, size);
}

std::optional<double> ParseNumber(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

// CPUs that cgroup v2's cpu.max of one folder allows ("max 100000" or "200000 100000").
std::optional<double> QuotaV2(const std::string& folder) {
  const std::optional<std::string> text = ReadSmallFile(folder + "/cpu.max");
  if (!text) return std::nullopt;
  const size_t blank = text->find(' ');
  if (blank == std::string::npos) return std::nullopt;
  const std::optional<double> quota = ParseNumber(std::string_view(*text).substr(0, blank));
  const std::optional<double> period = ParseNumber(std::string_view(*text).substr(blank + 1));
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::optional<double> QuotaV1(const std::string& folder) {
  const auto quota_text = ReadSmallFile(folder + "/cpu.cfs_quota_us");
  const auto period_text = ReadSmallFile(folder + "/cpu.cfs_period_us");
  if (!quota_text || !period_text) return std::nullopt;
  const auto quota = ParseNumber(*quota_text), period = ParseNumber(*period_text);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// The line of /proc/self/cgroup for the controller: "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1).
std::optional<std::string> CgroupPath(std::string_view text, bool v2) {
  while (!text.empty()) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    bool match = v2 && controllers.empty();
    if (!v2) {
      for (size_t at = 0; at <= controllers.size();) {
        const size_t comma = std::min(controllers.find(',', at), controllers.size());
        match |= controllers.substr(at, comma - at) == "cpu";
        at = comma + 1;
      }
    }
    if (match) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// The least quota of a cgroup and its ancestors.
std::optional<double> LeastQuota(const std::string& mount, std::string path,
                                 std::optional<double> (*quota_of)(const std::string&)) {
  std::optional<double> least;
  while (true) {
    const std::optional<double> quota = quota_of(mount + path);
    if (quota && (!least || *quota < *least)) least = quota;
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) break;
    path.resize(slash);
  }
  return least;
}

}  // namespace

ThreadAdvice AdviseThreadsFrom(const std::string& root, int affinity_cpus) {
  ThreadAdvice advice;
  advice.num_threads = std::max(1, affinity_cpus);
  advice.reason = "affinity allows " + std::to_string(advice.num_threads) + " CPUs";
  const std::optional<std::string> groups = ReadSmallFile(root + "/proc/self/cgroup");
  if (!groups) return advice;
  std::optional<double> quota;
  const char* rule = "cgroup v2 cpu.max";
  if (const auto path = CgroupPath(*groups, true)) {
    quota = LeastQuota(root + "/sys/fs/cgroup", *path == "/" ? "" : *path, &QuotaV2);
  }
  if (!quota) {
    if (const auto path = CgroupPath(*groups, false)) {
      const std::string relative = *path == "/" ? "" : *path;
      for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
        quota = LeastQuota(root + mount, relative, &QuotaV1);
        if (quota) break;
      }
      rule = "cgroup v1 cpu.cfs_quota_us";
    }
  }
  if (!quota) return advice;
  // Held to the affinity first: a double may be more than any int.
  const double floor = std::min(std::floor(*quota), static_cast<double>(advice.num_threads));
  const int allowed = std::max(1, static_cast<int>(floor));
  if (allowed < advice.num_threads) {
    advice.num_threads = allowed;
    char number[32];
    std::snprintf(number, sizeof(number), "%d.%02d", static_cast<int>(*quota),
                  static_cast<int>(*quota * 100) % 100);
    advice.reason = std::string(rule) + " allows " + number + " CPUs (affinity " +
                    std::to_string(affinity_cpus) + ")";
  } else {
    advice.reason += ", " + std::string(rule) + " no fewer";
  }
  return advice;
}

ThreadAdvice AdviseThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return AdviseThreadsFrom("", cpus);
}

}  // namespace attend
