#include "bench/harness/machine.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace attend::bench {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// What the first CPU's block of /proc/cpuinfo says behind `key`.
std::string CpuField(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    if (!line.starts_with(key)) continue;
    const size_t end = line.find_first_of("\t:", key.size());
    const size_t colon = line.find(": ");
    if (end == key.size() && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

// "32K", "1M".
int64_t BytesOf(const std::string& size) {
  const int64_t number = std::atoll(size.c_str());
  switch (size.empty() ? ' ' : size.back()) {
    case 'K':
      return number << 10;
    case 'M':
      return number << 20;
    default:
      return number;
  }
}

}  // namespace

std::string CpuName() {
  const std::string name = CpuField("model name");
  return name.empty() ? "unknown" : name;
}

std::string CpuNameWithModel() {
  const std::string family = CpuField("cpu family"), model = CpuField("model");
  if (family.empty() || model.empty()) return CpuName();
  return CpuName() + " (family " + family + ", model " + model + ")";
}

std::vector<Cache> Caches() {
  std::vector<Cache> caches;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = FirstLine(folder + "level");
    if (level.empty()) break;
    const std::string type = FirstLine(folder + "type");
    const std::string suffix = type == "Data" ? "d" : type == "Instruction" ? "i" : "";
    const std::string size = FirstLine(folder + "size");
    caches.push_back({"L" + level + suffix, size, BytesOf(size)});
  }
  return caches;
}

int64_t CacheBytes(const std::vector<Cache>& caches, int level, int64_t otherwise) {
  const std::string name = "L" + std::to_string(level);
  for (const Cache& cache : caches) {
    if (cache.bytes > 0 && (cache.name == name || cache.name == name + "d")) return cache.bytes;
  }
  return otherwise;
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace attend::bench
