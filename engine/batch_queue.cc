#include "engine/batch_queue.h"

#include <algorithm>

namespace attend {

BatchQueue::BatchQueue(const Limits& limits)
    : limits_(limits), batches_(static_cast<size_t>(limits.workers)) {
  // So that neither to start nor to end a batch ever asks for memory.
  for (Batch& batch : batches_) batch.items.reserve(static_cast<size_t>(limits.batch_sequences));
  waits_.reserve(kWaits);
}

BatchQueue::Admission BatchQueue::Admits() const {
  if (closed_) return Admission::kClosed;
  const bool full = queued_requests() >= limits_.queued_requests ||
                    queued_tokens_ >= limits_.queued_tokens || bytes_ >= limits_.bytes;
  return full ? Admission::kFull : Admission::kAccepted;
}

BatchQueue::Admission BatchQueue::Push(const Item& item, int64_t now) {
  Ticket& ticket = *item;
  if (closed_) return Admission::kClosed;
  if (ticket.deadline <= now) return Admission::kExpired;
  if (queued_requests() >= limits_.queued_requests ||
      ticket.tokens > limits_.queued_tokens - queued_tokens_ ||
      ticket.bytes > limits_.bytes - bytes_) {
    return Admission::kFull;
  }
  ticket.number = next_number_;
  const Place place = PlaceOf(ticket);
  const auto added = queue_.emplace(place, item).first;
  if (ticket.deadline != kNever) {
    try {
      deadlines_.emplace(ticket.deadline, place);
    } catch (...) {
      queue_.erase(added);
      throw;
    }
  }
  ++next_number_;
  ticket.state = State::kQueued;
  ticket.submitted = now;
  queued_tokens_ += ticket.tokens;
  queued_edges_ += ticket.num_edges;
  bytes_ += ticket.bytes;
  return Admission::kAccepted;
}

BatchQueue::Item BatchQueue::Remove(Queue::iterator place) {
  Item item = std::move(place->second);
  if (item->deadline != kNever) deadlines_.erase({item->deadline, place->first});
  queued_tokens_ -= item->tokens;
  queued_edges_ -= item->num_edges;
  queue_.erase(place);
  return item;
}

bool BatchQueue::Leave(Ticket* ticket) {
  if (ticket->state == State::kRunning) {
    ticket->state = State::kLeft;
    return true;
  }
  if (ticket->state != State::kQueued) return false;
  const Item item = Remove(queue_.find(PlaceOf(*ticket)));
  item->state = State::kLeft;
  bytes_ -= item->bytes;
  return true;
}

bool BatchQueue::Expire(Ticket* ticket, int64_t now) {
  return ticket->deadline <= now && Leave(ticket);
}

void BatchQueue::DropExpired(int64_t now, std::vector<Item>* expired) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto place = queue_.find(deadlines_.begin()->second);
    expired->push_back(place->second);
    Leave(expired->back().get());
  }
}

int64_t BatchQueue::LingerUntil(int64_t now) const {
  const bool has_room = queued_requests() < limits_.batch_sequences &&
                        queued_tokens_ < limits_.batch_tokens &&
                        queued_edges_ < limits_.batch_edges;
  if (limits_.linger == 0 || closed_ || !has_room) return now;
  int64_t oldest = now;
  for (const auto& [place, item] : queue_) oldest = std::min(oldest, item->submitted);
  const int64_t until = oldest + limits_.linger;
  return !deadlines_.empty() && deadlines_.begin()->first <= until ? now : until;
}

void BatchQueue::Take(int worker, int64_t now, Taken* taken, bool lingers) {
  taken->batch.clear();
  taken->expired.clear();
  taken->look_again = kNever;
  DropExpired(now, &taken->expired);
  if (queue_.empty()) return;
  const int64_t until = lingers ? LingerUntil(now) : now;
  if (until > now) {
    taken->look_again = until;
    return;
  }
  Start(worker, now, &taken->batch);
}

bool BatchQueue::Fits(const Ticket& next, const Batch& batch, int64_t share) const {
  return static_cast<int64_t>(batch.items.size()) < limits_.batch_sequences &&
         batch.tokens + next.tokens <= limits_.batch_tokens &&
         batch.edges + next.num_edges <= limits_.batch_edges && batch.tokens < share;
}

void BatchQueue::Start(int worker, int64_t now, std::vector<Item>* started) {
  const int64_t even = (queued_tokens_ + limits_.workers - 1) / limits_.workers;
  const int64_t share = std::max(even, limits_.share_tokens);
  Batch& batch = batches_[static_cast<size_t>(worker)];
  batch.tokens = batch.edges = batch.bytes = 0;
  ++busy_;
  // The first that does not fit ends the batch: none behind it may start before it.
  while (!queue_.empty() && Fits(*queue_.begin()->second, batch, share)) {
    Item item = Remove(queue_.begin());
    item->state = State::kRunning;
    item->started = now;
    item->worker = worker;
    batch.tokens += item->tokens;
    batch.edges += item->num_edges;
    batch.bytes += item->bytes;
    const int64_t wait = now - item->submitted;
    if (waits_.size() < kWaits) {
      waits_.push_back(wait);
    } else {
      waits_[next_wait_] = wait;
      next_wait_ = (next_wait_ + 1) % kWaits;
    }
    started->push_back(item);
    batch.items.push_back(std::move(item));
  }
  ++counts_.batches;
  counts_.tokens += batch.tokens;
  counts_.sequences += static_cast<int64_t>(batch.items.size());
}

int64_t BatchQueue::StopAt(int worker) const {
  int64_t last = 0;
  for (const Item& item : batches_[static_cast<size_t>(worker)].items) {
    if (item->state == State::kRunning) last = std::max(last, item->deadline);
  }
  return last;
}

void BatchQueue::Finish(int worker, int64_t now, Finished* finished) {
  Batch& batch = batches_[static_cast<size_t>(worker)];
  finished->answered.clear();
  finished->expired.clear();
  for (Item& item : batch.items) {
    if (item->state != State::kRunning) continue;
    item->state = State::kLeft;
    const bool late = item->deadline <= now;
    (late ? finished->expired : finished->answered).push_back(std::move(item));
  }
  bytes_ -= batch.bytes;
  batch.items.clear();
  --busy_;
}

BatchQueue::Item BatchQueue::LeaveOne() {
  if (!queue_.empty()) {
    const Item item = queue_.begin()->second;
    Leave(item.get());
    return item;
  }
  for (const Batch& batch : batches_) {
    for (const Item& item : batch.items) {
      if (Leave(item.get())) return item;
    }
  }
  return nullptr;
}

BatchQueue::Taken BatchQueue::RoomForTaken() const {
  Taken taken;
  taken.batch.reserve(static_cast<size_t>(limits_.batch_sequences));
  taken.expired.reserve(static_cast<size_t>(limits_.queued_requests));
  return taken;
}

BatchQueue::Finished BatchQueue::RoomForFinished() const {
  Finished finished;
  finished.answered.reserve(static_cast<size_t>(limits_.batch_sequences));
  finished.expired.reserve(static_cast<size_t>(limits_.batch_sequences));
  return finished;
}

int64_t BatchQueue::running_requests() const {
  int64_t running = 0;
  for (const Batch& batch : batches_) {
    running += std::count_if(batch.items.begin(), batch.items.end(),
                             [](const Item& item) { return item->state == State::kRunning; });
  }
  return running;
}

}  // namespace attend
