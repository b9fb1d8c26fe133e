// What a Session, or a DecodeSession, tells its Logger of itself.
#ifndef ATTEND_ENGINE_SESSION_LOG_H_
#define ATTEND_ENGINE_SESSION_LOG_H_

#include <cstddef>
#include <string>

#include "attend/attend.h"
#include "engine/log.h"

namespace attend {

struct ModelData;
struct Workers;

struct MadeSession {
  const ModelData& model;
  Precision precision;  // as asked for,
  int num_threads;      // and this
  size_t memory_bytes;
  std::string limits;  // "512 tokens in 64 sequences"
};

// Instruction set, precision, threads and memory, each with what was asked for or why it is so.
// From now on `workers` tell the logger too.
void TellSession(Logger* logger, const MadeSession& made, Workers* workers);

// A run gets `available` of `count` threads; the one before got `before` (0: it is the first).
// Allocates nothing.
void TellThreadsOfRun(Logger* logger, int available, int before, int count);

}  // namespace attend

#endif  // ATTEND_ENGINE_SESSION_LOG_H_
