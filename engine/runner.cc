#include "engine/runner.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "engine/session_log.h"
#include "kernels/attention.h"
#include "kernels/isa.h"

namespace attend {
namespace {

// One run, for its threads.
struct PlanRun {
  PlanRunner* runner;
  Workers* workers;
  const BatchView* batch;
  Share share;
  int parts;
  StepTimes* times;
  const PlanTrace* trace;
  StopSignal* stop;  // or null
};

}  // namespace

// One thread's walk over the plan.
template <typename Clock>
class Walk {
 public:
  Walk(const PlanRun& run, int part, Clock clock)
      : run_(run),
        plan_(run.runner->plan_),
        mine_(run.workers->shares[part]),
        part_(part),
        clock_(clock) {
    const PlanRunner& runner = *run.runner;
    const WorkerMemory& memory = run.workers->memory[part];
    context_.batch = run.batch;
    context_.values = plan_.values.data();
    context_.arena = runner.arena_.data();
    context_.states = runner.states_.data();
    context_.runners = runner.runner_tables_[part].data();
    context_.own_tile = memory.tile.data();
    context_.panel = memory.panel.data();
    context_.copy = memory.copy.data();
    context_.prepared = memory.prepared.data();
    context_.scratch = memory.scratch.data();
  }

  // A thread that stops breaks the barrier, and so do all who would wait for it.
  void Run() {
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      const Segment& segment = plan_.segments[s];
      if (MustWait(segment, s) && !Wait()) return;
      context_.segment = static_cast<int>(s);
      clock_.Begins();
      if (!RunSegment(segment)) return;
      clock_.Ends(s);
    }
  }

 private:
  bool Wait() {
    const bool whole = run_.workers->barrier.Wait();
    clock_.Waited();
    return whole;
  }

  bool InUnits() const { return run_.workers->units > 0; }

  bool MustWait(const Segment& segment, size_t index) const {
    // Another thread may have had these rows in the segment before.
    if (InUnits() && index > 0) return true;
    switch (run_.share) {
      case Share::kRows:
        return segment.reads_state || segment.reads_sequence;
      case Share::kColumns:
        return segment.reads_sequence;
      default:
        return false;
    }
  }

  bool Stops() const {
    if (run_.stop == nullptr || !run_.stop->Asked()) return false;
    run_.workers->barrier.Break();
    return true;
  }

  // False if the run was stopped; so RunUnits and RunRows.
  bool RunSegment(const Segment& segment) {
    const bool by_columns = run_.share == Share::kColumns;
    if (segment.domain == Domain::kTokens) {
      if (InUnits()) return RunUnits(segment);
      return RunRows(segment, mine_.row_begin, mine_.row_end, by_columns);
    }
    if (by_columns) return RunRows(segment, 0, run_.batch->sequences, true);
    return RunRows(segment, mine_.sequence_begin, mine_.sequence_end, false);
  }

  // Takes units until there are none. A ticket is drawn for each, and by every thread one more that
  // tells it so: the tickets of the next segment begin behind those.
  bool RunUnits(const Segment& segment) {
    Workers& workers = *run_.workers;
    const int64_t units = static_cast<int64_t>(workers.units);
    while (true) {
      const int64_t unit =
          workers.next_unit.fetch_add(1, std::memory_order_relaxed) - first_ticket_;
      if (unit >= units) break;
      const int64_t begin = unit == 0 ? 0 : workers.unit_ends[unit - 1];
      if (!RunRows(segment, begin, workers.unit_ends[unit], false)) return false;
    }
    first_ticket_ += units + run_.parts;
    return true;
  }

  bool RunRows(const Segment& segment, int64_t begin, int64_t end, bool by_columns) {
    Workers& workers = *run_.workers;
    context_.by_columns = by_columns;
    context_.part = by_columns ? part_ : 0;
    context_.parts = by_columns ? run_.parts : 1;
    context_.tile_rows = by_columns ? run_.runner->column_tile_rows_ : kTileRows;
    context_.shared_tile = by_columns ? workers.shared_tile.data() : context_.own_tile;
    for (int64_t row = begin; row < end; row += context_.tile_rows) {
      if (Stops()) return false;
      // Others may still read what the last tile left in the shared one.
      if (by_columns && row > begin && !Wait()) return false;
      context_.row_begin = row;
      context_.rows = std::min(context_.tile_rows, end - row);
      for (const int i : segment.steps) {
        if (by_columns && plan_.column_barrier[i] && !Wait()) return false;
        plan_.steps[i]->Run(context_);
        clock_.Ran(i);
      }
    }
    return true;
  }

  const PlanRun& run_;
  const Plan& plan_;
  const ThreadShare& mine_;
  int part_;
  int64_t first_ticket_ = 0;
  StepContext context_;
  [[no_unique_address]] Clock clock_;
};

namespace {

void RunPart(void* argument, int part) {
  Walk<NoClock>(*static_cast<const PlanRun*>(argument), part, NoClock()).Run();
}

// Where a thread's times go; null: nowhere.
StepTimes::Thread* TimesOf(const PlanRun& run, int part) {
  return run.times == nullptr ? nullptr : &run.times->threads[static_cast<size_t>(part)];
}

void RunPartTimed(void* argument, int part) {
  const PlanRun& run = *static_cast<const PlanRun*>(argument);
  Walk<StepClock>(run, part, StepClock(TimesOf(run, part))).Run();
}

void RunPartTraced(void* argument, int part) {
  const PlanRun& run = *static_cast<const PlanRun*>(argument);
  Walk<TraceClock>(run, part, TraceClock(run.trace, TimesOf(run, part))).Run();
}

// A thread's tile, under whichever share needs the most.
int64_t TileFloats(const PlanRunner& runner) {
  const Plan& plan = runner.plan();
  return std::max(plan.row_tile_columns * kTileRows,
                  plan.own_column_tile_columns * runner.column_tile_rows());
}

}  // namespace

bool StopSignal::Asked() {
  bool asked = cancel != nullptr && cancel->load(std::memory_order_relaxed);
  if (!asked && stop_at != nullptr) {
    const int64_t at = stop_at->load(std::memory_order_relaxed);
    asked = at != std::numeric_limits<int64_t>::max() && SteadyMicroseconds() >= at;
  }
  if (asked) stopped.store(true, std::memory_order_relaxed);
  return asked;
}

int64_t SteadyMicroseconds() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since_start).count();
}

void MemoryTally::Take(int64_t floats, AlignedFloats* buffer) {
  bytes += static_cast<size_t>(floats) * sizeof(float);
  if (!ok || counts_only) return;
  *buffer = AlignedFloats(static_cast<size_t>(floats));
  ok = floats == 0 || buffer->data() != nullptr;
}

void TakeStates(std::span<const StateInfo> infos, int64_t rows, std::vector<KeyMemory>* states,
                MemoryTally* tally) {
  for (const StateInfo& info : infos) {
    KeyMemory& state = states->emplace_back();
    tally->Take(rows * info.key_columns, &state.k);
    tally->Take(rows * info.value_columns, &state.v);
  }
}

void Workers::Allocate(int num_threads, Share asked, std::span<const PlanRunner* const> runners,
                       MemoryTally* tally) {
  share = asked;
  rates = RatesOf(BoundIsa());
  int64_t tile = 0, panel = 0, copy = 0, prepared = 0, scratch = 0, shared = 0;
  for (const PlanRunner* runner : runners) {
    const Plan& plan = runner->plan();
    const int64_t rows = std::max(kTileRows, runner->column_tile_rows());
    tile = std::max(tile, TileFloats(*runner));
    panel = std::max(panel, plan.panel_columns * rows);
    copy = std::max(copy, plan.copy_columns * rows);
    prepared = std::max(prepared, plan.prepared_columns * rows);
    scratch = std::max(scratch, AttentionScratchFloats(runner->limits().keys));
    shared = std::max(shared, plan.shared_column_tile_columns * runner->column_tile_rows());
  }
  if (num_threads > 1 || asked == Share::kColumns) tally->Take(shared, &shared_tile);
  memory.resize(static_cast<size_t>(num_threads));
  tally->bytes += memory.size() * sizeof(WorkerMemory);
  tally->Size(num_threads, &shares);
  int64_t tokens = 0;
  for (const PlanRunner* runner : runners) tokens = std::max(tokens, runner->limits().tokens);
  tally->Size(static_cast<int64_t>(MostUnits(tokens, kTileRows)), &unit_ends);
  for (WorkerMemory& mine : memory) {
    tally->Take(tile, &mine.tile);
    tally->Take(panel, &mine.panel);
    tally->Take(copy, &mine.copy);
    tally->Take(prepared, &mine.prepared);
    tally->Take(scratch, &mine.scratch);
  }
}

Status Workers::Start(ThreadBackend backend, Executor* executor) {
  Result<std::unique_ptr<Threads>> made = Threads::Create(backend, count(), executor);
  if (!made.ok()) return made.status();
  threads = std::move(*made);
  return Status();
}

int Workers::Available() {
  const int available = std::min(threads->Available(), count());
  if (available != told) {
    const int before = std::exchange(told, available);
    TellThreadsOfRun(logger, available, before, count());
  }
  return available;
}

Status PlanRunner::Create(Graph graph, const PlanLimits& limits, int num_threads,
                          MemoryTally* tally) {
  Result<Plan> plan = CompilePlan(std::move(graph), limits.tokens, limits.sequences);
  if (!plan.ok()) return plan.status();
  plan_ = *std::move(plan);
  limits_ = limits;
  column_tile_rows_ = std::min(kColumnTileRows, RoundUp<int64_t>(limits.tokens, kTileRows));
  tally->bytes += plan_.table_bytes();
  tally->Take(plan_.arena_floats, &arena_);
  tally->Take(plan_.query_floats, &queries_);
  batch_states_.reserve(plan_.states.size());
  for (const StateInfo& info : plan_.states) {
    AttentionState state{.q = queries_.data()};
    if (info.memory == Memory::kBatch) {
      KeyMemory& keys = batch_states_.emplace_back();
      tally->Take(key_rows() * info.key_columns, &keys.k);
      tally->Take(key_rows() * info.value_columns, &keys.v);
      state.k = keys.k.data();
      state.v = keys.v.data();
    }
    states_.push_back(state);
  }
  runners_.resize(static_cast<size_t>(num_threads));
  runner_tables_.resize(static_cast<size_t>(num_threads));
  for (size_t thread = 0; thread < runners_.size(); ++thread) {
    for (const std::shared_ptr<const LinearKernel>& kernel : plan_.kernels) {
      Result<std::unique_ptr<LinearRunner>> runner = LinearRunner::Create(kernel);
      if (!runner.ok()) return runner.status();
      tally->bytes += (*runner)->bytes();
      runner_tables_[thread].push_back(runner->get());
      runners_[thread].push_back(std::move(*runner));
    }
  }
  const bool looks_beyond =
      std::any_of(plan_.states.begin(), plan_.states.end(),
                  [](const StateInfo& info) { return info.memory != Memory::kBatch; });
  if (looks_beyond) tally->Size(limits.sequences, &keys_seen_);
  return Status();
}

void PlanRunner::set_trace(TraceBuffer* buffer) {
  trace_ = PlanTrace();
  trace_.buffer = buffer;
  if (buffer == nullptr) return;
  trace_.wait = buffer->Name("wait");
  for (const std::unique_ptr<Step>& step : plan_.steps) {
    trace_.steps.push_back(buffer->Name(step->Describe()));
  }
  for (const std::string& name : plan_.SegmentNames()) {
    trace_.segments.push_back(buffer->Name(name));
  }
}

int64_t PlanRunner::key_rows() const {
  return (limits_.tokens + limits_.sequences * (kKeyBlock - 1)) / kKeyBlock * kKeyBlock;
}

std::vector<StateInfo> PlanRunner::StatesIn(Memory memory) const {
  std::vector<StateInfo> found;
  for (const StateInfo& info : plan_.states) {
    if (info.memory == memory) found.push_back(info);
  }
  return found;
}

void PlanRunner::Attach(Memory memory, std::span<const KeyMemory> states) {
  size_t next = 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (plan_.states[i].memory != memory) continue;
    states_[i].k = states[next].k.data();
    states_[i].v = states[next].v.data();
    ++next;
  }
}

Share PlanRunner::Choose(const BatchView& batch, const Workers& workers, int parts) {
  if (workers.share != Share::kAuto) return workers.share;
  const std::span<const int32_t> offsets(batch.offsets, static_cast<size_t>(batch.sequences) + 1);
  std::span<const int64_t> seen;
  int64_t attentions = 0;
  for (const int64_t count : plan_.attentions) attentions += count;
  if (!keys_seen_.empty() && attentions > 0) {
    for (int64_t b = 0; b < batch.sequences; ++b) {
      int64_t keys = 0;
      for (int m = 0; m < kMemories; ++m) {
        if (plan_.attentions[m] > 0) keys += plan_.attentions[m] * batch.keys[m][b].count;
      }
      keys_seen_[b] = keys / attentions;
    }
    seen = std::span<const int64_t>(keys_seen_).first(static_cast<size_t>(batch.sequences));
  }
  return ChooseShare(plan_.costs, workers.rates, offsets, parts, seen);
}

Share PlanRunner::Run(const BatchView& batch, Workers* workers, StopSignal* stop) {
  const int parts = workers->Available();
  const Share share = Choose(batch, *workers, parts);
  CutShares(share, {batch.offsets, static_cast<size_t>(batch.sequences) + 1}, parts,
            workers->shares);
  workers->units = share != Share::kRows
                       ? 0
                       : CutUnits({batch.offsets, static_cast<size_t>(batch.sequences) + 1}, parts,
                                  kTileRows, workers->unit_ends);
  workers->next_unit.store(0, std::memory_order_relaxed);
  workers->barrier.Reset(parts);
  PlanRun run{this, workers, &batch, share, parts, step_times_, &trace_, stop};
  workers->threads->Run(parts,
                        trace_.buffer != nullptr ? &RunPartTraced
                        : step_times_ != nullptr ? &RunPartTimed
                                                 : &RunPart,
                        &run);
  return share;
}

std::span<const float> PlanRunner::View(Value value, const BatchView& batch) const {
  if (value.id < 0) return {};
  const ValueInfo& info = plan_.values[value.id];
  const int64_t rows = info.domain == Domain::kTokens ? batch.tokens : batch.sequences;
  return {arena_.data() + info.arena, static_cast<size_t>(rows * info.width)};
}

}  // namespace attend
