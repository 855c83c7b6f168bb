#!/usr/bin/env bash
# tests/run: limit 300
# The kernel's NBD client on sr5d, in User Mode Linux: nbd_job.sh says what.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v linux.uml >/dev/null; then
    echo "kernel_nbd: skipped: linux.uml is missing (package user-mode-linux)"
    [ "${CI:-}" = true ] && { echo "kernel_nbd: 0 passed, 1 failed"; exit 1; }
    echo "kernel_nbd: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
exec "$here/uml" --mem 384M "$TEST_TMP" "$here/nbd_job.sh" "$(realpath "$SR5_BUILD")"
