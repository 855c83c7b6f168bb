/* Every error and problem code, what it means, and what `sr5 explain` says about it.
 *
 * The list is codes.def, one CODE(name, summary, explanation) a line, sorted by name.  It is
 * closed: programs parse these names (cli.md 1.3), diag_set() refuses others. */
#pragma once

struct code_text {
    const char *code;
    const char *summary;
    const char *explanation;
};

/* NULL when there is no such code. */
const struct code_text *code_find(const char *code);
/* In the order of the list; NULL at its end. */
const struct code_text *code_at(unsigned index);
