# Does each folder include only what layers.txt allows?  awk -f layers.awk layers.txt FILE...
FNR == NR { for (i = 1; i <= NF; i++) ok[$1, $i] = 1; ok[$1, $1] = 1; known[$1] = 1; next }
function dir(p) { sub("/[^/]*$", "", p); return p }
/^#include "/ && dir(FILENAME) in known {
    split($0, q, "\"")
    if (!((dir(FILENAME), dir(q[2])) in ok)) {
        printf "%s:%d: %s may not include %s\n", FILENAME, FNR, dir(FILENAME), q[2]; bad = 1
    }
}
END { exit bad }
