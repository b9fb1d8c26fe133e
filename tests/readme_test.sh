#!/usr/bin/env bash
# Runs what README.md and docs/self-attention.md show. Blocks, by what stands behind their fence:
#   sh run         a transcript: a line with "$ " in front is a command, the lines below it are what
#                  it prints. Numbers are compared to three decimals: further ones depend on the
#                  instruction set.
#   sh run minilm  the same with the folder of all-MiniLM-L6-v2, named by ATTEND_MINILM; skipped
#                  without it
#   cpp tests/F    a quotation: stands so in that file
#   LANGUAGE FILE  a file that the commands use, written before they run
#   cpp            of README.md: the program examples/tag/tag.cc
# A picture that a page shows is the one that its commands make.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# UTF-8 in comparisons and cut, wherever the test runs; colours and widths as without a terminal.
export LC_ALL=C.UTF-8
unset COLUMNS CLICOLOR_FORCE
# Programs of the pages are compiled against the build tree as against an installation.
mkdir "$work/bin"
ln -s "$(command -v "$CXX")" "$work/bin/c++"
export PATH="$work/bin:$ATTEND_BINARY_DIR/tools:$PATH"
export CPATH="$ATTEND_SOURCE_DIR/include" LIBRARY_PATH="$ATTEND_BINARY_DIR"
export LD_LIBRARY_PATH="$ATTEND_BINARY_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
failures=0
page='' # README.md
text='' # its file

fail() {
  printf '%s\n' "$page: $1"
  failures=$((failures + 1))
}

# blocks FENCE: the blocks of that kind, one after another.
blocks() {
  awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } /^```/ { inside = 0 } inside' "$text"
}

rounded() { sed -E 's/([0-9]\.[0-9]{3})[0-9e-]*/\1/g'; }

check() {  # COMMAND EXPECTED
  local got
  got=$(bash -o pipefail -c "$1" 2>&1) || got+=" [exit code $?]"
  if ! diff <(rounded <<< "$2") <(rounded <<< "$got") > "$work/diff"; then
    fail "shows something else for: $1"
    cat "$work/diff"
  fi
}

run_transcript() {  # KIND
  local line command='' expected='' count=0
  while IFS= read -r line; do
    if [[ $line == '$ '* ]]; then
      if [[ -n $command ]]; then check "$command" "${expected%$'\n'}"; fi
      command=${line:2} expected='' count=$((count + 1))
    else
      expected+=$line$'\n'
    fi
  done < <(blocks "$1")
  if [[ $count == 0 ]]; then
    echo "$page has no block \"$1\""
    exit 1
  fi
  check "$command" "${expected%$'\n'}"
  echo "$page, $1: $count commands"
}

# Quotations are compared, files are written.
take_files() {
  local fence target block
  while IFS= read -r fence; do
    target=${fence#* }
    block=$(blocks "$fence")
    if [[ $target == tests/* ]]; then
      continue
    elif [[ $target != run* ]]; then
      mkdir -p "$(dirname "$target")"
      printf '%s\n' "$block" > "$target"
    fi
  done < <(grep -oE '^```[a-z]+ .+$' "$text" | sed 's/^```//' | sort -u)
}

# Every block under the fence of a file of the tests, by itself, must stand in the file.
check_quotations() {
  local line target='' block='' whole
  while IFS= read -r line; do
    if [[ -z $target && $line =~ ^\`\`\`cpp\ (tests/.*)$ ]]; then
      target=${BASH_REMATCH[1]} block=''
    elif [[ -n $target && $line == '```' ]]; then
      whole=$(< "$ATTEND_SOURCE_DIR/$target")
      if [[ $whole != *"${block%$'\n'}"* ]]; then fail "quotes what is not in $target:"$'\n'"$block"; fi
      target=''
    elif [[ -n $target ]]; then
      block+=$line$'\n'
    fi
  done < "$text"
}

# Every file that the page links to is there.
check_links() {
  local folder target
  folder=$(dirname "$text")
  while IFS= read -r target; do
    if [[ ! -e $folder/$target ]]; then fail "links to $target, which is not there"; fi
  done < <(grep -oE '\]\([^):]+\)' "$text" | tr -d '])(' | sort -u)
}

# The words of a picture, without numbers: weights may differ in the last digit.
words_of() { grep -oE '<(text|title)[^>]*>[^<]*' "$1" | sed -E 's/<[^>]*>//; s/[0-9.]+$//'; }

check_pictures() {
  local picture name
  while IFS= read -r picture; do
    name=$(basename "$picture")
    if [[ ! -e $name ]]; then
      fail "shows $picture, which none of its commands makes"
    elif ! diff <(words_of "$(dirname "$text")/$picture") <(words_of "$name") > "$work/diff"; then
      fail "shows $picture, which is not what its command makes"
      head -20 "$work/diff"
    fi
  done < <(grep -oE '\]\(pictures/[^)]+\)' "$text" | tr -d '])(' | sort -u)
}

run_page() {  # PAGE
  page=$1 text=$ATTEND_SOURCE_DIR/$1
  mkdir "$work/$(basename "$1")"
  cd "$work/$(basename "$1")"
  ln -s "$ATTEND_SOURCE_DIR/models" "$ATTEND_SOURCE_DIR/tests" .
  take_files
  run_transcript "sh run"
  check_quotations
  check_links
  check_pictures
}

run_page README.md
if [[ -f ${ATTEND_MINILM:-}/config.json ]]; then
  ln -s "$ATTEND_MINILM" all-MiniLM-L6-v2
  run_transcript "sh run minilm"
else
  echo "skipped: the commands with all-MiniLM-L6-v2 (ATTEND_MINILM is not set)"
fi
if ! diff <(blocks cpp) "$ATTEND_SOURCE_DIR/examples/tag/tag.cc"; then
  fail "shows another program than examples/tag/tag.cc"
fi
run_page docs/self-attention.md

exit $((failures > 0))
