// The models that come with attend, found from the build tree and from an installation alike.
#ifndef ATTEND_TOOLS_FIND_MODEL_H_
#define ATTEND_TOOLS_FIND_MODEL_H_

#include <string>

#include "attend/status.h"

namespace attend::tools {

// The path of the shipped model `name` ("pos-en.attend"): in $ATTEND_MODELS, else relative to the
// folder of this program. Nothing depends on where it was built.
// Errors: kNotFound with the places that were looked at.
Result<std::string> FindShippedModel(const std::string& name);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_FIND_MODEL_H_
