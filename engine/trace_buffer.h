// What a Trace holds: spans, and the names that they are called by.
#ifndef ATTEND_ENGINE_TRACE_BUFFER_H_
#define ATTEND_ENGINE_TRACE_BUFFER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/step_times.h"

namespace attend {

class Trace;

// A clock that all threads share, in nanoseconds.
inline int64_t TraceNow() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The system's number of the calling thread.
int32_t ThreadNumber();

struct TraceSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int32_t name = 0;
  int32_t thread = 0;
  int32_t tokens = 0;  // 0: not said
  int32_t sequences = 0;
  int64_t id = 0;  // of what lies across threads and other spans (a request in a queue), else 0
};

struct TraceBuffer {
  std::vector<TraceSpan> spans;
  std::atomic<int64_t> next{0};  // beyond spans.size(): what was dropped
  std::atomic<int64_t> last_id{0};
  std::vector<std::string> names;
  mutable std::mutex mutex;  // of names
  int64_t start_ns = TraceNow();

  // The number of a name, the same for the same name. Allocates.
  int32_t Name(std::string_view name);

  // Different for every call, never 0.
  int64_t NewId() { return last_id.fetch_add(1, std::memory_order_relaxed) + 1; }

  // From any thread; allocates nothing.
  void Add(const TraceSpan& span) {
    const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index < static_cast<int64_t>(spans.size())) spans[static_cast<size_t>(index)] = span;
  }
};

// The names of a plan's steps and segments in a buffer; what a walk notes goes there.
struct PlanTrace {
  TraceBuffer* buffer = nullptr;
  std::vector<int32_t> steps;
  std::vector<int32_t> segments;
  int32_t wait = 0;
};

// What a walk tells of its way (see step_times.h): this one makes a span of each segment, step and
// wait, and adds the times up as well if `times` are given.
class TraceClock {
 public:
  TraceClock(const PlanTrace* trace, StepTimes::Thread* times)
      : trace_(trace), times_(times), thread_(ThreadNumber()), last_(TraceNow()) {}
  void Begins() { began_ = last_; }
  // Of a thread that had nothing to do there is none.
  void Ends(size_t segment) {
    if (last_ > began_) Add(trace_->segments[segment], began_);
  }
  void Waited() {
    const int64_t ns = Span(trace_->wait);
    if (times_ != nullptr) times_->wait_ns += ns;
  }
  void Ran(int step) {
    const auto index = static_cast<size_t>(step);
    const int64_t ns = Span(trace_->steps[index]);
    if (times_ == nullptr) return;
    times_->ns[index] += ns;
    ++times_->tiles[index];
  }

 private:
  void Add(int32_t name, int64_t begin) {
    trace_->buffer->Add({.begin_ns = begin, .end_ns = last_, .name = name, .thread = thread_});
  }
  // From the last call until now; how long that was.
  int64_t Span(int32_t name) {
    const int64_t before = last_;
    last_ = TraceNow();
    Add(name, before);
    return last_ - before;
  }

  const PlanTrace* trace_;
  StepTimes::Thread* times_;
  int32_t thread_;
  int64_t last_;
  int64_t began_ = 0;
};

// A span from here to the end of the block; none without a buffer.
class TraceScope {
 public:
  TraceScope(TraceBuffer* buffer, int32_t name, int64_t tokens = 0, int64_t sequences = 0)
      : buffer_(buffer),
        span_{.begin_ns = buffer == nullptr ? 0 : TraceNow(),
              .name = name,
              .tokens = static_cast<int32_t>(tokens),
              .sequences = static_cast<int32_t>(sequences)} {}
  ~TraceScope() {
    if (buffer_ == nullptr) return;
    span_.end_ns = TraceNow();
    span_.thread = ThreadNumber();
    buffer_->Add(span_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceBuffer* buffer_;
  TraceSpan span_;
};

// A span called `name` in `trace`, if there is one.
TraceScope TraceOf(Trace* trace, std::string_view name);

}  // namespace attend

#endif  // ATTEND_ENGINE_TRACE_BUFFER_H_
