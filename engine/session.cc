// Create compiles and takes memory; Run checks the batch, shares its rows, and lets every thread
// walk the plan over its share.
#include "engine/session.h"

#include <algorithm>
#include <string>

#include "engine/models/models.h"
#include "kernels/attention.h"
#include "kernels/isa.h"

namespace attend {
namespace {

Status CheckOptions(const SessionOptions& options) {
  const auto in_range = [](int64_t value, int64_t low, int64_t high, const char* name) {
    if (value >= low && value <= high) return Status();
    return Status(ErrorCode::kInvalidArgument,
                  std::string(name) + " is " + std::to_string(value) + ", allowed are " +
                      std::to_string(low) + " to " + std::to_string(high),
                  "SessionOptions");
  };
  ATTEND_RETURN_IF_ERROR(in_range(options.num_threads, 0, 1024, "num_threads"));
  ATTEND_RETURN_IF_ERROR(in_range(options.max_tokens, 1, 1 << 22, "max_tokens"));
  ATTEND_RETURN_IF_ERROR(in_range(options.max_sequences, 1, 1 << 20, "max_sequences"));
  ATTEND_RETURN_IF_ERROR(in_range(options.max_edges, 0, INT32_MAX, "max_edges"));
  // An enum may come from a caller's integer.
  ATTEND_RETURN_IF_ERROR(in_range(static_cast<int64_t>(options.precision), 0, 3, "precision"));
  ATTEND_RETURN_IF_ERROR(in_range(static_cast<int64_t>(options.backend), 0, 3, "backend"));
  return in_range(static_cast<int64_t>(options.share), 0, 3, "share");
}

Status CheckPrecision(Precision asked, const ModelInfo& info) {
  const Precision precision = asked == Precision::kFile ? info.precision : asked;
  if (precision == Precision::kF32) return Status();
  return Status(ErrorCode::kUnsupported,
                std::string("precision ") + Name(precision) + " is not run by this build",
                "SessionOptions", "use Precision::kF32");
}

// How many edges a run may bring, if the model takes any.
int32_t MaxEdges(const SessionOptions& options, const ModelConfig& config) {
  if (!config.edges) return 0;
  if (options.max_edges > 0) return options.max_edges;
  const int64_t tokens = options.max_tokens;
  const int64_t usual = std::max(int64_t{1} << 22, 64 * tokens);
  return static_cast<int32_t>(std::min(tokens * tokens, usual));
}

bool Allocate(size_t floats, AlignedFloats* buffer, size_t* total) {
  *total += floats * sizeof(float);
  *buffer = AlignedFloats(floats);
  return floats == 0 || buffer->data() != nullptr;
}

// One thread's walk over the plan.
class Walk {
 public:
  Walk(SessionData& data, int part)
      : data_(data), plan_(data.plan), mine_(data.shares[part]), part_(part) {
    const ThreadMemory& memory = data.thread_memory[part];
    context_.batch = &data.batch;
    context_.values = plan_.values.data();
    context_.arena = data.arena.data();
    context_.states = data.states;
    context_.runners = memory.runner_table.data();
    context_.own_tile = memory.tile.data();
    context_.panel = memory.panel.data();
    context_.copy = memory.copy.data();
    context_.scratch = memory.scratch.data();
  }

  void Run() {
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      const Segment& segment = plan_.segments[s];
      if (MustWait(segment)) data_.barrier.Wait();
      context_.segment = static_cast<int>(s);
      if (segment.domain == Domain::kSequences) {
        RunRows(segment, mine_.sequence_begin, mine_.sequence_end, false);
      } else {
        RunRows(segment, mine_.row_begin, mine_.row_end, data_.share == Share::kColumns);
      }
    }
  }

 private:
  bool MustWait(const Segment& segment) const {
    switch (data_.share) {
      case Share::kRows:
        return segment.reads_state || segment.reads_sequence;
      case Share::kColumns:
        return segment.reads_sequence;
      default:
        return false;
    }
  }

  void RunRows(const Segment& segment, int64_t begin, int64_t end, bool by_columns) {
    context_.by_columns = by_columns;
    context_.part = by_columns ? part_ : 0;
    context_.parts = by_columns ? data_.parts : 1;
    context_.tile_rows = by_columns ? data_.column_tile_rows : kTileRows;
    context_.shared_tile = by_columns ? data_.shared_tile.data() : context_.own_tile;
    for (int64_t row = begin; row < end; row += context_.tile_rows) {
      // Others may still read what the last tile left in the shared one.
      if (by_columns && row > begin) data_.barrier.Wait();
      context_.row_begin = row;
      context_.rows = std::min(context_.tile_rows, end - row);
      for (const int i : segment.steps) {
        if (by_columns && plan_.column_barrier[i]) data_.barrier.Wait();
        plan_.steps[i]->Run(context_);
      }
    }
  }

  SessionData& data_;
  const Plan& plan_;
  const ThreadShare& mine_;
  int part_;
  StepContext context_;
};

void RunPart(void* argument, int part) { Walk(*static_cast<SessionData*>(argument), part).Run(); }

Output MakeOutput(const SessionData& data) {
  const auto view = [&](Value value) {
    if (value.id < 0) return std::span<const float>();
    const ValueInfo& info = data.plan.values[value.id];
    const int64_t rows = info.domain == Domain::kTokens ? data.batch.tokens : data.batch.sequences;
    return std::span<const float>(data.arena.data() + info.arena,
                                  static_cast<size_t>(rows * info.width));
  };
  Output output;
  output.hidden = view(data.plan.hidden);
  output.pooled = view(data.plan.pooled);
  output.logits = view(data.plan.logits);
  output.share = data.share;
  return output;
}

Result<Output> RunBatch(SessionData& data) {
  const std::span<const int32_t> offsets(data.batch.offsets,
                                         static_cast<size_t>(data.batch.sequences) + 1);
  data.parts = std::min(data.threads->Available(), static_cast<int>(data.thread_memory.size()));
  data.share = data.options.share != Share::kAuto
                   ? data.options.share
                   : ChooseShare(data.plan.costs, data.rates, offsets, data.parts);
  CutShares(data.share, offsets, data.parts, data.shares);
  data.barrier.Reset(data.parts);
  data.threads->Run(data.parts, &RunPart, &data);
  return MakeOutput(data);
}

Result<std::unique_ptr<SessionData>> Compile(const Model& model, SessionOptions options) {
  ATTEND_RETURN_IF_ERROR(CheckOptions(options));
  ATTEND_RETURN_IF_ERROR(CheckPrecision(options.precision, model.info()));
  if (options.num_threads == 0) options.num_threads = AdviseThreads().num_threads;
  auto data = std::make_unique<SessionData>();
  data->model = model.shared();
  data->options = options;
  data->options.max_edges = MaxEdges(options, data->model->config);
  data->rates = RatesOf(BoundIsa());
  Graph graph(data->model->config, data->model->weights.get(), options.max_tokens);
  ATTEND_RETURN_IF_ERROR(BuildGraph(graph));
  Result<Plan> plan = CompilePlan(std::move(graph), options.max_tokens, options.max_sequences);
  if (!plan.ok()) return plan.status();
  data->plan = std::move(*plan);
  return data;
}

// The memory of one thread, and its size.
bool AllocateThread(const SessionData& data, int64_t scratch_floats, ThreadMemory* memory,
                    size_t* total) {
  const Plan& plan = data.plan;
  const int64_t tile_rows = std::max(kTileRows, data.column_tile_rows);
  const int64_t tile = std::max(plan.row_tile_columns * kTileRows,
                                plan.own_column_tile_columns * data.column_tile_rows);
  return Allocate(static_cast<size_t>(tile), &memory->tile, total) &&
         Allocate(static_cast<size_t>(plan.panel_columns * tile_rows), &memory->panel, total) &&
         Allocate(static_cast<size_t>(plan.copy_columns * tile_rows), &memory->copy, total) &&
         Allocate(static_cast<size_t>(scratch_floats), &memory->scratch, total);
}

// Takes all memory that the plan and the options call for.
Status AllocateSession(SessionData* data) {
  const Plan& plan = data->plan;
  const SessionOptions& options = data->options;
  data->column_tile_rows =
      std::min(kColumnTileRows, RoundUp<int64_t>(options.max_tokens, kTileRows));
  size_t total = sizeof(SessionData) + plan.table_bytes();
  bool ok =
      Allocate(static_cast<size_t>(plan.arena_floats), &data->arena, &total) &&
      Allocate(static_cast<size_t>(plan.query_floats), &data->queries, &total) &&
      Allocate(static_cast<size_t>(plan.key_floats * plan.num_states), &data->keys, &total) &&
      Allocate(static_cast<size_t>(plan.value_floats * plan.num_states), &data->values, &total);
  if (options.num_threads > 1 || options.share == Share::kColumns) {
    ok = ok &&
         Allocate(static_cast<size_t>(plan.shared_column_tile_columns * data->column_tile_rows),
                  &data->shared_tile, &total);
  }
  for (int64_t i = 0; i < plan.num_states; ++i) {
    data->states[i] = {data->queries.data(), data->keys.data() + i * plan.key_floats,
                       data->values.data() + i * plan.value_floats};
  }
  const int64_t max_keys = LongestSequence(data->model->config, options.max_tokens);
  data->thread_memory = std::vector<ThreadMemory>(static_cast<size_t>(options.num_threads));
  for (ThreadMemory& memory : data->thread_memory) {
    ok = ok && AllocateThread(*data, AttentionScratchFloats(max_keys), &memory, &total);
    for (const std::shared_ptr<const LinearKernel>& kernel : plan.kernels) {
      Result<std::unique_ptr<LinearRunner>> runner = LinearRunner::Create(kernel);
      if (!runner.ok()) return runner.status();
      total += (*runner)->bytes();
      memory.runner_table.push_back(runner->get());
      memory.runners.push_back(std::move(*runner));
    }
  }
  if (!ok) {
    return Status(ErrorCode::kCapacity,
                  "no memory for a session of " + std::to_string(total) + " bytes",
                  "SessionOptions", "lower max_tokens or max_sequences");
  }
  data->positions.resize(static_cast<size_t>(options.max_tokens));
  data->sequence_of.resize(static_cast<size_t>(options.max_tokens));
  data->key_rows.resize(static_cast<size_t>(options.max_sequences));
  data->shares.resize(static_cast<size_t>(options.num_threads));
  total += data->positions.size() * 8 + data->key_rows.size() * 8 +
           data->shares.size() * sizeof(ThreadShare);
  if (data->model->config.edges) {
    data->edge_offsets.resize(static_cast<size_t>(options.max_tokens) + 1);
    data->edge_keys.resize(static_cast<size_t>(options.max_edges));
    total += (data->edge_offsets.size() + data->edge_keys.size()) * sizeof(int32_t);
  }
  data->memory_bytes = total;
  return Status();
}

}  // namespace

Result<Session> Session::Create(const Model& model, const SessionOptions& options) {
  try {
    const OneOpenMpThread guard;  // primitives are made as they will run
    Result<std::unique_ptr<SessionData>> data = Compile(model, options);
    if (!data.ok()) return data.status();
    ATTEND_RETURN_IF_ERROR(AllocateSession(data->get()));
    Result<std::unique_ptr<Threads>> threads =
        Threads::Create(options.backend, (*data)->options.num_threads, options.executor);
    if (!threads.ok()) return threads.status();
    (*data)->threads = std::move(*threads);
    return Session(std::move(*data));
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "no memory for the session", "Session::Create");
  }
}

Result<size_t> Session::PredictMemoryBytes(const Model& model, const SessionOptions& options) {
  Result<Session> session = Create(model, options);
  if (!session.ok()) return session.status();
  return session->memory_bytes();
}

Session::Session(std::unique_ptr<SessionData> data) : data_(std::move(data)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Output> Session::Run(const TokenBatch& batch) {
  ATTEND_RETURN_IF_ERROR(CheckBatch(batch, data_.get()));
  return RunBatch(*data_);
}

Result<Output> Session::Run(const VectorBatch& batch) {
  ATTEND_RETURN_IF_ERROR(CheckBatch(batch, data_.get()));
  return RunBatch(*data_);
}

size_t Session::memory_bytes() const { return data_->memory_bytes; }
size_t Session::weight_bytes() const { return data_->model->weights->packed_bytes(); }
int Session::num_threads() const { return static_cast<int>(data_->thread_memory.size()); }

std::string Session::Describe() const {
  return std::string("ISA ") + IsaName(BoundIsa()) + ", " + std::to_string(num_threads()) +
         " threads by " + data_->threads->name() + ", " + std::to_string(memory_bytes()) +
         " bytes, weights " + std::to_string(weight_bytes()) + " bytes\n" + data_->plan.Describe();
}

}  // namespace attend
