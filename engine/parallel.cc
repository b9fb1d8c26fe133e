#include "engine/parallel.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace attend {
namespace {

class SerialThreads final : public Threads {
 public:
  int Available() const override { return 1; }
  void Run(int, Task task, void* argument) override {
    const OneOpenMpThread guard;
    task(argument, 0);
  }
  const char* name() const override { return "serial"; }
};

#ifdef ATTEND_WITH_OPENMP
// The process whose OpenMP teams are alive: not a child that was forked after the first Session.
pid_t OpenMpProcess() {
  static const pid_t process = getpid();
  return process;
}

class OpenMpThreads final : public Threads {
 public:
  explicit OpenMpThreads(int size) : size_(size) {}

  // libgomp's team does not survive fork: the child would wait for threads that are gone.
  // And inside a parallel region of the host's, or at its thread limit, a team would be smaller
  // than asked for: its threads would wait for some that never come.
  int Available() const override {
    if (getpid() != OpenMpProcess()) return 1;
    if (omp_get_active_level() >= omp_get_max_active_levels()) return 1;
    return std::min(size_, omp_get_thread_limit());
  }

  void Run(int count, Task task, void* argument) override {
    if (count == 1) {
      // A team of one is not "in parallel" for OpenMP, and oneDNN would start its own.
      const OneOpenMpThread guard;
      task(argument, 0);
      return;
    }
    const int dynamic = omp_get_dynamic();
    if (dynamic != 0) omp_set_dynamic(0);  // it would shrink the team on a busy machine
#pragma omp parallel num_threads(count)
    task(argument, omp_get_thread_num());
    if (dynamic != 0) omp_set_dynamic(dynamic);
  }
  const char* name() const override { return "OpenMP"; }

 private:
  int size_;
};
#endif

// A pool of attend's own: workers sleep between runs.
class PoolThreads final : public Threads {
 public:
  explicit PoolThreads(int size) : process_(getpid()) {
    pool_->workers.reserve(static_cast<size_t>(size - 1));
    try {
      for (int i = 1; i < size; ++i) {
        pool_->workers.emplace_back([pool = pool_.get(), i] { pool->Work(i); });
      }
    } catch (...) {
      Stop();  // those that have started
      throw;
    }
  }

  ~PoolThreads() override {
    if (getpid() != process_) {
      // The workers are not in this process. To destroy what they wait on would wait for them.
      static_cast<void>(pool_.release());
      return;
    }
    Stop();
  }

  int Available() const override {
    return getpid() == process_ ? static_cast<int>(pool_->workers.size()) + 1 : 1;
  }

  void Run(int count, Task task, void* argument) override {
    const OneOpenMpThread guard;
    if (count == 1) {
      task(argument, 0);
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(pool_->mutex);
      pool_->task = task;
      pool_->argument = argument;
      pool_->count = count;
      pool_->running = count - 1;
      ++pool_->generation;
    }
    pool_->wake.notify_all();
    task(argument, 0);
    std::unique_lock<std::mutex> lock(pool_->mutex);
    pool_->done.wait(lock, [this] { return pool_->running == 0; });
  }
  const char* name() const override { return "std::thread"; }

 private:
  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(pool_->mutex);
      pool_->stop = true;
      ++pool_->generation;
    }
    pool_->wake.notify_all();
    for (std::thread& worker : pool_->workers) worker.join();
  }

  struct Pool {
    std::mutex mutex;
    std::condition_variable wake, done;
    uint64_t generation = 0;
    bool stop = false;
    Task task = nullptr;
    void* argument = nullptr;
    int count = 0;
    int running = 0;
    std::vector<std::thread> workers;

    void Work(int index) {
      const OneOpenMpThread guard;
      uint64_t seen = 0;
      std::unique_lock<std::mutex> lock(mutex);
      while (true) {
        wake.wait(lock, [&] { return generation != seen; });
        seen = generation;
        if (stop) return;
        if (index >= count) continue;
        const Task my_task = task;
        void* const my_argument = argument;
        lock.unlock();
        my_task(my_argument, index);
        lock.lock();
        if (--running == 0) done.notify_one();
      }
    }
  };

  pid_t process_;
  std::unique_ptr<Pool> pool_ = std::make_unique<Pool>();
};

class ExecutorThreads final : public Threads {
 public:
  ExecutorThreads(Executor* executor, int size) : executor_(executor), size_(size) {}
  int Available() const override { return std::max(1, std::min(size_, executor_->concurrency())); }
  void Run(int count, Task task, void* argument) override {
    Call call{task, argument};
    if (count == 1) {
      Guarded(&call, 0);
    } else {
      executor_->Run(count, &Guarded, &call);
    }
  }
  const char* name() const override { return "executor"; }

 private:
  struct Call {
    Task task;
    void* argument;
  };
  static void Guarded(void* call, int index) {
    const OneOpenMpThread guard;
    static_cast<Call*>(call)->task(static_cast<Call*>(call)->argument, index);
  }
  Executor* executor_;
  int size_;
};

Status NoThreads(int count, const std::system_error& error) {
  return Status(ErrorCode::kCapacity,
                "the system gives no " + std::to_string(count) + " threads: " + error.what());
}

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

Result<std::unique_ptr<Threads>> Threads::Create(ThreadBackend backend, int num_threads,
                                                 Executor* executor) {
  if (num_threads < 1 || num_threads > 1024) {
    return Status(ErrorCode::kInvalidArgument,
                  "num_threads is " + std::to_string(num_threads) + ", allowed are 1 to 1024",
                  "SessionOptions");
  }
  if (executor != nullptr) {
    return std::unique_ptr<Threads>(new ExecutorThreads(executor, num_threads));
  }
  if (backend == ThreadBackend::kSerial) return std::unique_ptr<Threads>(new SerialThreads);
#ifdef ATTEND_WITH_OPENMP
  if (backend != ThreadBackend::kThread && getpid() == OpenMpProcess()) {
    return std::unique_ptr<Threads>(new OpenMpThreads(num_threads));
  }
#else
  if (backend == ThreadBackend::kOpenMp) {
    return Status(ErrorCode::kUnsupported, "attend was built without OpenMP", "SessionOptions",
                  "use the default backend, or build with ATTEND_OPENMP=ON");
  }
#endif
  try {
    return std::unique_ptr<Threads>(new PoolThreads(num_threads));
  } catch (const std::system_error& error) {
    return NoThreads(num_threads, error);
  }
}

OneOpenMpThread::OneOpenMpThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

OneOpenMpThread::~OneOpenMpThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

struct ThreadCrew::Members {
  pid_t process = getpid();
  std::vector<std::thread> threads;
};

ThreadCrew::ThreadCrew() : members_(std::make_unique<Members>()) {}

ThreadCrew::~ThreadCrew() { Join(); }

Status ThreadCrew::Start(int count, Threads::Task task, void* argument) {
  members_->threads.reserve(static_cast<size_t>(count));
  try {
    for (int i = 0; i < count; ++i) {
      members_->threads.emplace_back([task, argument, i] {
        const OneOpenMpThread guard;
        task(argument, i);
      });
    }
  } catch (const std::system_error& error) {
    return NoThreads(count, error);
  }
  return Status();
}

void ThreadCrew::Join() {
  if (members_ == nullptr) return;
  if (getpid() != members_->process) {
    static_cast<void>(members_.release());  // a thread that is gone cannot be joined
    return;
  }
  for (std::thread& thread : members_->threads) thread.join();
  members_->threads.clear();
}

void Barrier::Reset(int count) {
  broken_.store(false, std::memory_order_relaxed);
  count_ = count;
  arrived_.store(0, std::memory_order_relaxed);
  waits_ = 0;
}

void Barrier::Break() {
  broken_.store(true, std::memory_order_relaxed);
  phase_.fetch_add(1, std::memory_order_release);
  phase_.notify_all();
}

bool Barrier::Wait() {
  if (count_ == 1) return true;
  // Whoever sees the phase of a break sees the break.
  const auto whole = [this] { return !broken_.load(std::memory_order_relaxed); };
  const uint32_t phase = phase_.load(std::memory_order_acquire);
  if (!whole()) return false;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
    arrived_.store(0, std::memory_order_relaxed);
    ++waits_;
    phase_.fetch_add(1, std::memory_order_acq_rel);  // and not a store: it keeps a break in sight
    phase_.notify_all();
    return whole();
  }
  // About 20 us of spinning covers the skew of a step; a thread that has lost its CPU is waited for
  // by giving ours away.
  for (int i = 0; i < 600; ++i) {
    if (phase_.load(std::memory_order_acquire) != phase) return whole();
    Pause();
  }
  for (int i = 0; i < 20; ++i) {
    if (phase_.load(std::memory_order_acquire) != phase) return whole();
    sched_yield();
  }
  while (phase_.load(std::memory_order_acquire) == phase) {
    phase_.wait(phase, std::memory_order_acquire);
  }
  return whole();
}

}  // namespace attend
