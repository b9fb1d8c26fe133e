// A document as one HTML page that needs nothing else: no script, no font, no address.
#ifndef ATTEND_BENCH_HARNESS_REPORT_H_
#define ATTEND_BENCH_HARNESS_REPORT_H_

#include <string>

#include "bench/harness/json.h"

namespace attend::bench {

std::string DrawReport(const Json& document);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_REPORT_H_
