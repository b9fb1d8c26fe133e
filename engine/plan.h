// A compiled model: segments of bound steps, and where every value lives.
#ifndef ATTEND_ENGINE_PLAN_H_
#define ATTEND_ENGINE_PLAN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attend/status.h"
#include "engine/graph.h"
#include "engine/share.h"
#include "engine/step.h"

namespace attend {

// Rows that pass all steps of a segment together. 64 rows of MiniLM's feed-forward block are 393
// KB.
inline constexpr int64_t kTileRows = 64;
// Under the share by columns a tile belongs to all threads, and a panel of weights serves all of
// it.
inline constexpr int64_t kColumnTileRows = 256;

// Consecutive steps that need nothing of other rows; the first may look at all rows of its
// sequence.
struct Segment {
  Domain domain = Domain::kTokens;
  bool reads_state = false;     // begins with attention: keys and values must be complete
  bool reads_sequence = false;  // begins with pooling: the rows must be complete
  std::vector<int> steps = {};  // indices into Plan::steps
};

struct Plan {
  std::vector<std::unique_ptr<Step>> steps;
  std::vector<bool> column_barrier;  // by step: under the share by columns, wait before it
  std::vector<int64_t> row_columns;  // by step: floats that it reads and writes of a row; attention
                                     // reads keys and values beyond that
  std::vector<Segment> segments;
  std::vector<ValueInfo> values;
  std::vector<std::shared_ptr<const LinearKernel>> kernels;
  std::map<std::string, std::vector<float>> tables;  // that steps share
  Value hidden, pooled, logits;

  int64_t row_tile_columns = 0;            // a thread's tile is this times kTileRows floats
  int64_t own_column_tile_columns = 0;     // by columns, a thread's: times its tile rows
  int64_t shared_column_tile_columns = 0;  // by columns, everybody's
  int64_t arena_floats = 0;                // values
  int64_t query_floats = 0;                // Q, of one state after the other
  std::vector<StateInfo> states;
  int64_t attentions[kMemories] = {};  // how many read each memory
  int64_t panel_columns = 0;           // the widest panel
  int64_t copy_columns = 0;            // the widest input of a GEMM that is read from the arena
  int64_t prepared_columns = 0;        // the widest that is rounded or quantised before a GEMM
  PlanCosts costs;

  size_t table_bytes() const;
  // A line per step.
  std::string Describe() const;
  // "input", "layer 1", "layer 2", "pooling", by segment.
  std::vector<std::string> SegmentNames() const;
};

// Cuts the graph into segments and lays out memory for at most `max_tokens` and `max_sequences`.
Result<Plan> CompilePlan(Graph graph, int64_t max_tokens, int64_t max_sequences);

}  // namespace attend

#endif  // ATTEND_ENGINE_PLAN_H_
