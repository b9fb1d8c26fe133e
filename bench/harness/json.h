// What a bench run is written as, from the first section to the page: one JSON document, whose keys
// stay in the order in which they were set.
#ifndef ATTEND_BENCH_HARNESS_JSON_H_
#define ATTEND_BENCH_HARNESS_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

namespace attend::bench {

using Json = nlohmann::ordered_json;

// What is there by construction: documents of others are checked before.
inline std::string TextOf(const Json& object, const char* key) {
  return object.at(key).get<std::string>();
}
inline double NumberOf(const Json& object, const char* key) { return object.at(key).get<double>(); }

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_JSON_H_
