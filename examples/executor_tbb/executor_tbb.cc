// attend on the threads of a TBB arena. TBB promises that tasks are run, not that they run at the
// same time, and attend's wait for each other: so each run asks how many of its threads have come,
// and shares its tasks among those.
#include <attend/text.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>

namespace {

// Workers of an arena that have been called stay with the run until it ends. concurrency() says how
// many are there.
class ArenaExecutor final : public attend::Executor {
 public:
  // Asks `arena` for `threads` threads, and keeps those that come as long as this lives.
  ArenaExecutor(tbb::task_arena* arena, int threads) {
    for (int i = 1; i < threads; ++i) {
      ++asked_;
      arena->enqueue([this] { Work(); });
    }
  }

  ~ArenaExecutor() override {
    std::unique_lock<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return asked_ == 0; });
  }

  int concurrency() const override { return here_ + 1; }

  void Run(int n, void (*task)(void* argument, int index), void* argument) override {
    const std::lock_guard<std::mutex> turn(turn_);  // runs of several Sessions take turns
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      task_ = task;
      argument_ = argument;
      next_ = 1;
      end_ = n;
      left_ = n - 1;
    }
    changed_.notify_all();
    task(argument, 0);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++here_;
    while (true) {
      changed_.wait(lock, [this] { return stop_ || next_ < end_; });
      if (stop_) break;
      const int index = next_++;
      lock.unlock();
      task_(argument_, index);
      lock.lock();
      if (--left_ == 0) changed_.notify_all();
    }
    --here_;
    --asked_;
    changed_.notify_all();
  }

  std::mutex turn_, mutex_;
  std::condition_variable changed_;
  std::atomic<int> here_{0};
  int asked_ = 0;
  bool stop_ = false;
  void (*task_)(void*, int) = nullptr;
  void* argument_ = nullptr;
  int next_ = 0, end_ = 0, left_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  tbb::task_arena arena(2);
  ArenaExecutor executor(&arena, 2);
  attend::PipelineOptions options;
  options.session.executor = &executor;
  options.session.num_threads = 2;
  attend::Result<attend::Tagger> tagger =
      attend::Tagger::Load(argc > 1 ? argv[1] : TAG_MODEL, options);
  if (!tagger.ok()) {
    std::fprintf(stderr, "%s\n", tagger.status().ToString().c_str());
    return 1;
  }
  const attend::Result<attend::Tags> tags = tagger->Tag("I saw a saw");
  if (!tags.ok()) return 1;
  for (const attend::TaggedWord& word : tags->words) {
    std::printf("%s/%s ", word.text.c_str(), word.label.c_str());
  }
  std::printf("\n");
}
