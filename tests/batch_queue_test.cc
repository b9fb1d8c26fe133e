// The policy of a Batcher under a clock that is a number: 10,000 small worlds, each from its seed,
// with callers, workers, deadlines, cancellations and an end. A second, plain book of what happens
// is held against the queue's after every event. ATTEND_SEEDS=N runs N worlds.
#include "engine/batch_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace attend {
namespace {

// SplitMix64. Not that of testing.h, so that tests/batch_queue_mutants_test.sh needs no more than
// this file and the queue.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

// What the world knows of a request, by its own books.
struct Request final : BatchQueue::Ticket {
  int id = 0;
  bool accepted = false, started_here = false;
  int answers = 0;
  int64_t given_up = BatchQueue::kNever;  // when the caller cancels
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed), limits_(MakeLimits()), queue_(limits_) {
    workers_.resize(static_cast<size_t>(limits_.workers));
    for (Worker& worker : workers_) {
      worker.taken = queue_.RoomForTaken();
      worker.finished = queue_.RoomForFinished();
    }
    pace_ = 1 + random_.Below(16);
    slack_ = 1 + random_.Below(400);
    impatient_ = random_.Below(4);
    close_at_ = 200 + random_.Below(3000);
    cancels_at_close_ = random_.Below(3) == 0;
    At(0, kArrive, 0);
    At(close_at_, kClose, 0);
  }

  // Until nothing is left to happen. Returns the first thing that was wrong, or nothing.
  std::string Run() {
    while (!events_.empty() && wrong_.empty()) {
      const auto [time, order, kind, what] = *events_.begin();
      events_.erase(events_.begin());
      now_ = time;
      Happen(kind, what);
      CheckBooks();
      if (order > 100000) Wrong("the world does not end");
    }
    if (wrong_.empty()) CheckEnd();
    return wrong_;
  }

  struct Sums {
    int64_t accepted = 0, refused = 0, done = 0, expired = 0, cancelled = 0, stopped = 0;
    int64_t batches = 0, mates = 0;
  };
  const Sums& sums() const { return sums_; }

 private:
  enum Kind { kArrive, kFinish, kCancel, kWaiterLooks, kLookAgain, kClose };
  struct Worker {
    bool busy = false;
    int64_t since = 0;  // of the run, so that an older event finds out that it is one
    int64_t look_again = -1;
    std::vector<int> batch;
    BatchQueue::Taken taken;
    BatchQueue::Finished finished;
  };

  BatchQueue::Limits MakeLimits() {
    BatchQueue::Limits limits;
    limits.workers = static_cast<int>(1 + random_.Below(4));
    limits.batch_tokens = 8 + random_.Below(60);
    limits.batch_sequences = 1 + random_.Below(8);
    limits.batch_edges = 4 + random_.Below(40);
    limits.queued_requests = 1 + random_.Below(30);
    limits.queued_tokens = limits.batch_tokens + random_.Below(200);
    limits.bytes = 400 + random_.Below(4000);
    limits.share_tokens = 1 + random_.Below(40);
    limits.linger = random_.Below(4) == 0 ? 1 + random_.Below(100) : 0;
    return limits;
  }

  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = "at " + std::to_string(now_) + ": " + what;
  }
  void At(int64_t time, Kind kind, int what) { events_.insert({time, next_event_++, kind, what}); }

  void Happen(Kind kind, int what) {
    switch (kind) {
      case kArrive:
        return Arrive();
      case kFinish:
        return Finish(what);
      case kCancel:
        if (queue_.Leave(requests_[static_cast<size_t>(what)].get())) {
          Answer(what, &sums_.cancelled);
          StopIfLonely();
        }
        return;
      case kWaiterLooks:
        if (queue_.Expire(requests_[static_cast<size_t>(what)].get(), now_)) {
          Answer(what, &sums_.expired);
          StopIfLonely();
        }
        return;
      case kLookAgain:
        if (!workers_[static_cast<size_t>(what)].busy) Look(what);
        return;
      case kClose:
        return Close();
    }
  }

  void Arrive() {
    if (random_.Below(20) == 0) {
      At(now_ + random_.Below(30 * pace_), kArrive, 0);  // a pause
    } else {
      At(now_ + random_.Below(2 * pace_), kArrive, 0);
    }
    if (now_ > close_at_ + 300) return events_.clear_arrivals();
    auto request = std::make_shared<Request>();
    request->id = static_cast<int>(requests_.size());
    request->tokens = 1 + random_.Below(random_.Below(5) == 0 ? limits_.batch_tokens : 12);
    request->tokens = std::min(request->tokens, limits_.batch_tokens);
    request->num_edges = random_.Below(limits_.batch_edges + 1) / 3;
    request->bytes = 40 + random_.Below(200);
    request->priority = static_cast<int32_t>(random_.Below(3)) - 1;
    if (random_.Below(2) == 0) request->deadline = now_ - 3 + random_.Below(slack_);
    requests_.push_back(request);
    Push(request);
  }

  void Push(const std::shared_ptr<Request>& request) {
    using Admission = BatchQueue::Admission;
    const bool fits = static_cast<int64_t>(waiting_.size()) < limits_.queued_requests &&
                      WaitingTokens() + request->tokens <= limits_.queued_tokens &&
                      held_bytes_ + request->bytes <= limits_.bytes;
    const Admission expected = closed_                     ? Admission::kClosed
                               : request->deadline <= now_ ? Admission::kExpired
                               : fits                      ? Admission::kAccepted
                                                           : Admission::kFull;
    const Admission got = queue_.Push(request, now_);
    if (got != expected) {
      return Wrong("admission is " + std::to_string(static_cast<int>(got)) + ", expected " +
                   std::to_string(static_cast<int>(expected)));
    }
    if (got != Admission::kAccepted) {
      ++sums_.refused;
      return;
    }
    ++sums_.accepted;
    request->accepted = true;
    waiting_.push_back(request->id);
    held_bytes_ += request->bytes;
    if (random_.Below(4) < impatient_) At(now_ + random_.Below(slack_), kCancel, request->id);
    // Half of those with a deadline have somebody who waits and looks at the clock.
    if (request->deadline != BatchQueue::kNever && random_.Below(2) == 0) {
      At(request->deadline, kWaiterLooks, request->id);
    }
    WakeOne();
  }

  void WakeOne() {
    for (int i = 0; i < limits_.workers; ++i) {
      if (workers_[static_cast<size_t>(i)].busy) continue;
      return Look(i);
    }
  }

  // An idle worker looks for work.
  void Look(int index) {
    Worker& worker = workers_[static_cast<size_t>(index)];
    queue_.Take(index, now_, &worker.taken);
    for (const BatchQueue::Item& item : worker.taken.expired) {
      const Request& request = static_cast<const Request&>(*item);
      if (request.deadline > now_) Wrong("expired before its deadline");
      Answer(request.id, &sums_.expired);
    }
    if (worker.taken.batch.empty()) {
      if (worker.taken.look_again != BatchQueue::kNever) {
        if (worker.taken.look_again <= now_) Wrong("to look again at once is to spin");
        At(worker.taken.look_again, kLookAgain, index);
      }
      return;
    }
    worker.busy = true;
    worker.since = next_event_;
    worker.batch.clear();
    const int64_t share =
        std::max(limits_.share_tokens, (WaitingTokens() + limits_.workers - 1) / limits_.workers);
    int64_t tokens = 0, edges = 0;
    for (const BatchQueue::Item& item : worker.taken.batch) {
      if (tokens >= share) Wrong("a batch takes more than its share");
      Request& request = static_cast<Request&>(*item);
      tokens += request.tokens;
      edges += request.num_edges;
      CheckStart(&request);
      worker.batch.push_back(request.id);
      std::erase(waiting_, request.id);
    }
    ++sums_.batches;
    sums_.mates += static_cast<int64_t>(worker.batch.size());
    if (tokens > limits_.batch_tokens) Wrong("a batch has too many tokens");
    if (edges > limits_.batch_edges) Wrong("a batch has too many edges");
    if (static_cast<int64_t>(worker.batch.size()) > limits_.batch_sequences) {
      Wrong("a batch has too many sequences");
    }
    const Request* const next = CheckOrder(worker);
    if (next != nullptr && tokens < share && tokens + next->tokens <= limits_.batch_tokens &&
        edges + next->num_edges <= limits_.batch_edges &&
        static_cast<int64_t>(worker.batch.size()) < limits_.batch_sequences) {
      Wrong("a batch left a request behind that would have fitted");
    }
    const int64_t time = 1 + random_.Below(5) + tokens / 2 + (random_.Below(30) == 0 ? 300 : 0);
    At(now_ + time, kFinish, index * kRuns + ++runs_of_[index]);
    // What it left behind, after lingering, is for another.
    if (!waiting_.empty()) WakeOne();
  }

  void CheckStart(Request* request) {
    if (request->started_here) Wrong("started twice");
    if (request->answers > 0) Wrong("started after it was answered");
    if (request->deadline <= now_) Wrong("started after its deadline");
    request->started_here = true;
  }

  // Nothing that waits had a better right.
  const Request* CheckOrder(const Worker& worker) {
    const Request* next = nullptr;
    for (const int id : waiting_) {
      const Request& other = *requests_[static_cast<size_t>(id)];
      for (const int started : worker.batch) {
        if (Before(other, *requests_[static_cast<size_t>(started)])) {
          Wrong("one that came later started earlier");
        }
      }
      if (next == nullptr || Before(other, *next)) next = &other;
    }
    return next;
  }
  static bool Before(const Request& a, const Request& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.id < b.id;
  }

  void Finish(int code) {
    const int index = code / kRuns;
    Worker& worker = workers_[static_cast<size_t>(index)];
    if (!worker.busy || runs_of_[index] != code % kRuns) return;  // that run was stopped
    queue_.Finish(index, now_, &worker.finished);
    worker.busy = false;
    std::set<int> left;
    for (const int id : worker.batch) {
      held_bytes_ -= requests_[static_cast<size_t>(id)]->bytes;
      if (requests_[static_cast<size_t>(id)]->answers == 0) left.insert(id);
    }
    for (const auto& [items, late, sum] :
         {std::tuple{&worker.finished.answered, false, &sums_.done},
          std::tuple{&worker.finished.expired, true, &sums_.expired}}) {
      for (const BatchQueue::Item& item : *items) {
        const Request& request = static_cast<const Request&>(*item);
        if ((request.deadline <= now_) != late) Wrong("late is not what it should be");
        if (left.erase(request.id) == 0) Wrong("answered at the end of a batch it was not in");
        Answer(request.id, sum);
      }
    }
    if (!left.empty()) Wrong("a batch ended, and one of it was not answered");
    Look(index);
  }

  // A batch that nobody waits for ends within a layer.
  void StopIfLonely() {
    for (int i = 0; i < limits_.workers; ++i) {
      Worker& worker = workers_[static_cast<size_t>(i)];
      if (!worker.busy) continue;
      int64_t last = 0;
      for (const int id : worker.batch) {
        const Request& request = *requests_[static_cast<size_t>(id)];
        if (request.answers == 0) last = std::max(last, request.deadline);
      }
      if (queue_.StopAt(i) != last) Wrong("StopAt is not the last deadline of those that wait");
      if (queue_.StopAt(i) > now_) continue;
      ++sums_.stopped;
      At(now_ + 1, kFinish, i * kRuns + ++runs_of_[i]);
    }
  }

  void Close() {
    queue_.Close();
    closed_ = true;
    if (cancels_at_close_) {
      while (const BatchQueue::Item item = queue_.LeaveOne()) {
        Answer(static_cast<const Request&>(*item).id, &sums_.cancelled);
        if (!wrong_.empty()) return;
      }
      if (queue_.queued_requests() + queue_.running_requests() != 0) Wrong("not all have left");
      StopIfLonely();
    }
    for (int i = 0; i < limits_.workers; ++i) {
      if (!workers_[static_cast<size_t>(i)].busy) Look(i);
    }
  }

  void Answer(int id, int64_t* sum) {
    Request& request = *requests_[static_cast<size_t>(id)];
    ++*sum;
    if (!request.accepted) Wrong("answered, and was never accepted");
    if (++request.answers > 1) Wrong("answered twice");
    if (std::erase(waiting_, id) > 0) held_bytes_ -= request.bytes;
  }

  int64_t WaitingTokens() const {
    int64_t tokens = 0;
    for (const int id : waiting_) tokens += requests_[static_cast<size_t>(id)]->tokens;
    return tokens;
  }

  void CheckBooks() {
    if (queue_.queued_requests() != static_cast<int64_t>(waiting_.size())) {
      Wrong("the queue counts other requests");
    }
    if (queue_.queued_tokens() != WaitingTokens()) Wrong("the queue counts other tokens");
    if (queue_.bytes() != held_bytes_) Wrong("the queue counts other bytes");
    if (queue_.bytes() > limits_.bytes) Wrong("more bytes than allowed");
    const bool idle = std::any_of(workers_.begin(), workers_.end(),
                                  [](const Worker& worker) { return !worker.busy; });
    if (!idle) return;
    for (const int id : waiting_) {
      const Request& request = *requests_[static_cast<size_t>(id)];
      const int64_t age = now_ - request.submitted;
      if (closed_ || limits_.linger == 0 || age > limits_.linger) {
        Wrong("a request waits while a worker is idle");
      }
    }
  }

  void CheckEnd() {
    if (!queue_.idle()) Wrong("the queue is not idle at the end");
    if (queue_.bytes() != 0) Wrong("bytes are left at the end");
    for (const std::shared_ptr<Request>& request : requests_) {
      if (request->answers != int{request->accepted}) {
        Wrong("request " + std::to_string(request->id) + " was answered " +
              std::to_string(request->answers) + " times");
      }
    }
    if (queue_.counts().batches != sums_.batches || queue_.counts().sequences != sums_.mates) {
      Wrong("the queue counts other batches");
    }
  }

  // Time, order of making, kind, what.
  struct Events : std::set<std::tuple<int64_t, int64_t, Kind, int>> {
    void clear_arrivals() {
      std::erase_if(*this, [](const auto& event) { return std::get<2>(event) == kArrive; });
    }
  };
  static constexpr int kRuns = 1 << 20;

  Random random_;
  BatchQueue::Limits limits_;
  BatchQueue queue_;
  int64_t now_ = 0, next_event_ = 0;
  Events events_;
  std::vector<Worker> workers_;
  std::map<int, int> runs_of_;
  std::vector<std::shared_ptr<Request>> requests_;
  std::vector<int> waiting_;
  int64_t held_bytes_ = 0;
  int64_t pace_ = 1, slack_ = 1, impatient_ = 0, close_at_ = 0;
  bool cancels_at_close_ = false, closed_ = false;
  std::string wrong_;
  Sums sums_;
};

TEST(BatchQueue, TenThousandWorlds) {
  const char* const asked = std::getenv("ATTEND_SEEDS");
  const uint64_t seeds = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 10000;
  World::Sums all;
  int wrong = 0;
  for (uint64_t seed = 0; seed < seeds && wrong < 5; ++seed) {
    World world(seed);
    const std::string what = world.Run();
    EXPECT_EQ(what, "") << "seed " << seed;
    wrong += what.empty() ? 0 : 1;
    const World::Sums& sums = world.sums();
    all.accepted += sums.accepted;
    all.refused += sums.refused;
    all.done += sums.done;
    all.expired += sums.expired;
    all.cancelled += sums.cancelled;
    all.stopped += sums.stopped;
    all.batches += sums.batches;
    all.mates += sums.mates;
  }
  std::printf(
      "%lld accepted, %lld refused; %lld answered, %lld expired, %lld cancelled; "
      "%lld batches of %.2f, %lld stopped\n",
      static_cast<long long>(all.accepted), static_cast<long long>(all.refused),
      static_cast<long long>(all.done), static_cast<long long>(all.expired),
      static_cast<long long>(all.cancelled), static_cast<long long>(all.batches),
      static_cast<double>(all.mates) / static_cast<double>(all.batches),
      static_cast<long long>(all.stopped));
  // Worlds in which nothing happens would prove nothing.
  for (const int64_t count : {all.refused, all.done, all.expired, all.cancelled, all.stopped}) {
    EXPECT_GT(count, static_cast<int64_t>(seeds));
  }
}

}  // namespace
}  // namespace attend
