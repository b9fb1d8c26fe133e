#include "tools/json_line.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/json.h"

namespace attend::tools {

Status ParseJsonLine(std::string_view line, const std::string& where, nlohmann::json* object) {
  constexpr char kHint[] = "give one JSON object a line";
  if (line.find_first_not_of(" \t") == std::string_view::npos) {
    return Status(ErrorCode::kInvalidArgument, "the line is empty; expected an object", where,
                  kHint);
  }
  Result<nlohmann::json> value = ParseJson(line, where);
  if (!value.ok()) {
    const Status& status = value.status();
    // Its place in the line; `where` says which line.
    std::string place = status.where();
    constexpr std::string_view kFirstLine = ", line 1, column ";
    const size_t at = place.find(kFirstLine, where.size());
    if (at != std::string::npos) place.replace(at, kFirstLine.size(), ", column ");
    return Status(ErrorCode::kInvalidArgument, status.what(), place,
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
