# shellcheck shell=bash
# What jobs have at hand inside User Mode Linux.  Sourced by tests/kernel/init.  Keep sockets, members and logs on
# /run (tmpfs): unix sockets do not cross hostfs, and the host's tree is read-only here.

modules=$(echo /usr/lib/uml/modules/*/kernel)

load_modules() {
    local m
    for m in crypto/async_tx/{async_tx,async_memcpy,async_xor,async_pq,async_raid6_recov} \
        drivers/md/{md-mod,raid0,raid1,raid10,raid456} drivers/block/loop; do
        insmod "$modules/$m.ko" || return
    done
    insmod "$modules/drivers/block/nbd.ko" nbds_max=4 max_part=8
}

passed=0 failed=0

# check SENTENCE COMMAND...: counts, prints one line, shows what a failing command said.
check() {
    local name=$1
    shift
    if "$@" >/run/said 2>&1; then
        passed=$((passed + 1))
        echo "ok: $name"
    else
        failed=$((failed + 1))
        echo "FAILED: $name: $*"
        tail -n 20 /run/said | sed 's/^/    /'
    fi
}

# The last line of a job, and its exit code.
verdict() {
    echo "$1: $passed passed, $failed failed"
    [ "$failed" = 0 ]
}

same() {
    [ "$1" = "$2" ] || { printf 'expected %s\n     got %s\n' "$2" "$1"; return 1; }
}

# Nobody writes to it: a pause without a process, which costs much here.
mkfifo /run/never
exec {never}<>/run/never

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] || { echo "waited in vain for: $*"; return 1; }
        read -rt 0.1 -u "$never" || true
    done
}
