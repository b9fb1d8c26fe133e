// The inside of a Model: the file, what it says, and the weights packed from it so far.
#ifndef ATTEND_ENGINE_MODEL_H_
#define ATTEND_ENGINE_MODEL_H_

#include <memory>
#include <utility>

#include "attend/attend.h"
#include "engine/config.h"
#include "engine/format.h"
#include "engine/weights.h"

namespace attend {

struct ModelData {
  // `view` is of `file_bytes`, which may move: what it owns stays where it is.
  ModelData(FileBytes file_bytes, FileView view) : bytes(std::move(file_bytes)), file(view) {}

  FileBytes bytes;
  FileView file;
  ModelConfig config;
  ModelInfo info;
  std::unique_ptr<WeightCache> weights;  // filled when a Session first needs it, under its lock
};

}  // namespace attend

#endif  // ATTEND_ENGINE_MODEL_H_
