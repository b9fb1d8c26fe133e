#!/usr/bin/env bash
# Builds the libraries twice, in two folders with names of different length, from two copies of the
# sources, and compares what comes out byte by byte. Takes two whole builds; TARGETS="attend_text" is
# quick. Usage: bench/reproducible.sh
set -euo pipefail

source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
read -ra targets <<< "${TARGETS:-attend attend_static attend_text attend_text_static}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

folders=(a "another folder, of a longer name")
for folder in "${folders[@]}"; do  # before anything is built: somebody may go on writing
  mkdir -p "$work/$folder/sources"
  (cd "$source" && tar -cf - CMakeLists.txt cmake engine include kernels) |
    tar -xf - -C "$work/$folder/sources"
done
for folder in "${folders[@]}"; do
  # No compiler cache: it would show that a copy is equal to itself.
  CCACHE_DISABLE=1 cmake -S "$work/$folder/sources" -B "$work/$folder/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DATTEND_TOOLS=OFF -DATTEND_TESTS=OFF -DATTEND_BENCH=OFF \
    -DATTEND_INSTALL=OFF > "$work/log" || { cat "$work/log"; exit 1; }
  CCACHE_DISABLE=1 cmake --build "$work/$folder/build" --target "${targets[@]}" -j "${JOBS:-2}" \
    > "$work/log" || { cat "$work/log"; exit 1; }
done

differ=0
for library in "$work"/a/build/libattend*.so "$work"/a/build/libattend*.a; do
  [[ -e $library ]] || continue
  other="$work/another folder, of a longer name/build/$(basename "$library")"
  if cmp "$library" "$other"; then
    echo "the same: $(basename "$library") $(sha256sum < "$library" | cut -d' ' -f1)"
  else
    differ=1
  fi
done
exit "$differ"
