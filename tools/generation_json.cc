#include "tools/generation_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "engine/generate_settings.h"
#include "tools/json.h"

namespace attend {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

constexpr double kLargest = std::numeric_limits<double>::max();

// One object on its way to settings; the first error is kept.
class SettingsReader {
 public:
  SettingsReader(const json& object, std::string_view where) : object_(object), where_(where) {}

  template <typename T>
  void operator()(std::string_view name, std::optional<T>& out) {
    const json* value = JsonFind(object_, name);
    if (value == nullptr || !status_.ok()) return;
    status_ = Take(name, *value, &out);
  }

  const Status& status() const { return status_; }

 private:
  template <typename T, typename U>
  static Status Store(const Result<U>& value, std::optional<T>* out) {
    if (value.ok()) *out = static_cast<T>(*value);
    return value.status();
  }

  Status Take(std::string_view name, const json&, std::optional<int32_t>* out) const {
    return Store(JsonInt(object_, name, std::numeric_limits<int32_t>::min(),
                         std::numeric_limits<int32_t>::max(), where_),
                 out);
  }
  Status Take(std::string_view name, const json&, std::optional<uint64_t>* out) const {
    return Store(JsonInt(object_, name, 0, std::numeric_limits<int64_t>::max(), where_), out);
  }
  Status Take(std::string_view name, const json&, std::optional<double>* out) const {
    return Store(JsonFloat(object_, name, -kLargest, kLargest, where_), out);
  }
  Status Take(std::string_view name, const json&, std::optional<bool>* out) const {
    return Store(JsonBool(object_, name, where_), out);
  }
  Status Take(std::string_view name, const json& value, std::optional<EarlyStopping>* out) const {
    if (value.is_boolean()) {
      *out = value.get<bool>() ? EarlyStopping::kYes : EarlyStopping::kNo;
      return {};
    }
    if (value != "never") return JsonFieldError(name, value, "true, false, \"never\"", where_);
    *out = EarlyStopping::kNever;
    return {};
  }
  // One id or a list.
  Status Take(std::string_view name, const json& value, std::optional<Ids>* out) const {
    Ids ids;
    const json list = value.is_array() ? value : json::array({value});
    if (!TakeIds(list, &ids)) {
      return JsonFieldError(name, value, "a token id or a list of them", where_);
    }
    *out = std::move(ids);
    return {};
  }
  Status Take(std::string_view name, const json& value,
              std::optional<std::vector<Ids>>* out) const {
    std::vector<Ids> lists;
    bool is_right = value.is_array();
    for (size_t i = 0; is_right && i < value.size(); ++i) {
      is_right = value[i].is_array() && TakeIds(value[i], &lists.emplace_back());
    }
    if (!is_right) return JsonFieldError(name, value, "a list of lists of token ids", where_);
    *out = std::move(lists);
    return {};
  }

  static bool TakeIds(const json& list, Ids* ids) {
    for (const json& id : list) {
      if (!id.is_number_integer()) return false;
      const bool is_small =
          !id.is_number_unsigned() || id.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
      if (!is_small || id.get<int64_t>() < std::numeric_limits<int32_t>::min()) return false;
      ids->push_back(id.get<int32_t>());
    }
    return true;
  }

  const json& object_;
  std::string where_;
  Status status_;
};

std::vector<std::string_view> FieldNames() {
  std::vector<std::string_view> names;
  GenerationSettings none;
  VisitSettings([&](std::string_view name, const auto&) { names.push_back(name); }, none);
  return names;
}

}  // namespace

Status ReadGenerationJson(const json& object, std::string_view where, GenerationSettings* settings,
                          std::vector<std::string>* unknown) {
  if (!object.is_object()) {
    return Status(ErrorCode::kCorrupt, "expected an object, got " + JsonExcerpt(object),
                  std::string(where));
  }
  SettingsReader reader(object, where);
  VisitSettings(reader, *settings);
  const std::vector<std::string_view> names = FieldNames();
  for (const auto& [name, value] : object.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) unknown->push_back(name);
  }
  return reader.status();
}

std::string GenerationFieldNames() {
  std::string text;
  for (std::string_view name : FieldNames()) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

}  // namespace attend
