// Two documents beside each other, cell by cell.
#ifndef ATTEND_BENCH_HARNESS_COMPARE_H_
#define ATTEND_BENCH_HARNESS_COMPARE_H_

#include <string>

#include "attend/status.h"
#include "bench/harness/json.h"

namespace attend::bench {

// {"differs": ["threads: 2, 1", ...], "cells": [{"cell", "a_s", "b_s", "ratio"}], "worst": {...}};
// a ratio is b's time divided by a's. What differs of machine, model and settings comes first:
// ratios mean little then. Errors: kInvalidArgument (not a bench document; no cell in common).
Result<Json> CompareDocuments(const Json& a, const Json& b);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_COMPARE_H_
