#include "tools/raw_lines.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/generation_json.h"
#include "tools/json.h"
#include "tools/json_line.h"

namespace attend::tools {
namespace {

using nlohmann::json;

Status Wrong(const std::string& where, const std::string& key, std::string what) {
  return Status(ErrorCode::kInvalidArgument, std::move(what), where + ", \"" + key + "\"");
}

std::string At(const std::string& key, size_t index) {
  return key + "[" + std::to_string(index) + "]";
}

// An int32 at `value`; `key` says where it stands.
Status TakeInt(const json& value, const std::string& where, const std::string& key, int32_t* out) {
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= std::numeric_limits<int32_t>::max()
                        : value.is_number_integer() &&
                              value.get<int64_t>() >= std::numeric_limits<int32_t>::min();
  if (!fits) {
    return Wrong(where, key, "found " + value.dump().substr(0, 40) + "; expected a 32-bit integer");
  }
  *out = value.get<int32_t>();
  return {};
}

Status TakeInts(const json& object, const char* key, const std::string& where,
                std::vector<int32_t>* out) {
  const json& list = object.at(key);
  if (!list.is_array())
    return Wrong(where, key,
                 std::string("found ") + list.type_name() + "; expected a list of integers");
  out->resize(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    ATTEND_RETURN_IF_ERROR(TakeInt(list[i], where, At(key, i), &(*out)[i]));
  }
  return {};
}

Status TakeRows(const json& list, size_t width, RawItem* item) {
  if (!list.is_array()) {
    return Wrong(item->where, "input",
                 std::string("found ") + list.type_name() + "; expected a list of vectors");
  }
  item->length = list.size();
  item->rows.reserve(list.size() * width);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_array() || list[i].size() != width) {
      return Wrong(item->where, At("input", i),
                   list[i].is_array()
                       ? "the vector has " + std::to_string(list[i].size()) +
                             " numbers; the model takes " + std::to_string(width)
                       : std::string("found ") + list[i].type_name() + "; expected a vector");
    }
    for (size_t j = 0; j < width; ++j) {
      if (!list[i][j].is_number()) {
        return Wrong(item->where, At(At("input", i), j),
                     std::string("found ") + list[i][j].type_name() + "; expected a number");
      }
      const double value = list[i][j].get<double>();
      if (std::abs(value) > std::numeric_limits<float>::max()) {
        return Wrong(item->where, At(At("input", i), j),
                     "found " + list[i][j].dump().substr(0, 40) + "; expected a 32-bit float");
      }
      item->rows.push_back(static_cast<float>(value));
    }
  }
  return {};
}

Status TakeEdges(const json& list, RawItem* item) {
  item->has_edges = true;
  if (!list.is_array()) {
    return Wrong(item->where, "edges",
                 std::string("found ") + list.type_name() + "; expected a list of pairs");
  }
  for (size_t k = 0; k < list.size(); ++k) {
    const std::string key = At("edges", k);
    if (!list[k].is_array() || list[k].size() != 2) {
      return Wrong(item->where, key, "expected a pair [i, j]");
    }
    Edge edge{};
    ATTEND_RETURN_IF_ERROR(TakeInt(list[k][0], item->where, key, &edge.i));
    ATTEND_RETURN_IF_ERROR(TakeInt(list[k][1], item->where, key, &edge.j));
    item->edges.push_back(edge);
  }
  return {};
}

// "generate": settings by their Hugging Face names.
Status TakeSettings(const json& object, bool generates, RawItem* item) {
  const auto settings = object.find("generate");
  if (settings == object.end()) return {};
  const std::string where = item->where + ", \"generate\"";
  if (!generates) {
    return Status(ErrorCode::kUnsupported, "the model does not generate", where,
                  "leave the key out");
  }
  item->generate = settings->dump();
  std::vector<std::string> unknown;
  const Status status = ReadGenerationJson(*settings, where, &item->settings, &unknown);
  if (!status.ok()) {
    return Status(ErrorCode::kInvalidArgument, status.what(), status.where(), status.hint());
  }
  if (unknown.empty()) return {};
  return Status(ErrorCode::kInvalidArgument,
                "no such setting: " + Quoted(unknown[0]) + "; allowed: " + GenerationFieldNames(),
                where);
}

}  // namespace

Status ParseRawLine(const std::string& line, const ModelInfo& info, RawItem* item) {
  json object;
  ATTEND_RETURN_IF_ERROR(ParseJsonLine(line, item->where, &object));
  ATTEND_RETURN_IF_ERROR(TakeSettings(object, info.task == Task::kGenerate, item));
  if (object.contains("ids") == object.contains("input")) {
    return Status(ErrorCode::kInvalidArgument, "expected one of \"ids\" and \"input\"", item->where,
                  "give one object a line, like {\"ids\": [101, 102]}");
  }
  item->vectors = object.contains("input");
  if (item->vectors != (info.input_size > 0)) {
    return Wrong(item->where, item->vectors ? "input" : "ids",
                 item->vectors ? "the model takes token ids, not vectors"
                               : "the model takes vectors, not token ids");
  }
  if (item->vectors) {
    ATTEND_RETURN_IF_ERROR(TakeRows(object["input"], static_cast<size_t>(info.input_size), item));
  } else {
    ATTEND_RETURN_IF_ERROR(TakeInts(object, "ids", item->where, &item->ids));
    item->length = item->ids.size();
  }
  if (object.contains("type_ids")) {
    if (item->vectors) {
      return Wrong(item->where, "type_ids", "the model takes vectors, which have no types");
    }
    ATTEND_RETURN_IF_ERROR(TakeInts(object, "type_ids", item->where, &item->type_ids));
    if (item->type_ids.size() != item->length) {
      return Wrong(item->where, "type_ids",
                   "there are " + std::to_string(item->type_ids.size()) + "; expected " +
                       std::to_string(item->length) + ", one a position");
    }
  }
  if (object.contains("decoder_ids")) {
    ATTEND_RETURN_IF_ERROR(TakeInts(object, "decoder_ids", item->where, &item->decoder_ids));
  }
  // An encoder-decoder that is told nothing of its output writes it.
  item->generates =
      !item->generate.empty() || (IsEncoderDecoder(info) && item->decoder_ids.empty());
  if (object.contains("edges")) ATTEND_RETURN_IF_ERROR(TakeEdges(object["edges"], item));
  return {};
}

RawSource::RawSource(const ModelInfo& info, size_t max_tokens, size_t max_sequences)
    : info_(info), max_tokens_(max_tokens), max_sequences_(max_sequences), reader_(STDIN_FILENO) {}

Status RawSource::NextBatch(std::vector<RawItem>* items) {
  items->clear();
  size_t tokens = 0;
  if (std::exchange(has_held_, false)) {
    tokens = std::max(held_.length, held_.decoder_ids.size());
    items->push_back(std::move(held_));
  }
  if (!pending_.ok() && items->empty()) return pending_;
  std::string line;
  while (pending_.ok() && items->size() < max_sequences_ && (items->empty() || reader_.AtHand())) {
    bool found = false;
    RawItem item;
    Status status = reader_.Next(&line, &found);
    if (status.ok() && !found) break;
    item.where = "line " + std::to_string(reader_.line_number());
    if (status.ok()) status = ParseRawLine(line, info_, &item);
    if (!status.ok()) {
      if (items->empty()) return status;
      pending_ = std::move(status);
      break;
    }
    tokens += std::max(item.length, item.decoder_ids.size());
    // Items of one batch are alike in having edges and settings of generation: all or none.
    const bool differs = !items->empty() && (item.has_edges != items->front().has_edges ||
                                             item.generates != items->front().generates);
    if (!items->empty() && (tokens > max_tokens_ || differs)) {
      held_ = std::move(item);
      has_held_ = true;
      break;
    }
    items->push_back(std::move(item));
  }
  return {};
}

bool RawSource::AtHand() { return has_held_ || !pending_.ok() || reader_.AtHand(); }

}  // namespace attend::tools
