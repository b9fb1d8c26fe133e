// A compiled plan in its memory, and the threads' walk over it. Whatever runs a plan, runs it here.
#ifndef ATTEND_ENGINE_RUNNER_H_
#define ATTEND_ENGINE_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"
#include "engine/parallel.h"
#include "engine/plan.h"
#include "engine/share.h"
#include "engine/step_times.h"
#include "engine/trace_buffer.h"
#include "kernels/aligned.h"

namespace attend {

// Counts what is taken, and remembers whether all of it was there.
struct MemoryTally {
  size_t bytes = 0;
  bool ok = true;
  bool counts_only = false;  // nothing is taken
  void Take(int64_t floats, AlignedFloats* buffer);
  // Sizes a vector, which throws if there is no memory.
  template <typename T>
  void Size(int64_t count, std::vector<T>* vector) {
    bytes += static_cast<size_t>(count) * sizeof(T);
    if (!counts_only) vector->resize(static_cast<size_t>(count));
  }
};

// What bounds the runs of a plan.
struct PlanLimits {
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t keys = 0;  // that one query sees
};

// Packed keys and values of one attention state.
struct KeyMemory {
  AlignedFloats k, v;
};

// Takes keys and values of `rows` rows for every state.
void TakeStates(std::span<const StateInfo> infos, int64_t rows, std::vector<KeyMemory>* states,
                MemoryTally* tally);

class PlanRunner;

// Ends a run early. Its threads look at it before every tile, so a run ends within a layer.
struct StopSignal {
  const std::atomic<bool>* cancel = nullptr;      // set: stop
  const std::atomic<int64_t>* stop_at = nullptr;  // SteadyMicroseconds from which to stop; the
                                                  // largest: never
  std::atomic<bool> stopped{false};               // whether a thread saw it: no output is whole

  bool Asked();
};

// The steady clock.
int64_t SteadyMicroseconds();

// What one thread has for itself, whichever plan it runs.
struct WorkerMemory {
  AlignedFloats tile, panel, copy, prepared, scratch;
};

// The threads of a session. They serve its plans, one at a time.
struct Workers {
  // Takes the memory that the largest of `runners` needs.
  void Allocate(int num_threads, Share asked, std::span<const PlanRunner* const> runners,
                MemoryTally* tally);
  // Errors: as of Threads::Create.
  Status Start(ThreadBackend backend, Executor* executor);

  int count() const { return static_cast<int>(memory.size()); }
  // How many there are for the next run. The logger is told when that changes; allocates nothing.
  int Available();

  Share share = Share::kAuto;  // as asked for
  Logger* logger = nullptr;
  int told = 0;  // what Available said last; 0: nothing yet
  MachineRates rates;
  std::unique_ptr<Threads> threads;
  Barrier barrier;
  std::vector<WorkerMemory> memory;
  std::vector<ThreadShare> shares;
  AlignedFloats shared_tile;
  // Under the share by rows, of many rows: units [ends[i-1], ends[i]) that threads take in turn.
  std::vector<int64_t> unit_ends;
  size_t units = 0;
  alignas(64) std::atomic<int64_t> next_unit{0};
};

class PlanRunner {
 public:
  // Compiles `graph`, and takes the plan's own memory: arena, queries, keys and values of the
  // batch, and what every thread needs of oneDNN.
  // Errors: as CompilePlan; kInternal, kCapacity (oneDNN); memory: see `tally`.
  Status Create(Graph graph, const PlanLimits& limits, int num_threads, MemoryTally* tally);

  // How many states are in `memory`, and how wide they are.
  std::vector<StateInfo> StatesIn(Memory memory) const;
  // Where the states in `memory` are, in the order that the plan made them: for all but kBatch.
  void Attach(Memory memory, std::span<const KeyMemory> states);

  // Runs all of `batch`, which must be within the limits, or until `stop` says so. Returns how the
  // rows were shared.
  Share Run(const BatchView& batch, Workers* workers, StopSignal* stop = nullptr);

  // What Run left of an output; empty if the plan has none.
  std::span<const float> View(Value value, const BatchView& batch) const;

  const Plan& plan() const { return plan_; }
  const PlanLimits& limits() const { return limits_; }
  // Rows of packed keys that a batch may take: every sequence begins a block of its own.
  int64_t key_rows() const;
  int64_t column_tile_rows() const { return column_tile_rows_; }

  // From now on runs add their times to `times`, which has room for every thread of their Workers
  // and step of the plan; null: no longer. Not owned.
  void set_step_times(StepTimes* times) { step_times_ = times; }
  // What runs from now on is noted there (null: nowhere). Allocates.
  void set_trace(TraceBuffer* buffer);

 private:
  template <typename Clock>
  friend class Walk;
  Share Choose(const BatchView& batch, const Workers& workers, int parts);

  Plan plan_;
  PlanLimits limits_;
  int64_t column_tile_rows_ = kColumnTileRows;
  AlignedFloats arena_, queries_;
  std::vector<KeyMemory> batch_states_;  // at most 2
  std::vector<AttentionState> states_;
  std::vector<std::vector<std::unique_ptr<LinearRunner>>> runners_;  // by thread and kernel index
  std::vector<std::vector<LinearRunner*>> runner_tables_;
  std::vector<int64_t> keys_seen_;  // by sequence; of plans that look beyond their batch
  StepTimes* step_times_ = nullptr;
  PlanTrace trace_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_RUNNER_H_
