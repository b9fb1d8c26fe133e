// The inside of a Session: plan, memory, threads.
#ifndef ATTEND_ENGINE_SESSION_H_
#define ATTEND_ENGINE_SESSION_H_

#include <memory>
#include <vector>

#include "attend/attend.h"
#include "engine/attention_recorder.h"
#include "engine/model.h"
#include "engine/runner.h"
#include "engine/telemetry.h"

namespace attend {

// What of a BatchView is filled in for the caller's sequences.
struct BatchArrays {
  void Size(int64_t tokens, int64_t sequences, MemoryTally* tally);
  // Sets `view` to the sequences that `offsets` cut, whole, with keys of their own.
  void Fill(std::span<const int32_t> offsets, BatchView* view);

  std::vector<int32_t> positions, sequence_of;
  std::vector<SequenceKeys> keys;
};

// The decoder of an encoder-decoder, all of whose tokens are given.
struct SessionDecoder {
  PlanRunner runner;
  std::vector<KeyMemory> source;  // keys and values of the encoder's output, by layer
  BatchArrays arrays;
  BatchView batch;
};

struct SessionData {
  std::shared_ptr<ModelData> model;
  SessionOptions options;
  Workers workers;
  PlanRunner runner;
  std::unique_ptr<SessionDecoder> decoder;
  std::unique_ptr<AttentionRecorder> recorder;  // of an AttentionMap, else null
  size_t memory_bytes = 0;
  struct {
    TraceBuffer* buffer = nullptr;
    int32_t run = 0;                            // a name
  } trace;                                      // of SessionOptions::trace
  std::unique_ptr<SessionTelemetry> telemetry;  // if it was asked for

  // Of the batch that runs, sized at Create.
  BatchArrays arrays;
  std::vector<int32_t> edge_offsets, edge_keys;  // of models with edges
  BatchView batch;
};

// What a batch is held against.
struct BatchRules {
  const ModelConfig& config;
  const SessionOptions& options;  // of a Session's data: nothing is left open
};

// What is wrong with a batch, if anything: says where.
Status CheckBatch(const TokenBatch& batch, const BatchRules& rules);
Status CheckBatch(const VectorBatch& batch, const BatchRules& rules);

// Session::Run, until `stop` says so. Errors: also kCancelled (it was stopped).
Result<Output> RunUntil(const TokenBatch& batch, StopSignal* stop, SessionData* data);
Result<Output> RunUntil(const VectorBatch& batch, StopSignal* stop, SessionData* data);

// Fills `data->batch` from a batch that is right, or says what is wrong with it.
Status CheckBatch(const TokenBatch& batch, SessionData* data);
Status CheckBatch(const VectorBatch& batch, SessionData* data);

}  // namespace attend

#endif  // ATTEND_ENGINE_SESSION_H_
