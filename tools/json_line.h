// One line of JSON Lines, read with the limits that input of strangers needs.
#ifndef ATTEND_TOOLS_JSON_LINE_H_
#define ATTEND_TOOLS_JSON_LINE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "attend/status.h"

namespace attend::tools {

// Reads `line` as one JSON object. Errors: kInvalidArgument (not strict JSON: says where; not an
// object).
Status ParseJsonLine(std::string_view line, const std::string& where, nlohmann::json* object);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_JSON_LINE_H_
