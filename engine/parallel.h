// The one door to threads: OpenMP, std::thread, serial, or the caller's executor.
#ifndef ATTEND_ENGINE_PARALLEL_H_
#define ATTEND_ENGINE_PARALLEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "attend/attend.h"
#include "attend/status.h"

namespace attend {

// A group of threads that runs one task at a time, every thread with its index.
class Threads {
 public:
  using Task = void (*)(void* argument, int index);

  // Errors: kInvalidArgument (num_threads outside 1 .. 1024), kUnsupported (a backend that this
  // build lacks), kCapacity (the system gives no thread).
  static Result<std::unique_ptr<Threads>> Create(ThreadBackend backend, int num_threads,
                                                 Executor* executor);
  virtual ~Threads() = default;

  // How many indices the next Run may use: fewer than asked for in a child after fork, where the
  // parent's threads are gone.
  virtual int Available() const = 0;

  // Calls task(argument, i) for i in [0, count), count <= Available(), all at the same time, index
  // 0 on the calling thread. oneDNN called inside runs on the calling thread alone.
  virtual void Run(int count, Task task, void* argument) = 0;

  virtual const char* name() const = 0;
};

// Makes oneDNN run on the calling thread alone while it lives, and puts the setting back. OpenMP
// keeps it per thread, so the host's other threads see nothing.
class OneOpenMpThread {
 public:
  OneOpenMpThread();
  ~OneOpenMpThread();
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

// A barrier for the threads of one run. Spins for a bounded while (about 20 us), then yields, then
// sleeps in the kernel, so that more threads than CPUs do not collapse.
class Barrier {
 public:
  // For `count` threads; call while nobody waits.
  void Reset(int count);
  // False if the barrier is broken: not all have come, and nobody need wait for them.
  bool Wait();
  // Sends away all who wait and all who will come, until Reset.
  void Break();
  int64_t waits() const { return waits_; }  // by all threads, since Reset

 private:
  int count_ = 1;
  std::atomic<int> arrived_{0};
  std::atomic<bool> broken_{false};
  alignas(64) std::atomic<uint32_t> phase_{0};
  int64_t waits_ = 0;
};

// Threads that live until they return: one call of `task` each. In a child after fork they are
// gone, and a crew that ends there is left as it is.
class ThreadCrew {
 public:
  ThreadCrew();
  ~ThreadCrew();  // joins
  ThreadCrew(const ThreadCrew&) = delete;
  ThreadCrew& operator=(const ThreadCrew&) = delete;

  // Starts threads 0 .. count-1, each of which calls task(argument, index) with oneDNN set to run
  // on the calling thread alone.
  // Errors: kCapacity (the system gives no thread); those that have started then run on.
  Status Start(int count, Threads::Task task, void* argument);
  // Waits until all tasks have returned.
  void Join();

 private:
  struct Members;
  std::unique_ptr<Members> members_;
};

// What AdviseThreads says, with the file system and the affinity given: for tests.
ThreadAdvice AdviseThreadsFrom(const std::string& root, int affinity_cpus);

}  // namespace attend

#endif  // ATTEND_ENGINE_PARALLEL_H_
