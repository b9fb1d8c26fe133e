#!/usr/bin/env bash
# Shows that tests/batch_queue_test.cc can fail: breaks the policy in one place after another, and
# expects 500 of its worlds to find each.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source="$ATTEND_SOURCE_DIR/engine/batch_queue.cc"
flags=(-std=c++20 -O1 -I "$ATTEND_SOURCE_DIR" -I "$ATTEND_SOURCE_DIR/include")
export ATTEND_SEEDS=500

"$CXX" "${flags[@]}" -c "$ATTEND_SOURCE_DIR/tests/batch_queue_test.cc" -o "$work/test.o"

run() {  # the queue in $work/queue.cc; 0: the test passes
  "$CXX" "${flags[@]}" "$work/queue.cc" "$work/test.o" -lgtest -lgtest_main -o "$work/test"
  timeout 60 "$work/test" > "$work/log" 2>&1
}

cp "$source" "$work/queue.cc"
run || { cat "$work/log"; echo "the test fails without any mistake"; exit 1; }

broken() {  # WHAT SED-EXPRESSION
  sed -E "$2" "$source" > "$work/queue.cc"
  if cmp -s "$source" "$work/queue.cc"; then echo "$1: the place is not there any more"; exit 1; fi
  if run; then echo "$1: not found"; exit 1; fi
  echo "found: $1 ($(grep -m1 -o 'at [0-9]*: .*"' "$work/log" || echo "it does not end"))"
}

broken "the budget of tokens is not kept" 's/batch\.tokens \+ next\.tokens <= limits_\.batch_tokens/true/'
broken "the budget of tokens is exceeded by one" 's/next\.tokens <= limits_\.batch_tokens/next.tokens <= limits_.batch_tokens + 1/'
broken "the limit of edges is not kept" 's/batch\.edges \+ next\.num_edges <= limits_\.batch_edges/true/'
broken "a batch has one sequence too many" 's/(batch\.items\.size\(\)\)) < limits_\.batch_sequences/\1 <= limits_.batch_sequences/'
broken "a batch stops short of its budget" 's/next\.tokens <= limits_\.batch_tokens/next.tokens < limits_.batch_tokens/'
broken "one worker takes all" 's/ && batch\.tokens < share;/;/'
broken "what is late starts" 's/^  DropExpired\(now, &taken->expired\);//'
broken "what is late is dropped a moment later" 's/begin\(\)->first <= now\) \{/begin()->first < now) {/'
broken "what is late is accepted" 's/ticket\.deadline <= now\) return/false) return/'
broken "a late answer counts as one in time" 's/item->deadline <= now;/false;/'
broken "the last comes first" 's/auto added = queue_\.emplace\(place/auto added = queue_.emplace(place/; s/ticket\.number = next_number_;/ticket.number = ~next_number_;/'
broken "the queue takes one request too many" 's/queued_requests\(\) >= limits_\.queued_requests \|\|$/queued_requests() > limits_.queued_requests ||/'
broken "the queue takes too many tokens" 's/ticket\.tokens > limits_\.queued_tokens - queued_tokens_/false/'
broken "the queue takes too many bytes" 's/ticket\.bytes > limits_\.bytes - bytes_/false/'
broken "bytes of what leaves the queue stay counted" 's/^  bytes_ -= item->bytes;//'
broken "bytes of a batch stay counted" 's/^  bytes_ -= batch\.bytes;//'
broken "a closed queue accepts" 's/^  if \(closed_\) return Admission::kClosed;//'
broken "a worker waits for company though it should not" 's/limits_\.linger == 0 \|\| //; s/oldest \+ limits_\.linger/oldest + limits_.linger + 50/'
broken "a closed queue lingers" 's/ \|\| closed_ \|\| / || /'
broken "what has left is answered at the end of its batch" 's/item->state != State::kRunning\) continue/false) continue/'
broken "a request leaves twice" 's/ticket->state = State::kLeft;/;/'
broken "a batch goes on though nobody waits" 's/if \(item->state == State::kRunning\) last =/last =/'
broken "the end forgets what runs" 's/if \(Leave\(item\.get\(\)\)\) return item;/;/'
