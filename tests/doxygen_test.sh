#!/usr/bin/env bash
# Doxygen understands every comment of the public headers.
set -euo pipefail
if ! command -v doxygen > /dev/null; then
  echo "skipped: doxygen is not installed"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$ATTEND_SOURCE_DIR"
(cat docs/Doxyfile && echo "OUTPUT_DIRECTORY = $work") > "$work/Doxyfile"
if ! doxygen "$work/Doxyfile" > "$work/log" 2>&1; then
  cat "$work/log"
  exit 1
fi
echo "ok: $(find "$work/html" -name '*.html' | wc -l) pages"
