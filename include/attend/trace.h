// Where the time goes, event by event, as a file that ui.perfetto.dev and chrome://tracing open.
//
//   auto trace = attend::Trace::Create();
//   auto tagger = attend::Tagger::Load("pos-en.attend", {.session = {.trace = &*trace}});
//   ... tag ...
//   WriteFile("trace.json", trace->ToJson());
#ifndef ATTEND_TRACE_H_
#define ATTEND_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "attend/status.h"

namespace attend {

struct TraceBuffer;  // the insides

// What Sessions note of their runs when it is in their options: a span for each run (of a
// Generator: for each beginning of texts and each step); on each thread for each layer, in it for
// each step of a tile (embedding, qkv, attention, linear, pool, ...), and for each wait for other
// threads; for each text that a pipeline or Batcher encodes ("tokenize"); and for each request of a
// Batcher, from Submit to its batch ("queue"). Any number of Sessions and threads may note into one
// Trace at the same time. Without one in its options a Session runs code that has nothing of this
// in it.
class ATTEND_EXPORT Trace {
 public:
  // Takes room for `max_events` spans, 32 bytes each; further ones are dropped and counted.
  // Errors: kInvalidArgument (max_events outside 1 .. 100,000,000); kCapacity (no memory).
  static Result<Trace> Create(int64_t max_events = 1'000'000);

  // Must not be moved from, or end, while a Session has it in its options.
  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) noexcept;
  ~Trace();

  int64_t num_events() const;
  int64_t num_dropped() const;

  // All spans in the trace event format (JSON). Threads: while no run notes into it.
  std::string ToJson() const;

  // Forgets all spans. Threads: as ToJson.
  void Clear();

  TraceBuffer* buffer() const { return buffer_.get(); }  // for the engine

 private:
  explicit Trace(std::unique_ptr<TraceBuffer> buffer);
  std::unique_ptr<TraceBuffer> buffer_;
};

}  // namespace attend

#endif  // ATTEND_TRACE_H_
