// A whole bench run: the sections that were asked for, in one document.
#ifndef ATTEND_BENCH_HARNESS_DOCUMENT_H_
#define ATTEND_BENCH_HARNESS_DOCUMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"
#include "bench/harness/json.h"
#include "bench/harness/sections.h"

namespace attend::bench {

// In the order in which they are run. "isas" and "load" take long, and are only run by name.
inline const std::vector<std::string>& SectionNames() {
  static const std::vector<std::string> names = {"loading", "rates", "latency", "throughput",
                                                 "texts",   "steps", "memory",  "threads",
                                                 "load",    "isas"};
  return names;
}

struct RunSettings {
  std::string command;  // as it was typed, to be repeated
  std::string model_path;
  SessionOptions options;  // max_tokens is raised to what the sections need
  std::vector<std::string> sections;
  std::string text;                      // a file, or empty
  std::vector<std::string> worker = {};  // the command line of a worker, for "isas"
  bool quick = false;
  uint64_t seed = 1;  // of arrivals
};

// {"attend", "command", "date", "machine", "model", "settings", and a key for each section}.
// Errors: as of loading and running the model; kCancelled.
Result<Json> RunSections(const RunSettings& settings, const Context& context);

// The tokens that a Session must take for the grids and `texts` (null: none).
int32_t TokensNeeded(const Effort& effort, const ModelInfo& info, const Texts* texts);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_DOCUMENT_H_
