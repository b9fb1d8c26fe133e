// The tensors of a file held against its config.
#ifndef ATTEND_ENGINE_CONFIG_TENSORS_H_
#define ATTEND_ENGINE_CONFIG_TENSORS_H_

#include "attend/status.h"
#include "engine/config.h"

namespace attend {

// Whether the file has the tensors that `config`, which was checked, calls for, and no other.
// Errors: kCorrupt (missing, a wrong shape, a bad scale); kUnsupported (unknown, a wrong type).
Status CheckTensors(const ModelConfig& config, const FileView& file);

}  // namespace attend

#endif  // ATTEND_ENGINE_CONFIG_TENSORS_H_
