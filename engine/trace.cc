#include "attend/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <new>
#include <numeric>
#include <set>
#include <utility>

#include "engine/check.h"
#include "engine/trace_buffer.h"

namespace attend {
namespace {

// Names are attend's own: printable ASCII. What JSON would take amiss is left out all the same.
void AppendName(const std::string& name, std::string* json) {
  for (const char c : name) {
    if (c >= ' ' && c != '"' && c != '\\') json->push_back(c);
  }
}

// A time in microseconds.
void AppendTime(const char* key, int64_t ns, std::string* json) {
  char text[64];
  std::snprintf(text, sizeof text, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000,
                static_cast<int>(ns % 1000));
  *json += text;
}

// One event, or, of what lies across threads, the two of its begin and its end.
void AppendSpan(const TraceSpan& span, const TraceBuffer& buffer, int process, std::string* json) {
  const std::string& name = buffer.names[static_cast<size_t>(span.name)];
  const auto append = [&](const char* phase, int64_t at_ns) {
    *json += "{\"name\":\"";
    AppendName(name, json);
    *json += "\",\"cat\":\"";
    AppendName(name.substr(0, name.find_first_of(" ,:")), json);
    *json += std::string("\",\"ph\":\"") + phase + "\",\"pid\":" + std::to_string(process) +
             ",\"tid\":" + std::to_string(span.thread);
    AppendTime("ts", at_ns - buffer.start_ns, json);
  };
  if (span.id != 0) {
    const std::string id = ",\"id\":" + std::to_string(span.id) + "}";
    append("b", span.begin_ns);
    *json += id + ",\n";
    append("e", span.end_ns);
    *json += id;
    return;
  }
  append("X", span.begin_ns);
  AppendTime("dur", span.end_ns - span.begin_ns, json);
  if (span.tokens > 0) {
    *json += ",\"args\":{\"tokens\":" + std::to_string(span.tokens) +
             ",\"sequences\":" + std::to_string(span.sequences) + "}";
  }
  *json += "}";
}

// A span before those that lie in it, as viewers want it: by its begin, then the longer first.
std::vector<int64_t> InOrder(const TraceBuffer& buffer, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const TraceSpan& x = buffer.spans[static_cast<size_t>(a)];
    const TraceSpan& y = buffer.spans[static_cast<size_t>(b)];
    return x.begin_ns != y.begin_ns ? x.begin_ns < y.begin_ns : x.end_ns > y.end_ns;
  });
  return order;
}

}  // namespace

int32_t ThreadNumber() { return static_cast<int32_t>(syscall(SYS_gettid)); }

int32_t TraceBuffer::Name(std::string_view name) {
  const std::lock_guard lock(mutex);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<int32_t>(found - names.begin());
  names.emplace_back(name);
  return static_cast<int32_t>(names.size() - 1);
}

TraceScope TraceOf(Trace* trace, std::string_view name) {
  TraceBuffer* const buffer = trace == nullptr ? nullptr : trace->buffer();
  return TraceScope(buffer, buffer == nullptr ? 0 : buffer->Name(name));
}

Result<Trace> Trace::Create(int64_t max_events) {
  constexpr int64_t kMost = 100'000'000;
  if (max_events < 1 || max_events > kMost) {
    return Status(ErrorCode::kInvalidArgument,
                  "max_events is " + std::to_string(max_events) + "; expected 1 to 100000000",
                  "Trace::Create");
  }
  try {
    auto buffer = std::make_unique<TraceBuffer>();
    buffer->spans.resize(static_cast<size_t>(max_events));
    return Trace(std::move(buffer));
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "no memory for " + std::to_string(max_events) + " events",
                  "Trace::Create");
  }
}

Trace::Trace(std::unique_ptr<TraceBuffer> buffer) : buffer_(std::move(buffer)) {}
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

int64_t Trace::num_events() const {
  return std::min(buffer_->next.load(), static_cast<int64_t>(buffer_->spans.size()));
}

int64_t Trace::num_dropped() const { return buffer_->next.load() - num_events(); }

std::string Trace::ToJson() const {
  const int process = static_cast<int>(getpid());
  const std::lock_guard lock(buffer_->mutex);
  std::string json = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  std::set<int32_t> threads;
  for (const int64_t i : InOrder(*buffer_, num_events())) {
    const TraceSpan& span = buffer_->spans[static_cast<size_t>(i)];
    threads.insert(span.thread);
    if (json.back() == '}') json += ",\n";
    AppendSpan(span, *buffer_, process, &json);
  }
  json += "\n],\"otherData\":{\"version\":\"" ATTEND_VERSION "\",\"dropped\":\"" +
          std::to_string(num_dropped()) + "\",\"threads\":\"" + std::to_string(threads.size()) +
          "\"}}\n";
  return json;
}

void Trace::Clear() { buffer_->next.store(0); }

}  // namespace attend
