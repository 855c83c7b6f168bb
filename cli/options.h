/* Command-line options out of a table: the same table makes --help, the completion and the man
 * page's list, so they cannot disagree.
 *
 * Names are exact: no abbreviations, since an abbreviation of today is another option tomorrow.
 * `--name VALUE`, `--name=VALUE`, `--` ends options, `-` is an operand. */
#pragma once

#include "engine/base/diag.h"

enum option_flag {
    OPTION_REPEAT = 1u << 0, /* may be given several times */
    OPTION_HIDDEN = 1u << 1, /* not in help, completion and man page */
};

struct option_spec {
    const char *name; /* without the dashes; NULL ends a table */
    const char *arg;  /* NULL: a switch; "SIZE", "PATH|GLOB"; "now|wait|never": one of these */
    const char *help; /* half a sentence */
    unsigned flags;   /* enum option_flag */
};

struct option_value {
    const struct option_spec *spec;
    char *value; /* "" for a switch */
};

struct options {
    const struct option_spec *tables[3]; /* searched in order; NULL: fewer */
    struct option_value *values;         /* in the order given */
    uint32_t value_count;
    char **operands;
    uint32_t operand_count;
};

/* 0, or -EINVAL with an E_USAGE that lists what is known. tables stay the caller's and must live
 * as long as the options. */
MUST_CHECK int options_parse(struct options *options, char *const *args, uint32_t count,
                             struct diag *diag);
/* Add one value as if it had been given; `where` is for the message ("sr5d.conf:3"). */
MUST_CHECK int options_add(struct options *options, const char *name, const char *value,
                           const char *where, struct diag *diag);
void options_destroy(struct options *options); /* accepts a zeroed one */

/* Is it a closed list, in small letters? */
bool option_is_choice(const char *arg);
bool options_have(const struct options *options, const char *name);
/* The value, or NULL when not given.  Naming an option that no table has is a bug of ours. */
const char *options_get(const struct options *options, const char *name);
/* The n-th value of a repeatable option, NULL past the last. */
const char *options_nth(const struct options *options, const char *name, uint32_t n);

/* The value of an option as a size, or `otherwise` when it was not given. */
MUST_CHECK int options_size(const struct options *options, const char *name, uint64_t otherwise,
                            uint64_t *bytes, struct diag *diag);
/* As a number from low to high; *number stays as it is when it was not given. */
MUST_CHECK int options_number(const struct options *options, const char *name, uint64_t low,
                              uint64_t high, uint64_t *number, struct diag *diag);
