# What the tests of the installation share, sourced: an installation in a folder with a blank in its
# name, which is not where it was installed, and how to say that something is as expected.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
unset ATTEND_MODELS LD_LIBRARY_PATH PKG_CONFIG_PATH || true

fail() {
  echo "$*"
  exit 1
}

expect() {  # WHAT EXPECTED GOT
  if [[ $2 != "$3" ]]; then fail "$1: expected" "$2" "got" "$3"; fi
  echo "ok: $1"
}

# Output of a quiet step; all of it if the step fails.
quietly() {
  "$@" > "$work/log" 2>&1 || { cat "$work/log"; fail "failed: $*"; }
}

# configure SOURCE BUILD ARGUMENT...: as a user's project, with the installation where PREFIX says.
configure() {
  local source=$1 build=$2
  shift 2
  quietly "$CMAKE" -S "$source" -B "$build" -G "$GENERATOR" -DCMAKE_BUILD_TYPE=Release \
          -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$prefix" "$@"
}

prefix="$work/a moved prefix"
quietly "$CMAKE" --install "$ATTEND_BINARY_DIR" --prefix "$work/prefix"
mv "$work/prefix" "$prefix"
models="$prefix/share/attend/models"
library_dir=$(dirname "$(find "$prefix" -name libattend.so)")
tagged=$'0-1\tI\tPRON\n2-5\tsaw\tVERB\n6-7\ta\tDET\n8-11\tsaw\tNOUN'
