// Batcher and PendingAnswer: the doors to the core, which check the process and keep exceptions in.
#include "attend/batcher.h"

#include <algorithm>
#include <new>
#include <string>

#include "engine/batcher_core.h"
#include "engine/check.h"
#include "engine/log.h"
#include "engine/pipeline.h"
#include "engine/text/guard.h"

namespace attend {
namespace {

Status OtherProcess() {
  return Status(ErrorCode::kUnsupported,
                "this process is a child by fork of the one that made the Batcher, and has none of "
                "its threads",
                "Batcher", "make a new Batcher in the child");
}

// In a child after fork a lock may be held, and waited for, by threads that are gone: what has one
// is never destroyed there.
template <typename T>
void Abandon(std::shared_ptr<T>* pointer) {
  alignas(std::shared_ptr<T>) unsigned char grave[sizeof(std::shared_ptr<T>)];
  new (grave) std::shared_ptr<T>(std::move(*pointer));
}

Status CheckOptions(const BatcherOptions& options) {
  const auto in_range = [](const char* name, int64_t value, int64_t low, int64_t high) {
    return CheckOption("BatcherOptions", name, value, low, high);
  };
  constexpr int64_t kMost = int64_t{1} << 40;
  ATTEND_RETURN_IF_ERROR(in_range("num_workers", options.num_workers, 0, 1024));
  ATTEND_RETURN_IF_ERROR(in_range("max_queued_requests", options.max_queued_requests, 1, 1 << 24));
  ATTEND_RETURN_IF_ERROR(in_range("max_queued_tokens", options.max_queued_tokens, 1, kMost));
  ATTEND_RETURN_IF_ERROR(in_range("max_bytes", options.max_bytes, 1, kMost));
  ATTEND_RETURN_IF_ERROR(in_range("linger_us", options.linger_us, 0, 60'000'000));
  if (options.max_queued_tokens >= options.session.max_tokens) return Status();
  return Invalid("max_queued_tokens is " + std::to_string(options.max_queued_tokens) +
                     ", expected at least session.max_tokens, " +
                     std::to_string(options.session.max_tokens),
                 "BatcherOptions");
}

int DefaultWorkers(const SessionOptions& session) {
  if (session.num_threads == 0) return 1;  // one Session has them all
  return std::max(1, AdviseThreads().num_threads / std::max(1, session.num_threads));
}

Status MakeWorkers(int count, BatcherCore* core) {
  // One has told what they are; they tell only how they fare.
  SessionOptions options = core->options.session;
  options.logger = nullptr;
  for (int i = 0; i < count; ++i) {
    Result<Session> session = Session::Create(core->model, options);
    if (!session.ok()) return session.status();
    session->data().workers.logger = core->options.session.logger;
    core->AddWorker(*std::move(session));
  }
  return Status();
}

// The tokenizer, if the model has one.
Status AddTokenizer(BatcherCore* core) {
  Result<Tokenizer> tokenizer = Tokenizer::FromModel(core->model);
  if (tokenizer.status().code() == ErrorCode::kNotFound) return Status();
  if (tokenizer.ok()) tokenizer = RequireTokenizer(core->model, "a batcher");
  if (!tokenizer.ok()) return tokenizer.status();
  PipelineOptions limits;
  limits.session = core->options.session;
  limits.max_length = core->options.max_length;
  const Result<int32_t> length =
      EffectiveMaxLength(core->model, limits, tokenizer->num_added_tokens(/*pair=*/false));
  if (!length.ok()) return length.status();
  core->max_length = *length;
  core->tokenizer = *std::move(tokenizer);
  return Status();
}

void TellMade(const BatcherCore& core, bool starts_threads) {
  const BatcherOptions& options = core.options;
  if (!Wants(options.session.logger, LogLevel::kInfo)) return;
  const size_t workers = core.workers.size();
  Tell(options.session.logger, LogLevel::kInfo, LogCode::kBatcher,
       std::to_string(workers) + (workers == 1 ? " worker" : " workers") +
           (options.num_workers > 0 ? ", as asked for" : ": " + AdviseThreads().reason) +
           (starts_threads ? ", with threads of their own" : ", served by the program") +
           "; batches of " + std::to_string(options.session.max_tokens) + " tokens, a queue of " +
           std::to_string(options.max_queued_requests) + " requests and " +
           std::to_string(options.max_queued_tokens) + " tokens; at most " +
           std::to_string(core.memory_bytes) + " bytes");
}

void ServeAsWorker(void* core, int) {
  BatcherCore* const mine = static_cast<BatcherCore*>(core);
  BatcherWorker* const worker = mine->TakeWorker();
  mine->Serve(worker, true);
  mine->ReturnWorker(worker);
}

}  // namespace

Result<Batcher> Batcher::Create(const Model& model, const BatcherOptions& options) {
  return WithoutExceptions("Batcher", [&]() -> Result<Batcher> {
    ATTEND_RETURN_IF_ERROR(CheckOptions(options));
    const int workers =
        options.num_workers > 0 ? options.num_workers : DefaultWorkers(options.session);
    // What a Session makes of the options, its own limit of edges among it.
    Result<Session> first = Session::Create(model, options.session);
    if (!first.ok()) return first.status();
    const SessionOptions& session = first->data().options;
    const BatchQueue::Limits limits = {.queued_requests = options.max_queued_requests,
                                       .queued_tokens = options.max_queued_tokens,
                                       .bytes = options.max_bytes,
                                       .batch_tokens = session.max_tokens,
                                       .batch_sequences = session.max_sequences,
                                       .batch_edges = std::max(1, session.max_edges),
                                       .linger = options.linger_us,
                                       .workers = workers};
    Batcher batcher(std::make_shared<BatcherCore>(model, options, limits));
    BatcherCore& core = *batcher.core_;
    core.AddWorker(*std::move(first));
    ATTEND_RETURN_IF_ERROR(MakeWorkers(workers - 1, &core));
    ATTEND_RETURN_IF_ERROR(AddTokenizer(&core));
    const bool starts_threads = options.start_threads && options.session.executor == nullptr;
    TellMade(core, starts_threads);
    if (starts_threads) {
      ATTEND_RETURN_IF_ERROR(core.crew.Start(workers, &ServeAsWorker, &core));
    }
    return batcher;
  });
}

Batcher::Batcher(std::shared_ptr<BatcherCore> core) : core_(std::move(core)) {}
Batcher::Batcher(Batcher&&) noexcept = default;

Batcher& Batcher::operator=(Batcher&& other) noexcept {
  if (this == &other) return *this;
  Release();
  core_ = std::move(other.core_);
  return *this;
}

Batcher::~Batcher() { Release(); }

void Batcher::Release() {
  if (core_ == nullptr) return;
  if (!core_->InItsProcess()) return Abandon(&core_);
  core_->End();
  core_.reset();
}

Result<PendingAnswer> Batcher::Submit(BatchRequest request) {
  if (core_ == nullptr) return MovedFrom("Batcher");
  return WithoutExceptions("Batcher", [&]() -> Result<PendingAnswer> {
    if (!core_->InItsProcess()) return OtherProcess();
    Result<std::shared_ptr<BatcherRequest>> made = core_->Submit(core_, &request);
    if (!made.ok()) return made.status();
    return PendingAnswer(*std::move(made));
  });
}

void Batcher::Close() {
  if (core_ != nullptr && core_->InItsProcess()) core_->Close();
}

bool Batcher::Drain(int64_t limit_us) {
  return core_ != nullptr && core_->InItsProcess() && core_->Drain(limit_us);
}

void Batcher::CancelAll() {
  if (core_ != nullptr && core_->InItsProcess()) core_->CancelAll();
}

Status Batcher::Serve() {
  const Result<int64_t> served = ServeAs(true);
  return served.status();
}

Result<int64_t> Batcher::ServeWaiting() { return ServeAs(false); }

Result<int64_t> Batcher::ServeAs(bool stays) {
  if (core_ == nullptr) return MovedFrom("Batcher");
  return WithoutExceptions("Batcher", [&]() -> Result<int64_t> {
    if (!core_->InItsProcess()) return OtherProcess();
    if (core_->options.start_threads && core_->options.session.executor == nullptr) {
      return Invalid("the Batcher has threads of its own", "Batcher",
                     "set BatcherOptions::start_threads to false");
    }
    BatcherWorker* const worker = core_->TakeWorker();
    if (worker == nullptr) {
      return Status(ErrorCode::kBusy,
                    "all " + std::to_string(num_workers()) + " workers are served by other threads",
                    "Batcher", "raise BatcherOptions::num_workers");
    }
    const int64_t served = core_->Serve(worker, stays);
    core_->ReturnWorker(worker);
    return served;
  });
}

BatcherStatistics Batcher::statistics() const {
  if (core_ == nullptr || !core_->InItsProcess()) return {};
  const Result<BatcherStatistics> now = WithoutExceptions(
      "Batcher", [&]() -> Result<BatcherStatistics> { return core_->Statistics(); });
  return now.ok() ? *now : BatcherStatistics{};
}

int Batcher::num_workers() const { return static_cast<int>(core_->workers.size()); }
size_t Batcher::memory_bytes() const { return core_->memory_bytes; }
const Model& Batcher::model() const { return core_->model; }

PendingAnswer::PendingAnswer(std::shared_ptr<BatcherRequest> request)
    : request_(std::move(request)) {}
PendingAnswer::PendingAnswer(PendingAnswer&&) noexcept = default;

PendingAnswer& PendingAnswer::operator=(PendingAnswer&& other) noexcept {
  PendingAnswer taken(std::move(other));
  std::swap(request_, taken.request_);
  return *this;
}

PendingAnswer::~PendingAnswer() {
  if (request_ != nullptr && !request_->core->InItsProcess()) Abandon(&request_);
}

bool PendingAnswer::Here() const { return request_ != nullptr && request_->core->InItsProcess(); }

bool PendingAnswer::done() const {
  if (!Here()) return false;
  const std::lock_guard<std::mutex> lock(request_->mutex);
  return request_->answered;
}

bool PendingAnswer::WaitFor(int64_t timeout_us) const {
  if (!Here()) return false;
  BatcherRequest& request = *request_;
  const auto answered = [&request] { return request.answered; };
  const int64_t timeout =
      timeout_us < 0 ? BatchQueue::kNever : LaterBy(SteadyMicroseconds(), timeout_us);
  std::unique_lock<std::mutex> lock(request.mutex);
  const int64_t until = std::min(timeout, request.deadline);
  if (until == BatchQueue::kNever) {
    request.changed.wait(lock, answered);
  } else if (!request.changed.wait_until(lock, SteadyTime(until), answered)) {
    if (timeout < request.deadline) return false;
    // Whoever waits is who notices that it is late; if another was first, it answers.
    lock.unlock();
    request.core->Leave(&request, ErrorCode::kDeadline);
    lock.lock();
    request.changed.wait(lock, answered);
  }
  return true;
}

Result<BatchAnswer> PendingAnswer::Wait() {
  if (request_ == nullptr) return MovedFrom("PendingAnswer");
  return WithoutExceptions("PendingAnswer", [&]() -> Result<BatchAnswer> {
    if (!Here()) return OtherProcess();
    WaitFor(-1);
    const std::lock_guard<std::mutex> lock(request_->mutex);
    if (request_->taken) {
      return Invalid("the answer was taken before, or given to BatchRequest::done",
                     "PendingAnswer");
    }
    request_->taken = true;
    return std::move(request_->answer);
  });
}

void PendingAnswer::Cancel() {
  if (Here()) request_->core->Leave(request_.get(), ErrorCode::kCancelled);
}

}  // namespace attend
