// The machine as the system tells it.
#ifndef ATTEND_BENCH_HARNESS_MACHINE_H_
#define ATTEND_BENCH_HARNESS_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace attend::bench {

struct Cache {
  std::string name;  // "L1d"
  std::string size;  // "32K"
  int64_t bytes = 0;
};

// "AMD EPYC", or "unknown".
std::string CpuName();
// With what tells CPUs of one name apart: "AMD EPYC (family 25, model 1)".
std::string CpuNameWithModel();

// The caches of the first CPU. Empty where the system does not tell.
std::vector<Cache> Caches();

// The bytes of the data cache of `level` (1, 2, 3), or `otherwise`.
int64_t CacheBytes(const std::vector<Cache>& caches, int level, int64_t otherwise);

// Resident memory of this process, in bytes; 0 where the system does not tell.
int64_t ResidentBytes();

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_MACHINE_H_
