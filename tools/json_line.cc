#include "tools/json_line.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/json.h"

namespace attend::tools {

Status ParseJsonLine(std::string_view line, const std::string& where, nlohmann::json* object) {
  constexpr char kHint[] = "give one JSON object a line";
  Result<nlohmann::json> value = ParseJson(line, where);
  if (!value.ok()) {
    const Status& status = value.status();
    return Status(ErrorCode::kInvalidArgument, status.what(), status.where(),
                  status.hint().empty() ? kHint : status.hint());
  }
  if (!value->is_object()) {
    return Status(ErrorCode::kInvalidArgument,
                  std::string("the line is ") + value->type_name() + "; expected an object", where,
                  kHint);
  }
  *object = *std::move(value);
  return {};
}

}  // namespace attend::tools
