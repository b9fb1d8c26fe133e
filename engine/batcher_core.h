// The inside of a Batcher: requests, the lock around the queue, and the workers.
#ifndef ATTEND_ENGINE_BATCHER_CORE_H_
#define ATTEND_ENGINE_BATCHER_CORE_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "attend/batcher.h"
#include "engine/batch_queue.h"
#include "engine/parallel.h"
#include "engine/session.h"

namespace attend {

// A request and its answer. Whoever makes it leave the queue delivers the answer.
struct BatcherRequest final : BatchQueue::Ticket {
  std::shared_ptr<BatcherCore> core;
  Encoding encoding;  // ids and type_ids, of a text all of it
  bool is_text = false;
  int64_t encode_ns = 0;  // what the text took, if session.telemetry is on
  std::vector<int32_t> decoder_ids;
  std::vector<float> rows;
  std::vector<Edge> edges;
  bool want_hidden = false, want_pooled = false, want_logits = false, want_encoder_hidden = false;
  std::function<void(Result<BatchAnswer>)> done;

  std::mutex mutex;
  std::condition_variable changed;
  bool answered = false, taken = false;
  Result<BatchAnswer> answer{Status()};

  // How many rows of the encoder's, or only, plan it is.
  int64_t length(int64_t input_size) const {
    return static_cast<int64_t>(input_size > 0 ? rows.size() / static_cast<size_t>(input_size)
                                               : encoding.ids.size());
  }
  // Without the core's lock, once.
  void Deliver(Result<BatchAnswer> result);
};

// Something that happens often under overload, and is told at once and then once a second.
class RateLimit {
 public:
  // It happened `count` times now. Returns how many times it did since it was told last, if it is
  // to be told again, else 0.
  int64_t Count(int64_t count, int64_t now_us) {
    untold_ += count;
    if (untold_ == 0 || now_us < next_us_) return 0;
    next_us_ = now_us + 1'000'000;
    return std::exchange(untold_, 0);
  }

 private:
  int64_t untold_ = 0, next_us_ = 0;
};

// What the logger is to be told once the lock is let go.
struct Untold {
  int64_t refused = 0, expired = 0;          // to be told now, as RateLimit says
  int64_t refused_now = 0, expired_now = 0;  // those that the caller has just brought
};

// A Session with what its batches are put together in.
struct BatcherWorker {
  BatcherWorker(int number, Session made) : index(number), session(std::move(made)) {}

  // Runs taken.batch. Errors: as RunUntil.
  Result<Output> Run();
  // Gives each of finished.answered its part of `output`, or the error.
  void Deliver(const Result<Output>& output);
  // The Session's, and the most that the arrays below hold.
  size_t memory_bytes();

  int index;
  bool busy = false;  // a thread is this worker
  Session session;
  BatchQueue::Taken taken;
  BatchQueue::Finished finished;
  std::atomic<int64_t> stop_at{0};  // of the batch that runs
  int64_t run_us = 0;
  Untold untold;  // of the batch that it took

 private:
  void NoteQueue();  // how long each request of the batch has waited
  void Gather();
  BatchAnswer Cut(const Output& output, const BatcherRequest& request, size_t sequence);

  std::vector<int32_t> ids_, offsets_, type_ids_, decoder_ids_, decoder_offsets_, edge_offsets_;
  std::vector<float> rows_;
  std::vector<Edge> edges_;
};

struct BatcherCore {
  BatcherCore(Model served, const BatcherOptions& asked, const BatchQueue::Limits& limits);

  // Whether this is the process that made the Batcher. In a child after fork the lock may be held
  // by a thread that is gone: nothing else of this may be touched there.
  bool InItsProcess() const;

  // `self` is this.
  Result<std::shared_ptr<BatcherRequest>> Submit(const std::shared_ptr<BatcherCore>& self,
                                                 BatchRequest* request);
  // Makes the request leave the queue with the error: at once, or if its deadline is over.
  void Leave(BatcherRequest* request, ErrorCode code);
  void Close();
  bool Drain(int64_t limit_us);
  void CancelAll();
  BatcherStatistics Statistics();

  // The life of a worker: until all is answered after Close, or nothing waits. Returns how many
  // requests it answered.
  int64_t Serve(BatcherWorker* worker, bool stays);
  // Before anything runs.
  void AddWorker(Session session);
  // A worker that nobody is; null: there is none.
  BatcherWorker* TakeWorker();
  void ReturnWorker(BatcherWorker* worker);
  // Close, CancelAll, and waits until nobody serves. Lets go of the workers.
  void End();

  const pid_t process;
  const Model model;
  const BatcherOptions options;
  std::optional<Tokenizer> tokenizer;
  int32_t max_length = 0;  // of a text
  std::vector<std::unique_ptr<BatcherWorker>> workers;
  size_t memory_bytes;
  ThreadCrew crew;

 private:
  // Fills `made` from the caller's request, or says what is wrong with it.
  Status Fill(const BatchRequest& request, BatcherRequest* made) const;
  Status FillText(const BatchRequest& request, BatcherRequest* made) const;
  Status Check(const BatchRequest& request, const BatcherRequest& made) const;
  // Submit, but for the logger.
  Result<std::shared_ptr<BatcherRequest>> Admit(const std::shared_ptr<BatcherCore>& self,
                                                BatchRequest* request, Untold* untold);
  // The error of a request that was not accepted, counted. Under the lock.
  Status Refuse(BatchQueue::Admission admission, Untold* untold);
  // Under the lock: `count` have expired.
  void CountExpired(int64_t count, Untold* untold);
  // Without the lock.
  void Tell(const Untold& untold);
  // Under the lock: as Take, and counts. True: there is something to deliver or to run.
  bool TakeBatch(BatcherWorker* worker, bool lingers);
  void RunBatch(BatcherWorker* worker, std::unique_lock<std::mutex>* lock);
  // Under the lock: `count` of undelivered_ have been answered.
  void Delivered(int64_t count);
  // Under the lock: the batch of `worker` may stop when nobody waits for it.
  void UpdateStop(int worker);

  std::mutex mutex_;
  std::condition_variable work_;     // something to take, or the end
  std::condition_variable space_;    // room in the queue
  std::condition_variable drained_;  // all answered; a worker returned
  BatchQueue queue_;
  const int64_t max_bytes_;
  int idle_ = 0;             // workers that wait for work_
  int blocked_ = 0;          // callers that wait for space_
  int64_t undelivered_ = 0;  // left the queue, but not answered yet
  int serving_ = 0;          // threads that are workers
  int64_t answered_ = 0, refused_ = 0, expired_ = 0, cancelled_ = 0, failed_ = 0;
  RateLimit refusals_, expiries_;
};

// A time of SteadyMicroseconds, for those that wait until it.
inline std::chrono::steady_clock::time_point SteadyTime(int64_t us) {
  return std::chrono::steady_clock::time_point(std::chrono::microseconds(us));
}

// `time` + `more`, kNever if that is beyond it.
int64_t LaterBy(int64_t time, int64_t more);

// The error that ends a request: kCancelled or kDeadline. Needs no memory.
Status EndOfRequest(ErrorCode code);

}  // namespace attend

#endif  // ATTEND_ENGINE_BATCHER_CORE_H_
