#!/usr/bin/env bash
# Every example, built against an installation as a user would, and run.
source "$(dirname "${BASH_SOURCE[0]}")/install_testing.sh"

configure "$ATTEND_SOURCE_DIR/examples" "$work/examples" \
          -DCMAKE_CXX_FLAGS="-O1 -Wall -Wextra -Werror" -DCMAKE_C_FLAGS="-Werror"
quietly "$CMAKE" --build "$work/examples"
run() { "$work/examples/$1/$2" "${@:3}"; }

expect "tag" "$tagged" "$(run tag tag_example)"
expect "c_client" "$tagged" "$(run c_client c_client "$models/pos-en.attend" "I saw a saw")"
if run c_client c_client nowhere.attend 2> "$work/error"; then fail "c_client found nowhere.attend"; fi
expect "c_client reports errors" "nowhere.attend" "$(cut -d: -f1 "$work/error")"
expect "linked_in" $'hello\tHH EH1 L OW0' "$(cd / && run linked_in linked_in_example hello)"
cp "$models/pos-en.attend" "$work/new.attend"
answers=$(run hot_swap hot_swap_example "$models/pos-en.attend" "$work/new.attend")
if [[ ! $answers =~ ^"old model: at least 20 answers, new model: "[0-9]+" answers, failed: 0"$ ]]; then
  fail "hot_swap says: $answers"
fi
echo "ok: hot_swap: $answers"
expect "no_threads" \
       $'positive\tWhat a lovely film!\nnegative\tI want my money back.\n2 answered by 1 thread' \
       "$(run no_threads no_threads_example)"
lines=$'positive\tWhat a lovely film!\nnegative\tI want my money back.\n'
lines+=$'positive\tThe best evening of the year.\nnegative\tDull, and far too long.\nDEADLINE'
expect "batcher" "$lines" "$(run batcher batcher_example)"
expect "executor_pool" "What/DET a/DET lovely/ADJ film/NOUN !/PUNCT positive" \
       "$(run executor_pool executor_pool_example)"
if [[ -x $work/examples/executor_tbb/executor_tbb_example ]]; then
  expect "executor_tbb" "I/PRON saw/VERB a/DET saw/NOUN " "$(run executor_tbb executor_tbb_example)"
else
  echo "skipped: executor_tbb, which needs libtbb-dev"
fi

# A document of many windows, glad at first and then not.
for _ in {1..60}; do printf 'This is a wonderful day and I love it. '; done > "$work/document"
for _ in {1..60}; do printf 'That was a terrible mistake, I hate it. '; done >> "$work/document"
run windows windows_example "$models/sentiment-en.attend" < "$work/document" > "$work/windows"
expect "windows begins" $'positive' "$(head -1 "$work/windows" | cut -f2)"
expect "windows ends" $'negative' "$(tail -2 "$work/windows" | head -1 | cut -f2)"
windows=$(($(wc -l < "$work/windows") - 1))
if ((windows < 8)); then fail "windows cut the document into $windows windows only"; fi
# End to end, every byte but the blanks between: none is lost, none is there twice.
awk -F'[-\t]' '$1 != "all" { if ($1 != end && $1 != end + 1) exit 1; end = $2 }' "$work/windows" ||
  fail "windows leave something out"
expect "windows read all" "$(($(wc -c < "$work/document") - 1))" \
       "$(tail -2 "$work/windows" | head -1 | cut -f1 | cut -d- -f2)"

# A sentence encoder: all-MiniLM-L6-v2 where it is, else a small one with random weights.
if [[ -f ${ATTEND_MINILM:-}/config.json ]]; then
  encoder=$ATTEND_MINILM
else
  encoder="$work/encoder"
  cp -r "$ATTEND_SOURCE_DIR/tests/data/hf/bert" "$encoder"
  mkdir -p "$encoder/1_Pooling"
  printf '%s' '[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},' \
    '{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]' \
    > "$encoder/modules.json"
  printf '{"word_embedding_dimension": %d, "pooling_mode_mean_tokens": true}' \
    "$(sed -nE 's/.*"hidden_size": ([0-9]+).*/\1/p' "$encoder/config.json")" \
    > "$encoder/1_Pooling/config.json"
fi
quietly "$prefix/bin/attend" convert "$encoder" -o "$work/encoder.attend"
expect "embed" "1.000" "$(run embed embed_example "$work/encoder.attend" "I saw" "I saw" |
                            grep -oE '[0-9.]+$')"
head -400 "$ATTEND_SOURCE_DIR/tests/data/ud_english_ewt/en_ewt.dev.text.tsv" | cut -f1 > "$work/lines"
query=$(sed -n 123p "$work/lines")
expect "search finds a line by itself" $'1.000\t'"$query" \
       "$(run search search_example "$work/encoder.attend" "$work/lines" "$query" \
            2> "$work/latency" | head -1)"
cat "$work/latency"

quietly "$prefix/bin/attend" convert "$ATTEND_SOURCE_DIR/tests/data/family/edges_softmax" \
        -o "$work/graph.attend"
run graph graph_example "$work/graph.attend" > "$work/graph"
expect "graph: a line for every node" 5 "$(grep -cE '^node [0-4]: -?[0-9]+\.[0-9]{3} ' "$work/graph")"
# The same nodes through the program.
awk 'BEGIN {
  printf "{\"input\": ["
  for (i = 0; i < 5; ++i) {
    printf "%s[", (i ? "," : "")
    for (d = 0; d < 10; ++d) printf "%s%.9g", (d ? "," : ""), sin(i * 10 + d)
    printf "]"
  }
  printf "], \"edges\": ["
  for (i = 0; i < 5; ++i) printf "%s[%d,%d],[%d,%d],[%d,%d]", (i ? "," : ""), i, (i + 4) % 5, i, i, i, (i + 1) % 5
  print "]}"
}' | "$prefix/bin/attend" run "$work/graph.attend" |
  tr -d '{}"a-z:' | sed 's/\],\[/\n/g' | tr -d '[]' |
  awk -F, '{ printf "node %d:", NR - 1; for (c = 1; c <= NF; ++c) printf " %.3f", $c; print "" }' \
  > "$work/graph of the program"
diff "$work/graph" "$work/graph of the program" || fail "graph and attend run differ"
echo "ok: graph"

# None is left out.
for folder in "$ATTEND_SOURCE_DIR"/examples/*/; do
  name=$(basename "$folder")
  grep -q "run $name \|\"$name\|expect \"$name" "${BASH_SOURCE[0]}" || fail "$name is not run here"
done
