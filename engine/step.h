// What a compiled plan consists of: values, steps, and what a step is given to run.
#ifndef ATTEND_ENGINE_STEP_H_
#define ATTEND_ENGINE_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/gemm.h"

namespace attend {

// Where the keys and values of an attention are.
enum class Memory {
  kBatch,   // those of the sequences of this run
  kCache,   // a key/value cache, filled by this run and those before
  kSource,  // another sequence each: an encoder's output, read by a decoder (cross-attention)
};
inline constexpr int kMemories = 3;

// The keys of one sequence in one memory: those that were there, and those that this run adds.
struct SequenceKeys {
  int64_t first_row = 0;            // rows of packed keys before the sequence's own
  const int32_t* blocks = nullptr;  // kCache: its block b is the blocks[b]-th of the memory
  int64_t count = 0;
};

// A batch that has been checked, with what the steps need to find their way in it.
struct BatchView {
  const int32_t* ids = nullptr;        // [T], or null
  const int32_t* type_ids = nullptr;   // [T], or null: all 0
  const float* vectors = nullptr;      // [T, input_size], or null
  const int32_t* offsets = nullptr;    // [B+1]
  const int32_t* positions = nullptr;  // [T]: the row's place in its sequence, cached rows counted
  const int32_t* sequence_of = nullptr;      // [T]
  const SequenceKeys* keys[kMemories] = {};  // [B] each; null: no step needs them
  // The graph of a model with edges, else null: row r sees the keys
  // edge_keys[edge_offsets[r] .. edge_offsets[r + 1]): positions in its own sequence, ascending,
  // each once.
  const int32_t* edge_offsets = nullptr;  // [T+1]
  const int32_t* edge_keys = nullptr;
  int64_t tokens = 0;     // T
  int64_t sequences = 0;  // B
};

// What the rows of a value stand for.
enum class Domain { kTokens, kSequences };

// An index into the plan's values.
struct Value {
  int id = -1;
};

// A row-wise intermediate [rows, width] f32. It lives in a tile; what a later segment or the caller
// reads lives in the arena at full length as well.
struct ValueInfo {
  std::string name;
  int64_t width = 0;
  Domain domain = Domain::kTokens;
  bool split = false;       // under the share by columns every thread computes some of the columns;
                            // otherwise every thread computes all of them for itself
  int segment = -1;         // where it is computed
  bool kept = false;        // has a place in the arena
  int64_t row_tile = 0;     // columns before it in a tile, shares by rows and sequences
  int64_t column_tile = 0;  // the same under the share by columns
  int64_t arena = 0;        // floats before it in the arena
};

// Packed keys, values and dense queries of all sequences: what an attention reads. Each has a
// state; of the batch's own there are two, which alternate.
struct AttentionState {
  float* q = nullptr;  // [T, H * A]
  float* k = nullptr;  // kernels/attention.h
  float* v = nullptr;
};

struct StateInfo {
  Memory memory = Memory::kBatch;
  int64_t query_columns = 0, key_columns = 0, value_columns = 0;  // of a row, all heads
};

// Everything that a step needs to run on one tile of rows.
struct StepContext {
  const BatchView* batch = nullptr;
  const ValueInfo* values = nullptr;
  int segment = 0;
  int64_t row_begin = 0;  // rows of the domain: tokens or sequences
  int64_t rows = 0;
  int64_t tile_rows = 0;    // capacity of the tile
  int part = 0, parts = 1;  // under the share by columns: which of how many; else 0 of 1
  bool by_columns = false;
  float* own_tile = nullptr;     // this thread's
  float* shared_tile = nullptr;  // everybody's under the share by columns, else own_tile
  float* arena = nullptr;
  const AttentionState* states = nullptr;
  LinearRunner* const* runners = nullptr;  // this thread's, by kernel index
  float* panel = nullptr;                  // [tile_rows, widest panel]
  float* copy = nullptr;                   // [tile_rows, widest input read from the arena]
  float* prepared = nullptr;  // [tile_rows, widest input of a GEMM of lower precision, prepared]
  float* scratch = nullptr;   // attention's

  // This thread's share [begin, end) of `count` things that are split.
  int64_t PartBegin(int64_t count) const { return count * part / parts; }
  int64_t PartEnd(int64_t count) const { return count * (part + 1) / parts; }

  // The rows of `value` in the tile, [tile_rows, width].
  float* Tile(Value value) const {
    const ValueInfo& info = values[value.id];
    if (!by_columns) return own_tile + info.row_tile * tile_rows;
    return (info.split ? shared_tile : own_tile) + info.column_tile * tile_rows;
  }
  // The rows of a kept value in the arena, [rows, width].
  float* Arena(Value value) const {
    const ValueInfo& info = values[value.id];
    return arena + info.arena + row_begin * info.width;
  }
  // Where to read the rows of `value`: [rows, width].
  const float* Read(Value value) const {
    return values[value.id].segment == segment ? Tile(value) : Arena(value);
  }
  // The same for a GEMM, which reads a few rows more than there are: in a tile they are ours, in
  // the arena somebody's, so that what lies there is copied first.
  const float* ReadPadded(Value value) const;
  int64_t width(Value value) const { return values[value.id].width; }

  // Stores columns [begin, end) of a value that was computed in the tile, if it is kept. Of what
  // every thread has computed for itself each stores some rows.
  void Keep(Value value, int64_t begin, int64_t end) const;
};

// What a step costs, for the rule that picks the share and for Describe.
struct StepCost {
  double flops_per_row = 0;
  double flop_rate = 1;       // how many of them take the time of one in f32
  double flops_per_pair = 0;  // attention: per query and key
  double weight_bytes = 0;
};

// What a step's time is counted as.
enum class WorkKind { kOther, kEmbedding, kAttention, kLinear, kPooling };

// One bound step. Run looks nothing up and allocates nothing.
class Step {
 public:
  virtual ~Step() = default;
  virtual void Run(const StepContext& context) const = 0;
  // "linear 384 -> 1536, gelu, oneDNN brg:avx512_core": for Describe.
  virtual std::string Describe() const = 0;
  virtual StepCost cost() const { return {}; }
  virtual WorkKind kind() const { return WorkKind::kOther; }
};

}  // namespace attend

#endif  // ATTEND_ENGINE_STEP_H_
