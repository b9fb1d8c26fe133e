// The policy of a Batcher: what waits, what starts when and with whom, what leaves without having
// started. No clock, no thread, no lock: time comes in as a number, so that tests can replay it.
#ifndef ATTEND_ENGINE_BATCH_QUEUE_H_
#define ATTEND_ENGINE_BATCH_QUEUE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace attend {

class BatchQueue {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // All at least 1 but `linger`. A unit of time is whatever the caller's clock has.
  struct Limits {
    int64_t queued_requests = 1;
    int64_t queued_tokens = 1;
    int64_t bytes = 1;  // of requests that wait or run
    int64_t batch_tokens = 1;
    int64_t batch_sequences = 1;
    int64_t batch_edges = 1;
    int64_t linger = 0;  // how long a worker waits for a batch to fill
    int workers = 1;
    // A batch takes no more than its even share among the workers of what waits, so that none of
    // them is idle while another has much to do; but always this much, below which a run has little
    // to gain from being split.
    int64_t share_tokens = 64;
  };

  // Where a request is. Out of kQueued and kRunning it goes exactly once, and whoever made it go
  // answers it.
  enum class State { kNew, kQueued, kRunning, kLeft };

  // A request. The caller fills in the first part.
  struct Ticket {
    virtual ~Ticket() = default;
    int64_t tokens = 0;     // at most batch_tokens
    int64_t num_edges = 0;  // at most batch_edges
    int64_t bytes = 0;      // at most `bytes`
    int32_t priority = 0;
    int64_t deadline = kNever;

    State state = State::kNew;
    uint64_t number = 0;  // in the order of Push
    int64_t submitted = 0, started = 0;
    int worker = -1;  // that runs it
  };
  using Item = std::shared_ptr<Ticket>;

  explicit BatchQueue(const Limits& limits);

  enum class Admission { kAccepted, kFull, kExpired, kClosed };
  // What Push would say of a request without tokens, edges, bytes or deadline.
  Admission Admits() const;
  // Puts the request behind those of its priority. If there is no memory it throws, and nothing has
  // changed.
  Admission Push(const Item& item, int64_t now);

  // The request leaves, if it has not left yet. True: it has now, and the caller answers it. A
  // batch that is running goes on: see StopAt.
  bool Leave(Ticket* ticket);
  // The same if its deadline is over.
  bool Expire(Ticket* ticket, int64_t now);

  struct Taken {
    std::vector<Item> batch;      // has started; empty: there is nothing to do
    std::vector<Item> expired;    // have left: the caller answers them
    int64_t look_again = kNever;  // of an empty batch: when there will be something, if at all
  };
  // The next batch for `worker`, which is idle: the first request of the highest priority, and
  // those behind it for as long as the batch's limits allow. Empties and fills `taken`. `lingers`:
  // whether it waits for a batch to fill, if the limits say so.
  void Take(int worker, int64_t now, Taken* taken, bool lingers = true);

  // A Taken that never has to grow.
  Taken RoomForTaken() const;

  // When the batch of `worker` may stop, since nobody waits for it any longer: the last deadline of
  // its requests that have not left; 0 if all have.
  int64_t StopAt(int worker) const;

  struct Finished {              // RoomForFinished never has to grow
    std::vector<Item> answered;  // in time
    std::vector<Item> expired;
  };
  Finished RoomForFinished() const;
  // The batch of `worker` has ended. All that had not left leave. Empties and fills `finished`.
  void Finish(int worker, int64_t now, Finished* finished);

  // From now on nothing is accepted.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }
  // One of those that wait or run leaves, and the caller answers it. Null: there is none.
  Item LeaveOne();
  // Nothing waits and no worker runs a batch.
  bool idle() const { return queue_.empty() && busy_ == 0; }

  int64_t queued_requests() const { return static_cast<int64_t>(queue_.size()); }
  int64_t queued_tokens() const { return queued_tokens_; }
  int64_t bytes() const { return bytes_; }
  int64_t running_requests() const;
  int busy_workers() const { return busy_; }

  struct Counts {
    int64_t batches = 0, tokens = 0, sequences = 0;  // started
  };
  const Counts& counts() const { return counts_; }
  // How long the last of those that started waited, in no order; at most kWaits.
  static constexpr size_t kWaits = 4096;
  const std::vector<int64_t>& waits() const { return waits_; }

 private:
  using Place = std::pair<int64_t, uint64_t>;  // -priority, number: the order of starting
  static Place PlaceOf(const Ticket& ticket) { return {-int64_t{ticket.priority}, ticket.number}; }
  using Queue = std::map<Place, Item>;

  struct Batch {
    std::vector<Item> items;
    int64_t tokens = 0, edges = 0, bytes = 0;
  };

  // Takes what is over out of the queue.
  void DropExpired(int64_t now, std::vector<Item>* expired);
  Item Remove(Queue::iterator place);
  // Until when to wait for a batch to fill; `now` if it is full, or would miss a deadline.
  int64_t LingerUntil(int64_t now) const;
  // Whether `next` still goes into a batch of so many tokens and edges, the share being `share`.
  bool Fits(const Ticket& next, const Batch& batch, int64_t share) const;
  void Start(int worker, int64_t now, std::vector<Item>* batch);

  Limits limits_;
  bool closed_ = false;
  uint64_t next_number_ = 0;
  Queue queue_;
  std::set<std::pair<int64_t, Place>> deadlines_;  // of those in the queue that have one
  int64_t queued_tokens_ = 0, queued_edges_ = 0, bytes_ = 0;
  std::vector<Batch> batches_;  // by worker
  int busy_ = 0;
  Counts counts_;
  std::vector<int64_t> waits_;
  size_t next_wait_ = 0;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_BATCH_QUEUE_H_
