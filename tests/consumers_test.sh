#!/usr/bin/env bash
# Strangers' projects use an installation that was moved: C99 by pkg-config, C++17 and C by the C
# interface and find_package, the static library, the text part without oneDNN, and the plain
# compiler. (C++20 by find_package and add_subdirectory: install_test.sh.)
source "$(dirname "${BASH_SOURCE[0]}")/install_testing.sh"
client="$ATTEND_SOURCE_DIR/examples/c_client/client.c"
model="$models/pos-en.attend"
pedantic=(-std=c99 -Wall -Wextra -pedantic -Werror)
say() { printf '  %s\n' "${*//$work/…}"; }

# C99 by the compiler alone, as examples/README.md says.
line=("$CC" "${pedantic[@]}" -I "$prefix/include" "$client" -L "$library_dir" -lattend
      "-Wl,-rpath,$library_dir" -o "$work/c99")
quietly "${line[@]}"
expect "C99, by the compiler alone" "$tagged" "$("$work/c99" "$model" "I saw a saw")"
say "${line[@]}"

# pkg-config: its words are quoted for a shell, which the blank needs.
export PKG_CONFIG_PATH="$library_dir/pkgconfig"
if ! command -v pkg-config > /dev/null; then
  echo "skipped: pkg-config is not installed"
else
  eval "found=$(pkg-config --variable=modelsdir attend)"
  expect "pkg-config finds the models" "$models" "$(realpath "$found")"
  eval "flags=($(pkg-config --cflags --libs attend))"
  line=("$CC" "${pedantic[@]}" "$client" "${flags[@]}" "-Wl,-rpath,$library_dir" -o "$work/shared")
  quietly "${line[@]}"
  expect "C99, by pkg-config" "$tagged" "$("$work/shared" "$model" "I saw a saw")"
  say "${line[@]}"

  # All that the static library needs, and the static library itself in place of the shared one.
  eval "flags=($(pkg-config --static --cflags --libs attend))"
  line=("$CC" "${pedantic[@]}" "$client" "${flags[@]/#-lattend/-l:libattend.a}" -o "$work/static")
  quietly "${line[@]}"
  expect "C99, by pkg-config --static" "$tagged" "$("$work/static" "$model" "I saw a saw")"
  say "${line[@]}"
  expect "the static program does not need libattend.so" "" \
         "$(readelf -d "$work/static" | grep -F libattend || true)"

  # Tokenizers, without oneDNN.
  cat > "$work/tokens.c" << 'C'
#include <attend/attend_c.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_tokenizer* tokenizer = NULL;
  attend_buffer* buffer = NULL;
  attend_tokens tokens = ATTEND_TOKENS_INIT;
  attend_text text;
  if (argc != 3) return 2;
  text.data = argv[2];
  text.size = strlen(argv[2]);
  if (attend_tokenizer_load(argv[1], &tokenizer, &error) != ATTEND_OK ||
      attend_buffer_create(&buffer, &error) != ATTEND_OK ||
      attend_tokenizer_encode(tokenizer, &text, NULL, NULL, buffer, &tokens, &error) != ATTEND_OK) {
    fprintf(stderr, "%s: %s\n", error.where, error.message);
    return 1;
  }
  for (int64_t i = 0; i < tokens.num_tokens; ++i) {
    printf("%s:%u-%u ", tokens.tokens[i].data, (unsigned)tokens.offsets[i].begin,
           (unsigned)tokens.offsets[i].end);
  }
  attend_buffer_free(buffer);
  attend_tokenizer_free(tokenizer);
  return 0;
}
C
  tokens="[CLS]:0-0 i:0-1 saw:2-5 a:6-7 saw:8-11 [SEP]:0-0 "
  for kind in shared static; do
    flags_of=(--cflags --libs attend_text)
    if [[ $kind == static ]]; then flags_of=(--static "${flags_of[@]}"); fi
    eval "flags=($(pkg-config "${flags_of[@]}"))"
    if [[ $kind == static ]]; then flags=("${flags[@]/#-lattend_text/-l:libattend_text.a}"); fi
    line=("$CC" "${pedantic[@]}" "$work/tokens.c" "${flags[@]}" "-Wl,-rpath,$library_dir"
          -o "$work/tokens $kind")
    quietly "${line[@]}"
    expect "the text part, $kind" "$tokens" "$("$work/tokens $kind" "$model" "I saw a saw")"
    say "${line[@]}"
    expect "the text part, $kind, runs without oneDNN, Highway and OpenMP" "" \
           "$(ldd "$work/tokens $kind" | grep -E 'dnnl|hwy|gomp' || true)"
  done
fi

# find_package from a project of C alone, and from C++17, whose standard stays what it is.
mkdir "$work/older"
cat > "$work/older/CMakeLists.txt" << 'END_OF_FILE'
cmake_minimum_required(VERSION 3.22)
project(older LANGUAGES ${LANGUAGE})
find_package(attend 0.1 REQUIRED COMPONENTS core text)
if(LANGUAGE STREQUAL "C")
  add_executable(older "${CLIENT}")
  set_target_properties(older PROPERTIES C_STANDARD 99)
  target_compile_options(older PRIVATE -pedantic -Wall -Wextra -Werror)
else()
  set(CMAKE_CXX_STANDARD 17)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  add_executable(older older.cc)
  target_compile_options(older PRIVATE -pedantic -Wall -Wextra -Werror)
endif()
target_link_libraries(older PRIVATE attend::c)
END_OF_FILE
cat > "$work/older/older.cc" << 'CC'
#include <attend/attend_c.h>

#include <cstdio>
#include <memory>
#include <string_view>

static_assert(__cplusplus == 201703L, "find_package(attend) changed the standard");

struct Free {
  void operator()(attend_model* model) const { attend_model_free(model); }
  void operator()(attend_tagger* tagger) const { attend_tagger_free(tagger); }
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  attend_error error = ATTEND_ERROR_INIT;
  attend_model* model = nullptr;
  if (attend_model_load(argv[1], &model, &error) != ATTEND_OK) return 1;
  const std::unique_ptr<attend_model, Free> owned(model);
  attend_tagger* tagger = nullptr;
  if (attend_tagger_create(model, nullptr, &tagger, &error) != ATTEND_OK) return 1;
  const std::unique_ptr<attend_tagger, Free> owned_too(tagger);
  const std::string_view text = argv[2];
  attend_tags tags = ATTEND_TAGS_INIT;
  if (attend_tag(tagger, text.data(), text.size(), &tags, &error) != ATTEND_OK) return 1;
  for (int64_t i = 0; i < tags.num_words; ++i) {
    const attend_word& word = tags.words[i];
    std::printf("%u-%u\t%s\t%s\n", word.range.begin, word.range.end, word.text, word.label);
  }
}
CC
for language in C CXX; do
  configure "$work/older" "$work/older $language" -DLANGUAGE=$language -DCLIENT="$client"
  quietly "$CMAKE" --build "$work/older $language"
  expect "find_package, $language$([[ $language == CXX ]] && echo 17 || echo 99)" "$tagged" \
         "$("$work/older $language/older" "$model" "I saw a saw")"
done

# C++20 with the text part alone.
mkdir "$work/text"
cat > "$work/text/CMakeLists.txt" << 'END_OF_FILE'
cmake_minimum_required(VERSION 3.22)
project(text LANGUAGES CXX)
find_package(attend 0.1 REQUIRED COMPONENTS text)
foreach(kind text text_static)
  add_executable(${kind} text.cc)
  target_link_libraries(${kind} PRIVATE attend::${kind})
endforeach()
END_OF_FILE
cat > "$work/text/text.cc" << 'CC'
#include <attend/text.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const attend::Result<attend::Tokenizer> tokenizer = attend::Tokenizer::Load(argv[1]);
  if (!tokenizer.ok()) return 1;
  const attend::Result<attend::Encoding> encoding = tokenizer->Encode(argv[2]);
  if (!encoding.ok()) return 1;
  for (const std::string& token : encoding->tokens) std::puts(token.c_str());
}
CC
configure "$work/text" "$work/text build"
quietly "$CMAKE" --build "$work/text build"
for kind in text text_static; do
  expect "C++20 with attend::$kind" "[CLS] i saw a saw [SEP]" \
         "$("$work/text build/$kind" "$model" "I saw a saw" | xargs)"
  expect "attend::$kind does not bring oneDNN" "" \
         "$(ldd "$work/text build/$kind" | grep -F dnnl || true)"
done

# A component that is not there is an error of find_package.
mkdir "$work/wrong"
printf '%s\n' 'cmake_minimum_required(VERSION 3.22)' 'project(wrong LANGUAGES C)' \
       'find_package(attend REQUIRED COMPONENTS nonsense)' > "$work/wrong/CMakeLists.txt"
if "$CMAKE" -S "$work/wrong" -B "$work/wrong/build" -G "$GENERATOR" \
     -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$prefix" > "$work/log" 2>&1; then
  fail "a component that is not there was found"
fi
echo "ok: a component that is not there is refused"
