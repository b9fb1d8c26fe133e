#!/usr/bin/env bash
# The main kernels of the AVX2 path take as many instructions as was recorded.
exec "$ATTEND_SOURCE_DIR/bench/instructions/run" "$ATTEND_BINARY_DIR/tests/kernel_runs"
