#!/usr/bin/env bash
# What README.md and docs/*.md name exists: paths, files without a folder (`stripe_op.c`), links, functions (`name()`).
#
# A path may be a glob, a program under build/ (its source has to exist, and what tools make there is not looked at), or
# written without its extension; a capital word (NAME) stands for anything.
# shellcheck disable=SC2016 # backquotes are what is looked for
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C
documents=(README.md docs/*.md)
bad=0

missing() { # DOCUMENT WHAT
    echo "$1: $2 does not exist"
    bad=1
}

path_exists() {
    local path=$1
    case $path in
    build/fuzz/c* | build/*/test-logs*) return 0 ;; # made by tools
    build/*/sr5 | build/*/sr5d) return 0 ;;
    build/*/*/*) path=${path#build/*/} ;;
    build/*) return 0 ;;
    esac
    path=${path//NAME/*}
    compgen -G "$path" >/dev/null || compgen -G "${path%/}.c" >/dev/null || compgen -G "${path%/}.h" >/dev/null
}

# Words of code blocks and of `...` that begin with a folder of ours.
folders='(engine|layouts|cache|nbd|cli|tests|bench|docs|build|\.ci)'
for document in "${documents[@]}"; do
    while IFS= read -r path; do
        case $path in */seeds/*) continue ;; esac # made when the first crash is kept
        path_exists "$path" || missing "$document" "$path"
    done < <(grep -oE "(^|[\` =(])$folders/[A-Za-z0-9_./*+-]*[A-Za-z0-9_*/]" "$document" | sed 's/^[` =(]//' | sort -u)

    while IFS= read -r link; do
        [ -e "$(dirname "$document")/$link" ] || missing "$document" "the target of a link, $link,"
    done < <(grep -oE '\]\([^)#:]+\)' "$document" | sed 's/^](//; s/)$//' | sort -u)
done

# Files without a folder are anywhere; functions and macros are defined, declared or a member of a table.
files=$(git ls-files | sed 's|.*/||' | sort -u)
names=$(git ls-files '*.c' '*.h' | xargs grep -ohE '[a-z_0-9]+\)?\(' | tr -d '()' | sort -u)
for document in "${documents[@]}"; do
    while IFS= read -r file; do
        grep -qxF "$file" <<<"$files" || missing "$document" "$file"
    done < <(grep -oE '`[a-z_0-9]+\.(c|h|py|sh|awk|def)`' "$document" | tr -d '`' | grep -v '^policy_NAME' | sort -u)

    while IFS= read -r name; do
        grep -qx "$name" <<<"$names" || missing "$document" "$name()"
    done < <(grep -oE '`[a-z_0-9]+\(\)' "$document" | tr -d '`()' | sort -u)
done
exit $bad
