// The inside of a Session: plan, memory, threads.
#ifndef ATTEND_ENGINE_SESSION_H_
#define ATTEND_ENGINE_SESSION_H_

#include <memory>
#include <vector>

#include "attend/attend.h"
#include "engine/model.h"
#include "engine/parallel.h"
#include "engine/plan.h"
#include "kernels/aligned.h"

namespace attend {

// What one thread has for itself.
struct ThreadMemory {
  AlignedFloats tile, panel, copy, scratch;
  std::vector<std::unique_ptr<LinearRunner>> runners;  // by kernel index
  std::vector<LinearRunner*> runner_table;
};

struct SessionData {
  std::shared_ptr<ModelData> model;
  SessionOptions options;
  Plan plan;
  std::unique_ptr<Threads> threads;
  Barrier barrier;
  MachineRates rates;

  AlignedFloats arena;
  AlignedFloats queries, keys, values;  // keys and values: of both states
  AlignedFloats shared_tile;
  AttentionState states[2];
  std::vector<ThreadMemory> thread_memory;
  int64_t column_tile_rows = kColumnTileRows;
  size_t memory_bytes = 0;

  // Of the batch that runs, sized at Create.
  std::vector<int32_t> positions, sequence_of;
  std::vector<int64_t> key_rows;
  std::vector<int32_t> edge_offsets, edge_keys;  // of models with edges
  std::vector<ThreadShare> shares;
  BatchView batch;
  Share share = Share::kAuto;
  int parts = 1;
};

// Fills `data->batch` from a batch that is right, or says what is wrong with it.
Status CheckBatch(const TokenBatch& batch, SessionData* data);
Status CheckBatch(const VectorBatch& batch, SessionData* data);

}  // namespace attend

#endif  // ATTEND_ENGINE_SESSION_H_
