#!/usr/bin/env bash
# Installs the build tree, moves the installation into a folder with a blank in its name, and uses it
# from there as a stranger's project would: the program, find_package, and plain g++.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/a moved prefix"
export LC_ALL=C.UTF-8
unset ATTEND_MODELS LD_LIBRARY_PATH || true

fail() {
  echo "$*"
  exit 1
}

expect() {  # WHAT EXPECTED GOT
  if [[ $2 != "$3" ]]; then fail "$1: expected" "$2" "got" "$3"; fi
  echo "ok: $1"
}

# Sanitized output of a quiet step; all of it if the step fails.
quietly() {
  "$@" > "$work/log" 2>&1 || { cat "$work/log"; fail "failed: $*"; }
}

quietly "$CMAKE" --install "$ATTEND_BINARY_DIR" --prefix "$work/prefix"
mv "$work/prefix" "$prefix"
model="$prefix/share/attend/models/pos-en.attend"
library_dir=$(dirname "$(find "$prefix" -name libattend.so)")

# Nothing of the package may know where it was built or first installed.
if grep -rlF -e "$ATTEND_BINARY_DIR" -e "$ATTEND_SOURCE_DIR" -e "$work/prefix" \
     "$library_dir/cmake" "$prefix/include"; then
  fail "these files of the installation name a folder of the build"
fi
# The headers need no header but their own and the standard library's.
printf '#include <attend/text.h>\nint main() { return 0; }\n' > "$work/headers.cc"
quietly "$CXX" -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
        -I "$prefix/include" "$work/headers.cc"
echo "ok: headers"

expect "the installed program finds its model" "I/PRON saw/VERB a/DET saw/NOUN" \
       "$(cd / && "$prefix/bin/attend" tag "I saw a saw")"

tagged=$'0-1\tI\tPRON\n2-5\tsaw\tVERB\n6-7\ta\tDET\n8-11\tsaw\tNOUN'

quietly "$CMAKE" -S "$ATTEND_SOURCE_DIR/examples/tag" -B "$work/example build" -G "$GENERATOR" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$prefix"
quietly "$CMAKE" --build "$work/example build"
expect "the example, by find_package" "$tagged" "$("$work/example build/tag_example")"
expect "bytes of the original text" $'0-5\tCafé\tNOUN' \
       "$("$work/example build/tag_example" "Café prices rose" | head -1)"

quietly "$CXX" -std=c++20 -DTAG_MODEL='""' -I "$prefix/include" \
        "$ATTEND_SOURCE_DIR/examples/tag/tag.cc" -L "$library_dir" -lattend \
        "-Wl,-rpath,$library_dir" -o "$work/plain"
expect "the example, by the compiler alone" "$tagged" "$("$work/plain" "I saw a saw" "$model")"

# The other examples, as strangers' projects, and what they print.
example() {  # NAME EXPECTED
  quietly "$CMAKE" -S "$ATTEND_SOURCE_DIR/examples/$1" -B "$work/$1" -G "$GENERATOR" \
          -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$prefix"
  quietly "$CMAKE" --build "$work/$1"
  expect "examples/$1" "$2" "$("$work/$1/$1_example" 2> "$work/log" || cat "$work/log")"
}
example no_threads $'positive\tWhat a lovely film!\nnegative\tI want my money back.\n2 answered by 1 thread'
example batcher $'positive\tWhat a lovely film!\nnegative\tI want my money back.\npositive\tThe best evening of the year.\nnegative\tDull, and far too long.\nDEADLINE'
example executor_pool "What/DET a/DET lovely/ADJ film/NOUN !/PUNCT positive"
if echo '#include <tbb/task_arena.h>' | "$CXX" -x c++ -fsyntax-only - 2> "$work/log"; then
  example executor_tbb "I/PRON saw/VERB a/DET saw/NOUN "
else
  echo "examples/executor_tbb is left out: it needs libtbb-dev"
fi

# The library exports its own names only, not those of what it is made of.
foreign=$(nm -DC --defined-only "$library_dir/libattend.so" |
          grep -E ' [TW] ' | grep -E 'dnnl::|hwy::' || true)
expect "no name of a dependency is exported" "" "$foreign"

# The static library brings along what it needs; as a part of another project attend changes neither
# that project's flags nor its build type.
mkdir "$work/parent"
cat > "$work/parent/CMakeLists.txt" << 'END'
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PREFIX)
  find_package(attend 0.1 REQUIRED COMPONENTS static PATHS "${PREFIX}" NO_DEFAULT_PATH)
else()
  add_subdirectory("${SOURCE}" attend)
endif()
add_executable(parent "${SOURCE}/examples/tag/tag.cc")
target_compile_definitions(parent PRIVATE TAG_MODEL="")
target_link_libraries(parent PRIVATE attend::attend_static)
if(CMAKE_BUILD_TYPE)
  message(FATAL_ERROR "attend chose the build type ${CMAKE_BUILD_TYPE}")
endif()
END
for where in -DPREFIX= "-DPREFIX=$prefix"; do
  quietly "$CMAKE" -S "$work/parent" -B "$work/parent/build" -G "$GENERATOR" \
          -DCMAKE_CXX_COMPILER="$CXX" -DSOURCE="$ATTEND_SOURCE_DIR" "$where"
  command=$(grep '"command"' "$work/parent/build/compile_commands.json" | grep 'examples/tag/tag.cc')
  flags=$(grep -oE -e '-march[^ ]*|-W[^ ]*|-fvisibility[^ ]*|-D(HWY|ATTEND)[^ ]*' <<< "$command" || true)
  expect "no flag of attend reaches its parent ($where)" "" "$flags"
done
quietly "$CMAKE" --build "$work/parent/build"
expect "the example, linked statically" "$tagged" "$("$work/parent/build/parent" "I saw a saw" "$model")"
