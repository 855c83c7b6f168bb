#!/usr/bin/env bash
# tests/run itself: nothing that goes wrong in a test program may look like success.
set -uo pipefail
tmp=${TEST_TMP:?} passed=0 failed=0

# try SENTENCE EXPECTED-LAST-LINE SCRIPT-BODY
try() {
    local said
    printf '#!/bin/bash\n%s\n' "$3" >"$tmp/program"
    chmod +x "$tmp/program"
    said=$(tests/run --build "$tmp/build" --limit 1 "$tmp/program" | tail -n 1)
    if [ "$said" = "$2" ]; then
        passed=$((passed + 1))
        echo "ok: $1"
    else
        failed=$((failed + 1))
        echo "FAILED: $1: expected '$2', got '$said'"
    fi
}

try "passes are counted" "3 passed, 0 failed" 'echo "x: 3 passed, 0 failed"'
try "failures are counted" "3 passed, 2 failed" 'echo "x: 3 passed, 2 failed"; exit 1'
try "skips are counted" "3 passed, 0 failed, 1 skipped" 'echo "x: 3 passed, 0 failed, 1 skipped"'
try "the last count is the verdict" "9 passed, 0 failed" 'echo "x: 1 passed, 0 failed"; echo "x: 9 passed, 0 failed"'
try "no count is a failure" "0 passed, 1 failed" 'echo fine'
try "a count of nothing is a failure" "0 passed, 1 failed" 'echo "x: 0 passed, 0 failed"'
try "an exit code without a failed test is a failure" "2 passed, 1 failed" 'echo "x: 2 passed, 0 failed"; exit 3'
try "death by a signal is a failure" "2 passed, 1 failed" 'echo "x: 2 passed, 0 failed"; kill -SEGV $$'
try "too long is a failure" "2 passed, 1 failed" 'echo "x: 2 passed, 0 failed"; sleep 60'
try "a process left behind is a failure" "2 passed, 1 failed" 'sleep 60 & echo "x: 2 passed, 0 failed"'
try "TAP is counted" "1 passed, 1 failed, 1 skipped" \
    'echo 1..3; echo "ok 1 - a"; echo "ok 2 # skip b"; echo "not ok 3 - c"; exit 1'
try "TAP that ends early is a failure" "1 passed, 2 failed" 'echo 1..3; echo "ok 1 - a"'
try "a program may ask for more time" "1 passed, 0 failed" $'# tests/run: limit 10\nsleep 1.5; echo "x: 1 passed, 0 failed"'
said=$(tests/run --build "$tmp/build" "$tmp/not-there" | tail -n 1)
if [ "$said" = "0 passed, 1 failed" ]; then
    passed=$((passed + 1))
    echo "ok: a program that is not there is a failure"
else
    failed=$((failed + 1))
    echo "FAILED: a program that is not there: got '$said'"
fi
echo "run: $passed passed, $failed failed"
[ $failed = 0 ]
