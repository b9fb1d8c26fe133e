// Whether the fields of a config combine.
#ifndef ATTEND_ENGINE_CONFIG_CHECK_H_
#define ATTEND_ENGINE_CONFIG_CHECK_H_

#include "attend/status.h"
#include "engine/config.h"

namespace attend {

// Of a config whose fields are each in their range. Errors: kInvalidArgument naming the field.
Status CheckFields(const ModelConfig& config);

}  // namespace attend

#endif  // ATTEND_ENGINE_CONFIG_CHECK_H_
