// A worker: takes a batch, puts it end to end, runs it, and cuts the outputs apart again.
#include <algorithm>
#include <new>
#include <utility>

#include "attend/trace.h"
#include "engine/batcher_core.h"
#include "engine/text/guard.h"

namespace attend {
namespace {

const BatcherRequest& RequestOf(const BatchQueue::Item& item) {
  return static_cast<const BatcherRequest&>(*item);
}

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

// Rows [row, row + rows) of `values`, which has `all` rows.
std::vector<float> Rows(std::span<const float> values, int64_t row, int64_t rows, int64_t all) {
  const int64_t width = static_cast<int64_t>(values.size()) / all;
  return {values.begin() + row * width, values.begin() + (row + rows) * width};
}

}  // namespace

void BatcherRequest::Deliver(Result<BatchAnswer> result) {
  const bool by_call = done != nullptr;
  if (by_call) {
    done(std::move(result));
    done = nullptr;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  taken = by_call;
  if (!by_call) answer = std::move(result);
  answered = true;
  changed.notify_all();
}

void BatcherWorker::Gather() {
  const ModelConfig& config = session.data().model->config;
  for (std::vector<int32_t>* array :
       {&ids_, &offsets_, &type_ids_, &decoder_ids_, &decoder_offsets_, &edge_offsets_}) {
    array->clear();
  }
  rows_.clear();
  edges_.clear();
  offsets_.push_back(0);
  if (IsEncoderDecoder(config)) decoder_offsets_.push_back(0);
  if (config.edges) edge_offsets_.push_back(0);
  for (const BatchQueue::Item& item : taken.batch) {
    const BatcherRequest& request = RequestOf(item);
    Append(request.rows, &rows_);
    Append(request.encoding.ids, &ids_);
    // Of those that bring none all are 0, and they come before the first that does.
    if (config.type_vocab_size > 0 && !request.encoding.type_ids.empty()) {
      type_ids_.resize(static_cast<size_t>(offsets_.back()));
      Append(request.encoding.type_ids, &type_ids_);
    }
    const int64_t end = offsets_.back() + request.length(config.input_size);
    offsets_.push_back(static_cast<int32_t>(end));
    if (IsEncoderDecoder(config)) {
      Append(request.decoder_ids, &decoder_ids_);
      decoder_offsets_.push_back(static_cast<int32_t>(decoder_ids_.size()));
    }
    if (config.edges) {
      Append(request.edges, &edges_);
      edge_offsets_.push_back(static_cast<int32_t>(edges_.size()));
    }
  }
  if (!type_ids_.empty()) type_ids_.resize(ids_.size(), 0);
}

void BatcherWorker::NoteQueue() {
  Trace* const trace = session.data().options.trace;
  if (trace == nullptr) return;
  TraceBuffer& buffer = *trace->buffer();
  const int32_t name = buffer.Name("queue"), thread = ThreadNumber();
  for (const BatchQueue::Item& item : taken.batch) {
    const auto& request = static_cast<const BatcherRequest&>(*item);
    buffer.Add({.begin_ns = request.submitted * 1000,
                .end_ns = request.started * 1000,
                .name = name,
                .thread = thread,
                .id = buffer.NewId()});
  }
}

Result<Output> BatcherWorker::Run() {
  const int64_t begin = SteadyMicroseconds();
  Result<Output> output = WithoutExceptions("Batcher", [&]() -> Result<Output> {
    NoteQueue();
    Gather();
    StopSignal stop{.stop_at = &stop_at};
    SessionData* const data = &session.data();
    if (data->model->config.vocab_size == 0) {
      return RunUntil(
          VectorBatch{
              .rows = rows_, .offsets = offsets_, .edges = edges_, .edge_offsets = edge_offsets_},
          &stop, data);
    }
    return RunUntil(TokenBatch{.ids = ids_,
                               .offsets = offsets_,
                               .type_ids = type_ids_,
                               .decoder_ids = decoder_ids_,
                               .decoder_offsets = decoder_offsets_,
                               .edges = edges_,
                               .edge_offsets = edge_offsets_},
                    &stop, data);
  });
  run_us = SteadyMicroseconds() - begin;
  return output;
}

BatchAnswer BatcherWorker::Cut(const Output& output, const BatcherRequest& request,
                               size_t sequence) {
  const Task task = session.data().model->info.task;
  const int64_t sequences = static_cast<int64_t>(offsets_.size()) - 1;
  const int64_t at = static_cast<int64_t>(sequence);
  const auto place = [&](const std::vector<int32_t>& offsets) {
    return std::pair<int64_t, int64_t>(offsets[sequence],
                                       offsets[sequence + 1] - offsets[sequence]);
  };
  const auto [row, rows] = place(offsets_);
  // What answers: the decoder's rows where there is one.
  const std::vector<int32_t>& last = decoder_offsets_.empty() ? offsets_ : decoder_offsets_;
  const auto [last_row, last_rows] = place(last);
  const bool by_token = task == Task::kTokens || task == Task::kGenerate;
  const bool nothing_else = output.pooled.empty() && output.logits.empty();
  BatchAnswer answer;
  if (request.want_hidden || nothing_else) {
    answer.hidden = Rows(output.hidden, last_row, last_rows, last.back());
  }
  if (request.want_pooled) answer.pooled = Rows(output.pooled, at, 1, sequences);
  if (request.want_logits) {
    answer.logits = by_token ? Rows(output.logits, last_row, last_rows, last.back())
                             : Rows(output.logits, at, 1, sequences);
  }
  if (request.want_encoder_hidden) {
    answer.encoder_hidden = Rows(output.encoder_hidden, row, rows, offsets_.back());
  }
  answer.queued_us = request.started - request.submitted;
  answer.run_us = run_us;
  answer.batch_tokens = offsets_.back();
  answer.batch_sequences = static_cast<int32_t>(sequences);
  if (output.telemetry != nullptr) {
    answer.telemetry = *output.telemetry;
    answer.telemetry->encode_ns = request.encode_ns;
    answer.telemetry->queue_ns = answer.queued_us * 1000;
  }
  return answer;
}

void BatcherWorker::Deliver(const Result<Output>& output) {
  size_t sequence = 0;
  for (const BatchQueue::Item& item : finished.answered) {
    // In the order of the batch, of which some may have left.
    while (taken.batch[sequence] != item) ++sequence;
    BatcherRequest& request = static_cast<BatcherRequest&>(*item);
    request.Deliver(WithoutExceptions("Batcher", [&]() -> Result<BatchAnswer> {
      if (!output.ok()) return output.status();
      BatchAnswer answer = Cut(*output, request, sequence);
      if (request.is_text) answer.encoding = std::move(request.encoding);
      return answer;
    }));
  }
  for (const BatchQueue::Item& item : finished.expired) {
    static_cast<BatcherRequest&>(*item).Deliver(EndOfRequest(ErrorCode::kDeadline));
  }
}

size_t BatcherWorker::memory_bytes() {
  const SessionOptions& options = session.data().options;
  const ModelConfig& config = session.data().model->config;
  const size_t tokens = static_cast<size_t>(options.max_tokens);
  const size_t sequences = static_cast<size_t>(options.max_sequences) + 1;
  return session.memory_bytes() + sizeof(*this) + 3 * (tokens + sequences) * sizeof(int32_t) +
         tokens * static_cast<size_t>(config.input_size) * sizeof(float) +
         static_cast<size_t>(options.max_edges) * sizeof(Edge);
}

bool BatcherCore::TakeBatch(BatcherWorker* worker, bool lingers) {
  queue_.Take(worker->index, SteadyMicroseconds(), &worker->taken, lingers);
  const int64_t expired = static_cast<int64_t>(worker->taken.expired.size());
  CountExpired(expired, &worker->untold);
  undelivered_ += expired;
  const bool starts = !worker->taken.batch.empty();
  if (starts) UpdateStop(worker->index);
  // What it left behind, after lingering, is for another.
  if (starts && idle_ > 0 && queue_.queued_requests() > 0) work_.notify_one();
  if (blocked_ > 0 && (starts || expired > 0)) space_.notify_all();
  return starts || expired > 0;
}

void BatcherCore::RunBatch(BatcherWorker* worker, std::unique_lock<std::mutex>* lock) {
  const bool starts = !worker->taken.batch.empty();
  lock->unlock();
  Tell(std::exchange(worker->untold, {}));
  for (const BatchQueue::Item& item : worker->taken.expired) {
    static_cast<BatcherRequest&>(*item).Deliver(EndOfRequest(ErrorCode::kDeadline));
  }
  int64_t delivered = static_cast<int64_t>(worker->taken.expired.size());
  worker->taken.expired.clear();
  if (starts) {
    const Result<Output> output = worker->Run();
    lock->lock();
    queue_.Finish(worker->index, SteadyMicroseconds(), &worker->finished);
    const int64_t answered = static_cast<int64_t>(worker->finished.answered.size());
    const int64_t expired = static_cast<int64_t>(worker->finished.expired.size());
    (output.ok() ? answered_ : failed_) += answered;
    CountExpired(expired, &worker->untold);
    undelivered_ += answered + expired;
    delivered += answered + expired;
    if (blocked_ > 0) space_.notify_all();
    lock->unlock();
    Tell(std::exchange(worker->untold, {}));
    worker->Deliver(output);
    worker->finished.answered.clear();
    worker->finished.expired.clear();
    worker->taken.batch.clear();
  }
  lock->lock();
  Delivered(delivered);
}

int64_t BatcherCore::Serve(BatcherWorker* worker, bool stays) {
  int64_t served = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (TakeBatch(worker, stays)) {
      served += static_cast<int64_t>(worker->taken.batch.size() + worker->taken.expired.size());
      RunBatch(worker, &lock);
      continue;
    }
    if (!stays || (queue_.closed() && queue_.queued_requests() == 0)) return served;
    ++idle_;
    if (worker->taken.look_again == BatchQueue::kNever) {
      work_.wait(lock);
    } else {
      work_.wait_until(lock, SteadyTime(worker->taken.look_again));
    }
    --idle_;
  }
}

}  // namespace attend
