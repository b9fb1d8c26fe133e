#!/usr/bin/env bash
# Runs what README.md shows. A block that begins with "```sh run" is a transcript: a line with "$ "
# in front is a command, the lines below it are what it prints. "```sh run minilm" needs the folder
# of all-MiniLM-L6-v2, named by ATTEND_MINILM, and is skipped without it. Numbers are compared to
# three decimals: further ones depend on the instruction set. The C++ of README.md must be the example's.
set -euo pipefail

readme=$ATTEND_SOURCE_DIR/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# UTF-8 in comparisons and cut, wherever the test runs.
export LC_ALL=C.UTF-8
export PATH="$ATTEND_BINARY_DIR/tools:$PATH"
failures=0

# transcript KIND: the blocks of that kind, one after another.
transcript() {
  awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } /^```/ { inside = 0 } inside' "$readme"
}

rounded() { sed -E 's/([0-9]\.[0-9]{3})[0-9e-]*/\1/g'; }

check() {  # COMMAND EXPECTED
  local got
  got=$(bash -o pipefail -c "$1" 2>&1) || got+=" [exit code $?]"
  if ! diff <(rounded <<< "$2") <(rounded <<< "$got") > "$work/diff"; then
    printf 'README.md shows something else for: %s\n' "$1"
    cat "$work/diff"
    failures=$((failures + 1))
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
  done < <(transcript "$1")
  if [[ $count == 0 ]]; then
    echo "README.md has no block \"$1\""
    exit 1
  fi
  check "$command" "${expected%$'\n'}"
  echo "$1: $count commands"
}

ln -s "$ATTEND_SOURCE_DIR/models" "$ATTEND_SOURCE_DIR/tests" "$work"
cd "$work"
run_transcript "sh run"
if [[ -f ${ATTEND_MINILM:-}/config.json ]]; then
  ln -s "$ATTEND_MINILM" all-MiniLM-L6-v2
  run_transcript "sh run minilm"
else
  echo "skipped: the commands with all-MiniLM-L6-v2 (ATTEND_MINILM is not set)"
fi

if ! diff <(transcript cpp) "$ATTEND_SOURCE_DIR/examples/tag/tag.cc"; then
  echo "README.md shows another program than examples/tag/tag.cc"
  failures=$((failures + 1))
fi

# Every file that the README links to is there.
while IFS= read -r target; do
  if [[ ! -e $ATTEND_SOURCE_DIR/$target ]]; then
    echo "README.md links to $target, which is not there"
    failures=$((failures + 1))
  fi
done < <(grep -oE '\]\([^):]+\)' "$readme" | tr -d '])(' | sort -u)

exit $((failures > 0))
