// Many callers, one model: requests from any thread are put into batches, which a pool of Sessions
// runs. A request waits only while every worker is busy, and its answer has the bits of a lone run.
//
//   auto batcher = attend::Batcher::Create(*model, {.num_workers = 2});
//   auto pending = batcher->Submit({.text = "I saw a saw", .deadline_us = 20'000});
//   if (!pending.ok()) return Report(pending.status());  // kBusy: the queue is full
//   attend::Result<attend::BatchAnswer> answer = pending->Wait();
//   // answer->logits: [L, C] f32
//
// Letters: L tokens of the sequence (L' of the decoder's), D model width, C classes. Times are
// microseconds (us).
#ifndef ATTEND_BATCHER_H_
#define ATTEND_BATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"
#include "attend/text.h"

namespace attend {

struct BatcherOptions {
  // Of each worker's Session. max_tokens is the budget of a batch: a batch takes the next request
  // while all its tokens together are no more, and no request may be longer. So are max_sequences
  // and max_edges. Larger batches are a little cheaper and answer later.
  SessionOptions session = {.max_tokens = 512, .max_sequences = 64};
  // How many batches run at the same time, each in a Session of its own. 0: as many as fit into
  // AdviseThreads() with session.num_threads each, at least 1.
  int32_t num_workers = 0;
  // Whether the Batcher starts a thread for each worker. If not, and always with session.executor,
  // threads of the program's must call Serve or ServeWaiting.
  bool start_threads = true;
  // What may wait; a request over it is refused. max_bytes counts running ones too.
  int32_t max_queued_requests = 1024;
  int64_t max_queued_tokens = 65536;     // at least session.max_tokens
  int64_t max_bytes = int64_t{1} << 26;  // inputs, and about 1 KB for each request
  // How long a worker that is idle waits for more requests to fill a batch with. 0: not at all.
  int64_t linger_us = 0;
  bool truncate = false;   // cut texts that are too long instead of giving an error
  int32_t max_length = 0;  // tokens of a text; 0: what the model and session.max_tokens take
};

struct BatchAnswer {
  std::vector<float> hidden;          // [L, D]; of an encoder-decoder [L', D]
  std::vector<float> pooled;          // [D'] or empty, as Output::pooled
  std::vector<float> logits;          // [L, C] or [C] or empty; of models that generate [L', V]
  std::vector<float> encoder_hidden;  // [L, D] of an encoder-decoder
  Encoding encoding;                  // of a text: what the model read, without `tokens`
  int64_t queued_us = 0;              // from Submit until its batch started
  int64_t run_us = 0;                 // what the batch took
  int32_t batch_tokens = 0;           // L of all in the batch
  int32_t batch_sequences = 0;
  // If session.telemetry is on: of the whole batch, but for encode_ns and queue_ns.
  std::optional<Telemetry> telemetry;
};

// One sequence. The views need to live only until Submit returns.
struct BatchRequest {
  // What goes in, exactly one of these:
  std::optional<std::string_view> text = {};  // UTF-8; a model with a tokenizer
  std::span<const int32_t> ids = {};          // [L]
  std::span<const float> rows = {};           // [L, input_size]
  // What may come with it:
  std::optional<std::string_view> pair = {};        // the second text
  std::span<const int32_t> type_ids = {};           // [L], with ids
  std::span<const int32_t> decoder_ids = {};        // [L'], encoder-decoder
  std::optional<std::span<const Edge>> edges = {};  // of models that take a graph

  // From Submit on; 0: none. Over before the request starts, it never does. Over while it runs, the
  // answer is kDeadline too. Less than 0 is over already.
  int64_t deadline_us = 0;
  int32_t priority = 0;  // the highest first; equal ones in the order of their Submit
  // How long Submit may wait for room in a full queue. 0: it refuses at once.
  int64_t block_us = 0;
  // What is copied into the answer. Hidden states always are where the model gives nothing else.
  bool want_hidden = false;
  bool want_pooled = true;
  bool want_logits = true;
  bool want_encoder_hidden = false;

  // Is given the answer, exactly once, if Submit returned no error. Called without a lock by the
  // thread that brings the answer: a worker's, or one that calls Cancel, CancelAll or the
  // destructor; perhaps before Submit has returned. It keeps a worker from its next batch while it
  // runs. It may call anything but Drain, Serve, the destructor and the Wait of its own
  // PendingAnswer. No exception may leave it.
  std::function<void(Result<BatchAnswer>)> done = {};
};

struct BatcherRequest;  // the insides
struct BatcherCore;

// A request on its way. Letting go of it does not cancel the request. May outlive the Batcher. Any
// of its functions may be called from any thread.
class ATTEND_EXPORT PendingAnswer {
 public:
  PendingAnswer(PendingAnswer&&) noexcept;
  PendingAnswer& operator=(PendingAnswer&&) noexcept;
  ~PendingAnswer();

  bool done() const;

  // Waits at most `timeout_us` (less than 0: without end) for the answer, or the deadline; whether
  // it is there.
  bool WaitFor(int64_t timeout_us) const;

  // Waits for the answer, no longer than until the deadline, and takes it.
  // Errors: kDeadline, kCancelled (by Cancel, CancelAll or the end of the Batcher); kCapacity (no
  // memory for the answer); kInvalidArgument (it was taken before, or went to BatchRequest::done);
  // kUnsupported (in a child after fork).
  Result<BatchAnswer> Wait();

  // The request is answered with kCancelled at once, unless it is answered already. It never
  // starts; a batch that is running stops within a layer if nobody waits for any part of it.
  void Cancel();

 private:
  friend class Batcher;
  explicit PendingAnswer(std::shared_ptr<BatcherRequest> request);
  bool Here() const;  // neither moved from nor in a child after fork
  std::shared_ptr<BatcherRequest> request_;
};

// What a Batcher has done since it was made, and what it holds now.
struct BatcherStatistics {
  int64_t queued_requests = 0;
  int64_t queued_tokens = 0;
  int64_t bytes = 0;  // of requests that wait or run
  int64_t running_requests = 0;
  int32_t idle_workers = 0;
  // Every Submit is counted by one of these, once it is decided.
  int64_t answered = 0;   // with outputs
  int64_t refused = 0;    // kBusy
  int64_t expired = 0;    // kDeadline
  int64_t cancelled = 0;  // kCancelled, those after Close included
  int64_t failed = 0;     // any other error
  int64_t batches = 0;    // started
  int64_t batch_tokens = 0;
  int64_t batch_sequences = 0;
  double batch_fill = 0;  // batch_tokens / (batches * session.max_tokens)
  // Of the last 4096 requests that started: from Submit to the start.
  int64_t queued_p50_us = 0;
  int64_t queued_p99_us = 0;
};

// All functions but the destructor and moving may be called from any number of threads at once.
class ATTEND_EXPORT Batcher {
 public:
  // Makes the Sessions and starts the threads.
  // Errors: as Session::Create; kInvalidArgument (an option out of its range); kCapacity (the
  // system gives no thread).
  static Result<Batcher> Create(const Model& model, const BatcherOptions& options = {});

  // One that was moved from answers with kInvalidArgument.
  Batcher(Batcher&&) noexcept;
  Batcher& operator=(Batcher&&) noexcept;
  // Cancels all that is not answered, and waits for the workers, at most one layer of a batch.
  // Nobody else may be inside a function of it then, but for Serve and PendingAnswer's.
  ~Batcher();

  // Checks the request, encodes its text on the calling thread, copies it and puts it in the queue.
  // Errors: kBusy (no room, in time or at all: returns at once unless block_us says otherwise);
  // kDeadline (over already); kCancelled (after Close); kInvalidArgument, kCapacity, kUnsupported
  // (as of Session::Run for this sequence alone, of Tokenizer::Encode, and for what the model does
  // not take); kUnsupported (in a child after fork: make a new Batcher there).
  Result<PendingAnswer> Submit(BatchRequest request);

  // Accepts no more requests. What waits still runs. Returns at once.
  void Close();
  // Close, then waits until all is answered, at most `limit_us` (less than 0: without end); whether
  // it is. Of a Batcher without threads of its own somebody must serve meanwhile.
  bool Drain(int64_t limit_us = -1);
  // Answers all that waits or runs with kCancelled. Does not close.
  void CancelAll();

  // For a Batcher without threads of its own. Serve is a worker until all is answered after Close;
  // at most num_workers may be inside. ServeWaiting is a worker until nothing waits, never lingers,
  // and says how many requests it answered.
  // Errors: kBusy (num_workers are inside); kInvalidArgument (the Batcher has its own threads).
  Status Serve();
  Result<int64_t> ServeWaiting();

  BatcherStatistics statistics() const;
  int num_workers() const;
  // The most that it holds besides the Model's weights and answers: its Sessions', with what they
  // are given, and options.max_bytes.
  size_t memory_bytes() const;
  const Model& model() const;

 private:
  explicit Batcher(std::shared_ptr<BatcherCore> core);
  void Release();
  Result<int64_t> ServeAs(bool stays);
  std::shared_ptr<BatcherCore> core_;
};

}  // namespace attend

#endif  // ATTEND_BATCHER_H_
