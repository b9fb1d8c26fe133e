// A Logger that keeps what it is told.
#ifndef ATTEND_TESTS_LOG_TESTING_H_
#define ATTEND_TESTS_LOG_TESTING_H_

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "attend/log.h"

namespace attend::testing {

struct KeptEntry {
  LogLevel level;
  LogCode code;
  std::string message;
};

class KeepingLogger final : public Logger {
 public:
  explicit KeepingLogger(LogLevel least = LogLevel::kInfo) : least_(least) {}
  void Log(const LogEntry& entry) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.push_back({entry.level, entry.code, std::string(entry.message)});
    ends_in_nul_ &= entry.message.data()[entry.message.size()] == '\0';
  }
  LogLevel least() const override { return least_; }

  // What has come since the last call.
  std::vector<KeptEntry> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(kept_, {});
  }
  bool ends_in_nul() const { return ends_in_nul_; }

 private:
  LogLevel least_;
  std::mutex mutex_;
  std::vector<KeptEntry> kept_;
  bool ends_in_nul_ = true;
};

inline std::vector<LogCode> CodesOf(const std::vector<KeptEntry>& entries) {
  std::vector<LogCode> codes;
  for (const KeptEntry& entry : entries) codes.push_back(entry.code);
  return codes;
}

// The first entry of a code, or one that says that there is none.
inline KeptEntry EntryOf(const std::vector<KeptEntry>& entries, LogCode code) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [code](const KeptEntry& entry) { return entry.code == code; });
  return found != entries.end() ? *found : KeptEntry{LogLevel::kDebug, code, "(no such entry)"};
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_LOG_TESTING_H_
