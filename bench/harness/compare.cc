#include "bench/harness/compare.h"

#include <map>
#include <string>
#include <vector>

namespace attend::bench {
namespace {

struct Cell {
  std::string name;
  double seconds = 0;
};

// The number behind a path of keys, or nothing.
const Json* Find(const Json& document, const std::vector<std::string>& path) {
  const Json* at = &document;
  for (const std::string& key : path) {
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return at;
}

void Take(const std::string& name, const Json* value, std::vector<Cell>* cells) {
  if (value == nullptr || !value->is_number()) return;
  const double seconds = value->get<double>();
  if (seconds > 0) cells->push_back({name, seconds});
}

std::string SizeOrUnknown(const Json& cell) {
  const Json* const batch = Find(cell, {"batch"});
  const Json* const length = Find(cell, {"length"});
  if (batch == nullptr || length == nullptr) return "?";
  return batch->dump() + " x " + length->dump();
}

// The elements of an array, if it is one.
const Json& Elements(const Json* array) {
  static const Json none = Json::array();
  return array != nullptr && array->is_array() ? *array : none;
}

// Every time that a document has, by name.
std::vector<Cell> CellsOf(const Json& document) {
  std::vector<Cell> cells;
  for (const char* section : {"latency", "throughput"}) {
    for (const Json& cell : Elements(Find(document, {section}))) {
      Take(std::string(section) + " " + SizeOrUnknown(cell), Find(cell, {"median_s"}), &cells);
    }
  }
  Take("texts", Find(document, {"texts", "median_s"}), &cells);
  for (const char* kind : {"warm", "cold"}) {
    Take(std::string("loading, ") + kind, Find(document, {"loading", kind, "total_s"}), &cells);
  }
  const Json* const isas = Find(document, {"isas", "rows"});
  for (const Json& row : Elements(isas)) {
    const Json* const isa = Find(row, {"isa"});
    const Json* const precision = Find(row, {"precision"});
    if (isa == nullptr || precision == nullptr) continue;
    for (const Json& cell : Elements(Find(row, {"cells"}))) {
      Take(
          isa->get<std::string>() + " " + precision->get<std::string>() + " " + SizeOrUnknown(cell),
          Find(cell, {"median_s"}), &cells);
    }
  }
  for (const Json& rate : Elements(Find(document, {"load", "rates"}))) {
    const Json* const share = Find(rate, {"share_of_capacity"});
    if (share == nullptr) continue;
    Take("load at " + share->dump() + ", p99", Find(rate, {"p99_s"}), &cells);
  }
  return cells;
}

}  // namespace

Result<Json> CompareDocuments(const Json& a, const Json& b) {
  for (const Json* document : {&a, &b}) {
    if (!document->is_object() || !document->contains("attend")) {
      return Status(ErrorCode::kInvalidArgument, "not a document of attend bench",
                    document == &a ? "the first file" : "the second file",
                    "make one with `attend bench --json FILE`");
    }
  }
  Json differs = Json::array();
  for (const std::vector<std::string>& path :
       std::vector<std::vector<std::string>>{{"machine", "cpu"},
                                             {"machine", "isa"},
                                             {"settings", "threads"},
                                             {"settings", "precision"},
                                             {"model", "parameters"}}) {
    const Json* const one = Find(a, path);
    const Json* const other = Find(b, path);
    if (one == nullptr || other == nullptr || *one == *other) continue;
    differs.push_back(path.back() + ": " + one->dump() + ", " + other->dump());
  }
  std::map<std::string, double> of_b;
  for (const Cell& cell : CellsOf(b)) of_b[cell.name] = cell.seconds;
  Json cells = Json::array(), worst;
  for (const Cell& cell : CellsOf(a)) {
    const auto found = of_b.find(cell.name);
    if (found == of_b.end()) continue;
    const double ratio = found->second / cell.seconds;
    cells.push_back(
        {{"cell", cell.name}, {"a_s", cell.seconds}, {"b_s", found->second}, {"ratio", ratio}});
    if (worst.is_null() || ratio > worst["ratio"].get<double>()) worst = cells.back();
  }
  if (cells.empty()) {
    return Status(ErrorCode::kInvalidArgument, "the files have no cell in common", "--compare");
  }
  return Json{{"differs", differs}, {"cells", cells}, {"worst", worst}};
}

}  // namespace attend::bench
