// A thread pool of the program's own, shared by two models. attend starts no thread.
#include <attend/text.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

namespace {

// The tasks of a run wait for each other, so a run gets all its threads at once or waits until it
// can. Runs of several Sessions take turns.
class Pool final : public attend::Executor {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  ~Pool() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // The pool's threads, and the one that calls Run.
  int concurrency() const override { return static_cast<int>(threads_.size()) + 1; }

  void Run(int n, void (*task)(void* argument, int index), void* argument) override {
    const std::lock_guard<std::mutex> turn(turn_);
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
    while (true) {
      changed_.wait(lock, [this] { return stop_ || next_ < end_; });
      if (stop_) return;
      const int index = next_++;
      lock.unlock();
      task_(argument_, index);
      lock.lock();
      if (--left_ == 0) changed_.notify_all();
    }
  }

  std::mutex turn_, mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  void (*task_)(void*, int) = nullptr;
  void* argument_ = nullptr;
  int next_ = 0, end_ = 0, left_ = 0;
  std::vector<std::thread> threads_;
};

template <typename Pipeline>
attend::Result<Pipeline> Load(const char* path, attend::Executor* pool) {
  attend::PipelineOptions options;
  options.session.executor = pool;
  options.session.num_threads = pool->concurrency();
  return Pipeline::Load(path, options);
}

}  // namespace

int main(int argc, char** argv) {
  Pool pool(1);  // outlives what uses it
  auto tagger = Load<attend::Tagger>(argc > 1 ? argv[1] : TAG_MODEL, &pool);
  auto classifier = Load<attend::Classifier>(argc > 2 ? argv[2] : SENTIMENT_MODEL, &pool);
  if (!tagger.ok() || !classifier.ok()) {
    const attend::Status& status = tagger.ok() ? classifier.status() : tagger.status();
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  const char* const text = "What a lovely film!";
  const attend::Result<attend::Tags> tags = tagger->Tag(text);
  const attend::Result<attend::Classification> opinion = classifier->Classify(text);
  if (!tags.ok() || !opinion.ok()) return 1;
  for (const attend::TaggedWord& word : tags->words) {
    std::printf("%s/%s ", word.text.c_str(), word.label.c_str());
  }
  std::printf("%s\n", opinion->label.c_str());
}
