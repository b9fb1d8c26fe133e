// What goes well, or nearly, and no Status tells: which file was loaded and how, in what a Session
// computes and on how many threads, whom a Batcher refused. An object is silent unless its options
// have a Logger. There is none for the whole process.
//
//   struct MyLogger final : attend::Logger {
//     void Log(const attend::LogEntry& entry) override { my_log.Write(entry.message); }
//   } logger;
//   auto model = attend::Model::Load("encoder.attend", {.logger = &logger});
//   auto session = attend::Session::Create(*model, {.logger = &logger});
#ifndef ATTEND_LOG_H_
#define ATTEND_LOG_H_

#include <cstdint>
#include <string_view>

#include "attend/status.h"

namespace attend {

// How much an entry matters, in ascending order. Errors are none of these: they are a Status.
enum class LogLevel : int32_t {
  kDebug = -1,   // each of what may happen often
  kInfo = 0,     // what was made, and what was chosen for it
  kWarning = 1,  // it goes on, but not as it was asked for or as well as it could
};

// What an entry is about. The numbers never change.
enum class LogCode : int32_t {
  kModelLoaded = 1,          // info: path, bytes, mapped or read, what the model or tokenizer is
  kNotMapped = 2,            // warning: the file could not be mapped and was read, and why
  kInstructionSet = 3,       // info: the one of this process
  kOtherInstructionSet = 4,  // warning: the program had fixed another one for oneDNN before
  kPrecision = 5,            // info: of the linear layers, as against what was asked for
  kThreads = 6,              // info: how many, whose, and which rule gave the number
  kManyThreads = 7,          // warning: more threads than affinity and quota allow CPUs
  kFewThreads = 8,  // warning: a run gets fewer threads than its Session has. Told when the number
                    // changes
  kMemory = 9,      // info: a Session's bytes and limits, and how it shares rows
  kBatcher = 10,    // info: workers, queue, bytes
  kRefused = 11,    // warning: how many requests found no room since the last such entry, at
                    // once and then every second at most; debug: each
  kExpired = 12     // the same of those that were too late
};

struct LogEntry {
  LogLevel level;
  LogCode code;
  std::string_view message;  // one sentence, with a NUL behind it; valid during the call
};

// Who is told. One that several objects have in their options is called by any of their threads,
// several at once; so is one of a Batcher.
class ATTEND_EXPORT Logger {
 public:
  virtual ~Logger() = default;
  // Called on the thread on which it happened, without a lock of attend's. It may use other
  // objects, not the one that is being made or run. No exception may leave it.
  virtual void Log(const LogEntry& entry) = 0;
  // Entries below this level are not made.
  virtual LogLevel least() const { return LogLevel::kInfo; }
};

}  // namespace attend

#endif  // ATTEND_LOG_H_
