#!/usr/bin/env bash
# What the shared libraries show and need: the exported symbols are those of exported_symbols.txt,
# the libraries are those named here, and both are small.
# UPDATE=1 writes exported_symbols.txt anew.
set -euo pipefail
export LC_ALL=C

fail() {
  echo "$*"
  exit 1
}

list="$ATTEND_SOURCE_DIR/tests/exported_symbols.txt"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Names without addresses, versions and kinds; both constructors of a class are one name.
exported() {
  nm -DC --defined-only "$1" | sed -E 's/^[0-9a-f]+ . //; s/@@?ATTEND_[0-9.]+$//' | sort -u |
    grep -v '^ATTEND_[0-9.]*$'
}

for name in attend attend_text; do
  echo "== lib$name.so"
  exported "$ATTEND_BINARY_DIR/lib$name.so"
done > "$work/symbols"
if [[ ${UPDATE:-} == 1 ]]; then cp "$work/symbols" "$list"; fi
if [[ ${BUILD_TYPE:-Release} != Release ]]; then
  echo "skipped: another build type exports other inline functions"
elif ! diff "$list" "$work/symbols"; then
  fail "the exported symbols are not those of tests/exported_symbols.txt; if that is meant," \
       "ATTEND_SOURCE_DIR=. ATTEND_BINARY_DIR=build/release UPDATE=1 tests/symbols_test.sh"
fi
grep -q attend_session_run "$work/symbols" || fail "nm does not list attend_session_run"
echo "ok: $(grep -c '^attend_' "$work/symbols") C functions and $(grep -c '^attend::' "$work/symbols")" \
     "C++ names are exported, and nothing else"
if others=$(grep -vE '^(attend_|attend::|== |(vtable|typeinfo|typeinfo name) for attend::)' \
              "$work/symbols"); then
  fail "exported without need:" "$others"
fi

# Every symbol has the version, so that two versions in one process do not meet.
if nm -D --defined-only "$ATTEND_BINARY_DIR/libattend.so" | grep -vE 'ATTEND_[0-9.]+$'; then
  fail "symbols without a version"
fi

needed() { readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | sort | xargs; }
check_needed() {  # NAME ALLOWED
  local got other=''
  got=$(needed "$ATTEND_BINARY_DIR/$1")
  for library in $got; do
    if [[ " $2 " != *" ${library%%.so*} "* ]]; then other+=" $library"; fi
  done
  if [[ -n $other ]]; then fail "$1 needs$other"; fi
  echo "ok: $1 needs $got"
}
# libm and libgcc_s are parts of libc and of the compiler; ld-linux is what resolves thread-locals.
check_needed libattend.so "libdnnl libhwy libstdc++ libgomp libc libm libgcc_s ld-linux-x86-64"
check_needed libattend_text.so "libstdc++ libc libm libgcc_s ld-linux-x86-64"

check_size() {  # NAME LIMIT
  strip -o "$work/stripped" "$ATTEND_BINARY_DIR/$1"
  local bytes
  bytes=$(stat -c %s "$work/stripped")
  if ((bytes > $2)); then fail "$1 has $bytes bytes stripped, expected at most $2"; fi
  echo "ok: $1 has $bytes bytes stripped"
}
check_size libattend.so 3145728
check_size libattend_text.so 629145

# Against the last tag, where the tool and a library of that tag are: ATTEND_LAST_TAG_LIBRARY.
if ! command -v abidiff > /dev/null; then
  echo "skipped: abidiff is not installed (abigail-tools)"
elif [[ ! -f ${ATTEND_LAST_TAG_LIBRARY:-} ]]; then
  echo "skipped: ATTEND_LAST_TAG_LIBRARY does not name the libattend.so of the last tag"
else
  # Bits 4 and 8: changes, and those that break programs. New functions are neither.
  status=0
  abidiff --no-added-syms "$ATTEND_LAST_TAG_LIBRARY" "$ATTEND_BINARY_DIR/libattend.so" || status=$?
  if ((status & 15)); then fail "the ABI differs from that of $ATTEND_LAST_TAG_LIBRARY"; fi
  echo "ok: abidiff"
fi
