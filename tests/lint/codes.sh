#!/bin/sh
# Error codes for people are a closed list: every "E_..." literal in the sources is in
# engine/base/codes.def, and that list is sorted and names each code once.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
list=engine/base/codes.def
status=0

listed=$(sed -n 's/^CODE(\(E_[A-Z0-9_]*\),.*/\1/p' "$list")
if ! printf '%s\n' "$listed" | sort -cu 2>/dev/null; then
    echo "$list: not sorted by name, or a code is there twice:"
    printf '%s\n' "$listed" | sort -cu 2>&1 || true
    status=1
fi

for folder in engine layouts cache nbd cli; do
    [ -d "$folder" ] || continue
    grep -rnoE --include='*.[ch]' '"E_[A-Z0-9_]+"' "$folder" || true
done | {
    bad=0
    while IFS=: read -r file line literal; do
        code=${literal#\"}
        code=${code%\"}
        if ! printf '%s\n' "$listed" | grep -qx "$code"; then
            echo "$file:$line: $code is not in $list"
            bad=1
        fi
    done
    exit $bad
} || status=1
exit $status
