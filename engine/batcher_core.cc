// The lock around the queue: who comes in, who goes out, and who is told.
#include "engine/batcher_core.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>

#include "engine/log.h"
#include "engine/text/guard.h"

namespace attend {

int64_t LaterBy(int64_t time, int64_t more) {
  return more < BatchQueue::kNever / 4 ? time + more : BatchQueue::kNever;
}

Status EndOfRequest(ErrorCode code) {
  const bool late = code == ErrorCode::kDeadline;
  try {
    return Status(code, late ? "the deadline is over" : "the request was cancelled", "Batcher");
  } catch (const std::bad_alloc&) {
    return Status(code, late ? "too late" : "cancelled", "Batcher");
  }
}

BatcherCore::BatcherCore(Model served, const BatcherOptions& asked,
                         const BatchQueue::Limits& limits)
    : process(getpid()),
      model(std::move(served)),
      options(asked),
      memory_bytes(static_cast<size_t>(asked.max_bytes)),
      queue_(limits),
      max_bytes_(limits.bytes) {}

bool BatcherCore::InItsProcess() const { return getpid() == process; }

Status BatcherCore::Refuse(BatchQueue::Admission admission, Untold* untold) {
  switch (admission) {
    case BatchQueue::Admission::kClosed:
      ++cancelled_;
      return Status(ErrorCode::kCancelled, "the Batcher is closed", "Batcher");
    case BatchQueue::Admission::kExpired:
      CountExpired(1, untold);
      return EndOfRequest(ErrorCode::kDeadline);
    default:
      ++refused_;
      ++untold->refused_now;
      untold->refused += refusals_.Count(1, SteadyMicroseconds());
      return Status(ErrorCode::kBusy,
                    "the queue is full: " + std::to_string(queue_.queued_requests()) +
                        " requests of " + std::to_string(queue_.queued_tokens()) +
                        " tokens wait, " + std::to_string(queue_.bytes()) + " bytes are held",
                    "Batcher", "try again later, or give block_us");
  }
}

void BatcherCore::CountExpired(int64_t count, Untold* untold) {
  if (count == 0) return;
  expired_ += count;
  untold->expired_now += count;
  untold->expired += expiries_.Count(count, SteadyMicroseconds());
}

void BatcherCore::Tell(const Untold& untold) {
  Logger* const logger = options.session.logger;
  if (logger == nullptr) return;
  const auto tell = [logger](LogCode code, int64_t now, int64_t all, const char* what) {
    if (now > 0) TellFormatted(logger, LogLevel::kDebug, code, "%" PRId64 " %s", now, what);
    if (all == 0) return;
    TellFormatted(logger, LogLevel::kWarning, code, "%" PRId64 " %s since this was told last", all,
                  what);
  };
  tell(LogCode::kRefused, untold.refused_now, untold.refused, "requests found no room");
  tell(LogCode::kExpired, untold.expired_now, untold.expired, "requests passed their deadline");
}

Result<std::shared_ptr<BatcherRequest>> BatcherCore::Submit(
    const std::shared_ptr<BatcherCore>& self, BatchRequest* request) {
  Untold untold;
  Result<std::shared_ptr<BatcherRequest>> made = Admit(self, request, &untold);
  Tell(untold);
  return made;
}

Result<std::shared_ptr<BatcherRequest>> BatcherCore::Admit(const std::shared_ptr<BatcherCore>& self,
                                                           BatchRequest* request, Untold* untold) {
  using Admission = BatchQueue::Admission;
  const int64_t now = SteadyMicroseconds();
  {
    // Before any work is done for a request that has no chance.
    const std::lock_guard<std::mutex> lock(mutex_);
    Admission admission = queue_.Admits();
    if (admission == Admission::kFull && request->block_us > 0) admission = Admission::kAccepted;
    if (request->deadline_us < 0) admission = Admission::kExpired;
    if (admission != Admission::kAccepted) return Refuse(admission, untold);
  }
  auto made = std::make_shared<BatcherRequest>();
  const Status wrong = Fill(*request, made.get());
  if (!wrong.ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++failed_;
    return wrong;
  }
  made->core = self;
  made->priority = request->priority;
  made->done = std::move(request->done);
  if (request->deadline_us > 0) made->deadline = LaterBy(now, request->deadline_us);
  const int64_t until =
      std::min(LaterBy(now, std::max<int64_t>(0, request->block_us)), made->deadline);
  std::unique_lock<std::mutex> lock(mutex_);
  Admission admission = queue_.Push(made, SteadyMicroseconds());
  while (admission == Admission::kFull && SteadyMicroseconds() < until) {
    ++blocked_;
    if (until == BatchQueue::kNever) {
      space_.wait(lock);
    } else {
      space_.wait_until(lock, SteadyTime(until));
    }
    --blocked_;
    admission = queue_.Push(made, SteadyMicroseconds());
  }
  if (admission != Admission::kAccepted) return Refuse(admission, untold);
  const bool wake = idle_ > 0;
  lock.unlock();
  if (wake) work_.notify_one();
  return made;
}

void BatcherCore::Leave(BatcherRequest* request, ErrorCode code) {
  Untold untold;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool left = code == ErrorCode::kDeadline ? queue_.Expire(request, SteadyMicroseconds())
                                                   : queue_.Leave(request);
    if (!left) return;
    if (code == ErrorCode::kDeadline) {
      CountExpired(1, &untold);
    } else {
      ++cancelled_;
    }
    ++undelivered_;
    if (request->worker >= 0) UpdateStop(request->worker);
    if (blocked_ > 0) space_.notify_all();
  }
  Tell(untold);
  request->Deliver(EndOfRequest(code));
  const std::lock_guard<std::mutex> lock(mutex_);
  Delivered(1);
}

void BatcherCore::Delivered(int64_t count) {
  undelivered_ -= count;
  if (undelivered_ == 0 && queue_.idle()) drained_.notify_all();
}

void BatcherCore::UpdateStop(int worker) {
  workers[static_cast<size_t>(worker)]->stop_at.store(queue_.StopAt(worker),
                                                      std::memory_order_relaxed);
}

void BatcherCore::Close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.Close();
  }
  work_.notify_all();
  space_.notify_all();
}

bool BatcherCore::Drain(int64_t limit_us) {
  Close();
  const auto all = [this] { return undelivered_ == 0 && queue_.idle(); };
  std::unique_lock<std::mutex> lock(mutex_);
  const int64_t until = limit_us < 0 ? BatchQueue::kNever : LaterBy(SteadyMicroseconds(), limit_us);
  if (until != BatchQueue::kNever) return drained_.wait_until(lock, SteadyTime(until), all);
  drained_.wait(lock, all);
  return true;
}

void BatcherCore::CancelAll() {
  std::unique_lock<std::mutex> lock(mutex_);
  // As many as there are now: others may come meanwhile.
  for (int64_t n = queue_.queued_requests() + queue_.running_requests(); n > 0; --n) {
    const BatchQueue::Item item = queue_.LeaveOne();
    if (item == nullptr) return;
    if (item->worker >= 0) UpdateStop(item->worker);
    ++cancelled_;
    ++undelivered_;
    if (blocked_ > 0) space_.notify_all();
    lock.unlock();
    static_cast<BatcherRequest&>(*item).Deliver(EndOfRequest(ErrorCode::kCancelled));
    lock.lock();
    Delivered(1);
  }
}

void BatcherCore::AddWorker(Session session) {
  workers.push_back(
      std::make_unique<BatcherWorker>(static_cast<int>(workers.size()), std::move(session)));
  workers.back()->taken = queue_.RoomForTaken();
  workers.back()->finished = queue_.RoomForFinished();
  memory_bytes += workers.back()->memory_bytes();
}

BatcherWorker* BatcherCore::TakeWorker() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::unique_ptr<BatcherWorker>& worker : workers) {
    if (worker->busy) continue;
    worker->busy = true;
    ++serving_;
    return worker.get();
  }
  return nullptr;
}

void BatcherCore::ReturnWorker(BatcherWorker* worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  worker->busy = false;
  --serving_;
  drained_.notify_all();
}

void BatcherCore::End() {
  Close();
  CancelAll();
  crew.Join();
  std::unique_lock<std::mutex> lock(mutex_);
  drained_.wait(lock, [this] { return serving_ == 0; });
  // What is still let go of later must not keep the Sessions.
  workers.clear();
}

BatcherStatistics BatcherCore::Statistics() {
  std::vector<int64_t> waits;
  waits.reserve(BatchQueue::kWaits);
  BatcherStatistics s;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    s.queued_requests = queue_.queued_requests();
    s.queued_tokens = queue_.queued_tokens();
    s.bytes = queue_.bytes();
    s.running_requests = queue_.running_requests();
    s.idle_workers = idle_;
    s.answered = answered_;
    s.refused = refused_;
    s.expired = expired_;
    s.cancelled = cancelled_;
    s.failed = failed_;
    s.batches = queue_.counts().batches;
    s.batch_tokens = queue_.counts().tokens;
    s.batch_sequences = queue_.counts().sequences;
    waits.assign(queue_.waits().begin(), queue_.waits().end());
  }
  if (s.batches > 0) {
    s.batch_fill = static_cast<double>(s.batch_tokens) /
                   (static_cast<double>(s.batches) * options.session.max_tokens);
  }
  if (waits.empty()) return s;
  std::sort(waits.begin(), waits.end());
  const auto quantile = [&](size_t percent) { return waits[(waits.size() - 1) * percent / 100]; };
  s.queued_p50_us = quantile(50);
  s.queued_p99_us = quantile(99);
  return s;
}

}  // namespace attend
