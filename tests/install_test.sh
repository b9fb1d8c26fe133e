#!/usr/bin/env bash
# Installs the build tree, moves the installation into a folder with a blank in its name, and uses it
# from there as a stranger's project would: the program, find_package, and plain g++.
source "$(dirname "${BASH_SOURCE[0]}")/install_testing.sh"
model="$models/pos-en.attend"

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

# The manual page has every command and option.
page="$(find "$prefix" -name attend.1)"
sed 's/\\-/-/g' "$page" > "$work/page"
"$prefix/bin/attend" completion bash | grep -oE -e '--[a-z-]+' | sort -u > "$work/options"
while IFS= read -r option; do
  grep -q -e "$option\\b" "$work/page" || fail "the manual page lacks $option"
done < <(grep -v -e '^--$' "$work/options")
expect "commands of the manual page" "$("$prefix/bin/attend" --help | grep -cE '^  [a-z]+  +[A-Z]')" \
       "$(grep -c '^\.SS attend' "$work/page")"
if command -v man > /dev/null; then
  expect "the manual page is well-formed" "" "$(man --warnings -l "$page" 2>&1 > /dev/null | head -3)"
fi

configure "$ATTEND_SOURCE_DIR/examples/tag" "$work/example build"
quietly "$CMAKE" --build "$work/example build"
expect "the example, by find_package" "$tagged" "$("$work/example build/tag_example")"
expect "bytes of the original text" $'0-5\tCafé\tNOUN' \
       "$("$work/example build/tag_example" "Café prices rose" | head -1)"

quietly "$CXX" -std=c++20 -DTAG_MODEL='""' -I "$prefix/include" \
        "$ATTEND_SOURCE_DIR/examples/tag/tag.cc" -L "$library_dir" -lattend \
        "-Wl,-rpath,$library_dir" -o "$work/plain"
expect "the example, by the compiler alone" "$tagged" "$("$work/plain" "I saw a saw" "$model")"

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
