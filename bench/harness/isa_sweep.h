// Every instruction set of the machine times every precision, each in a process of its own.
#ifndef ATTEND_BENCH_HARNESS_ISA_SWEEP_H_
#define ATTEND_BENCH_HARNESS_ISA_SWEEP_H_

#include <string>
#include <vector>

#include "attend/status.h"
#include "bench/harness/json.h"
#include "bench/harness/sections.h"

namespace attend::bench {

// `command` is a worker's command line without --isa and --precision.
// {"compared_with", "largest_output", "rows": [{"isa", "precision", "cells": [...],
// "largest_difference"}, or {"isa", "precision", "left_out": why}]}
Result<Json> SweepIsas(const std::vector<std::string>& command, const Context& context);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_ISA_SWEEP_H_
