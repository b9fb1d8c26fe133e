// Two builds, or two sets of options, in turns within one run.
#ifndef ATTEND_BENCH_HARNESS_AB_H_
#define ATTEND_BENCH_HARNESS_AB_H_

#include <string>
#include <vector>

#include "attend/status.h"
#include "bench/harness/json.h"
#include "bench/harness/sections.h"

namespace attend::bench {

struct AbSides {
  std::vector<std::string> a, b;  // a worker's command line each
};

// Pairs of turns in the order A B B A, and A A A A for the noise; a turn is a few runs, of which
// the first is not counted. A pair's ratio is B's time divided by A's. For each cell the median of
// the ratios, its 95 % interval, and the same of A beside another A:
// {"a", "b", "cells": [{"case", "a_s", "b_s", "ratio", "low", "high", "pairs", "noise",
// "noise_low", "noise_high"}]}
Result<Json> CompareSides(const AbSides& sides, int pairs, const Context& context);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_AB_H_
