/* The verbs of sr5, in one table: the command line, --help, the completion and the man page's list
 * all come from here. */
#pragma once

#include <stdio.h>

#include "cli/options.h"

struct call;

enum verb_flag {
    VERB_DAEMON = 1u << 0, /* speaks to sr5d */
    VERB_HIDDEN = 1u << 1, /* for tests and packaging */
};

struct verb {
    const char *name;
    const char *operands; /* "NAME MEMBER" */
    const char *summary;  /* one effect, half a sentence */
    unsigned flags;       /* enum verb_flag */
    uint32_t operands_min, operands_max;
    const struct option_spec *options; /* its own; NULL: none */
    int (*run)(struct call *call);     /* the exit code */
};

/* Options every verb takes. */
extern const struct option_spec common_options[];

const struct verb *verb_find(const char *name); /* NULL: unknown */
const struct verb *verb_at(unsigned index);     /* NULL at the end */
void verb_usage(const struct verb *verb, FILE *to);
void verbs_usage(FILE *to);
