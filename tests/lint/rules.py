#!/usr/bin/python3
"""Rules of docs/hacking.md that no compiler checks.   tests/lint/rules.py RULE FILE...

allocation  no malloc, calloc, realloc, strdup in data path files but at open: later nothing may fail for memory (I8);
            a line that knows better says why, citing I8
theory      core files open with THEORY OF OPERATION
default     no `default:` in a switch over an enum, so that a new value is a warning wherever it matters; one that takes
            values from outside (wire, disk, arguments) says so in a comment on its line
todo        a TODO needs an issue number
"""
import fnmatch
import re
import sys

# Allocation at open and in control paths is welcome: those live in other files or functions named *_open, *_init, *_create.
DATA_PATH = """
engine/array_read.c engine/array_write.c engine/array_misc.c engine/range_lock.c engine/io/io_*.c engine/loop/*.c
engine/base/buf.c engine/base/pool.c engine/base/iov.c engine/base/req.c layouts/*.c engine/meta/*.c
cache/*.c nbd/transmission.c nbd/reply.c
""".split()
SIMULATED = ["engine/io/io_sim*.c"]  # no device: a test's memory
AT_OPEN = re.compile(r"(open|init|create|alloc|new|start|load|reserve)\w*$")

CORE = """
engine/array_write.c engine/array_read.c engine/array_state.c engine/range_lock.c engine/window.c engine/log_dev.c
engine/assemble.c engine/create.c engine/member.c engine/meta/decide.c engine/meta/super.c engine/meta/bitmap.c
engine/loop/loop.c engine/loop/mailbox.c engine/io/io_libaio.c engine/io/io_sim.c
layouts/plan.c layouts/parity.c layouts/raid*.c cache/cache.c cache/policy_*.c nbd/conn.c nbd/transmission.c
""".split()


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, p) for p in patterns)


def code_only(text):
    """The text with comments and strings blanked, line by line the same."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def allocation(path, text):
    if not matches(path, DATA_PATH) or matches(path, SIMULATED):
        return
    function, real = "", text.split("\n")
    for number, line in enumerate(code_only(text).split("\n"), 1):
        start = re.match(r"^(\w+)\(", line)  # definitions begin in column 1
        if start:
            function = start.group(1)
        call = re.search(r"\b(malloc|calloc|realloc|reallocarray|strdup|strndup|asprintf)\(", line)
        excused = "I8" in "".join(real[max(0, number - 3):number])
        if call and not AT_OPEN.search(function) and not excused:
            yield number, f"{call.group(1)}() in {function}(): data path files allocate only at open"


def theory(path, text):
    if matches(path, CORE) and "THEORY OF OPERATION" not in text[:6000]:
        yield 1, "a core file opens with THEORY OF OPERATION"


def default(path, text):
    lines = code_only(text).split("\n")
    real = text.split("\n")
    for number, line in enumerate(lines):
        if not re.match(r"\s*default:", line):
            continue
        indent = len(line) - len(line.lstrip())
        labels = []
        for above in reversed(lines[:number]):
            if re.match(rf"\s{{{indent}}}case ", above):
                labels.append(above.strip()[5:].rstrip(":"))
            elif re.match(rf"\s{{{indent}}}switch ", above):
                break
        over_enum = labels and all(re.match(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", label) for label in labels)
        if over_enum and "/*" not in real[number]:
            yield number + 1, "default: in a switch over an enum (or say in a comment which values from outside it takes)"


def todo(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line) and not re.search(r"#\d+", line):
            yield number, "a TODO needs an issue number"


def main():
    rule, bad = globals()[sys.argv[1]], 0
    for path in sys.argv[2:]:
        with open(path, errors="replace") as f:
            for number, what in rule(path, f.read()):
                print(f"{path}:{number}: {what}")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
