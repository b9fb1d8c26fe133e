// A process of its own that times on demand: there is one instruction set a process, and builds
// that are compared are two programs. The protocol is a line in, a line of JSON out.
#ifndef ATTEND_BENCH_HARNESS_WORKER_H_
#define ATTEND_BENCH_HARNESS_WORKER_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/status.h"
#include "bench/harness/json.h"
#include "bench/harness/subject.h"

namespace attend::bench {

// The other end: answers the lines of standard input until it ends.
//   time SEQUENCES LENGTH LEAST SECONDS   -> [seconds of each run]
//   texts                                 -> seconds of all texts in batches
//   outputs                               -> {"hidden": [...], ...} of a batch that is always the
//                                            same
// What cannot be answered gets {"error": "..."}. First of all it says what it is.
void Serve(Subject& subject, const Texts* texts, int64_t text_batch);
// In place of it, when there is nothing to time.
void ServeError(const Status& status);

class Worker {
 public:
  // Starts argv[0] and waits until it is ready.
  // Errors: kIo (it cannot be started, or says nothing); kUnsupported with what it says instead.
  static Result<std::unique_ptr<Worker>> Start(const std::vector<std::string>& argv);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Errors: kIo (it has ended), kInternal (what it says).
  Result<Json> Ask(const std::string& line);

  // Seconds of `least` runs or more.
  Result<std::vector<double>> Time(int64_t sequences, int64_t length, int least, double seconds);

  // {"isa", "precision", "threads", "max_length", ...}
  const Json& facts() const { return facts_; }

 private:
  Worker() = default;
  Result<Json> Read();

  std::string name_;
  pid_t pid_ = -1;
  int socket_ = -1;
  std::string buffer_;
  Json facts_;
};

// The path of this program.
std::string OwnPath();

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_WORKER_H_
