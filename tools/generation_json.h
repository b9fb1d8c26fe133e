// Settings of generation as JSON has them: generation_config.json, and the lines of `attend run`.
#ifndef ATTEND_TOOLS_GENERATION_JSON_H_
#define ATTEND_TOOLS_GENERATION_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attend/status.h"
#include "attend/text.h"

namespace attend {

// Reads the settings that attend knows; null is unset. The names of all other fields go to
// `unknown`. Ranges are CheckSettings' to see to.
// Errors: kCorrupt naming the field, its value and what is allowed.
Status ReadGenerationJson(const nlohmann::json& object, std::string_view where,
                          GenerationSettings* settings, std::vector<std::string>* unknown);

// The names that ReadGenerationJson knows, with commas.
std::string GenerationFieldNames();

}  // namespace attend

#endif  // ATTEND_TOOLS_GENERATION_JSON_H_
