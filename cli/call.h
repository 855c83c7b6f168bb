/* One invocation of sr5: the verb, what was typed, and how to answer.
 *
 * A verb answers once: call_result() with the JSON object and a function that prints it for people,
 * or call_fail() with a diag.  Both return the exit code (cli.md 1.8). */
#pragma once

#include "cli/json_fields.h"
#include "cli/verbs.h"

struct call {
    const struct verb *verb;
    struct options options;
    bool json;
    bool changed;        /* something has been written: errors say so */
    const char *control; /* the daemon's socket */
};

const char *call_operand(const struct call *call, uint32_t index);

/* Print `message` and its fixes on stderr, with --json also the error object on stdout. */
int call_fail(const struct call *call, const struct diag *diag);
int call_usage(const struct call *call, const char *format, ...) PRINTF_LIKE(2, 3);
/* With --json: *result as sr5.<verb>/1 on stdout.  Takes the reference.  True when it printed. */
bool call_json(const struct call *call, json_t *result);

/* Ask the daemon.  0 and *result (a new reference), or negative with *diag.  Takes args over. */
MUST_CHECK int call_daemon(const struct call *call, const char *verb, json_t *args, json_t **result,
                           struct diag *diag);
/* The status object of one array, by name or uuid; a new reference.  For verbs about one array. */
MUST_CHECK int call_array(const struct call *call, const char *name, json_t **array,
                          struct diag *diag);
/* Destructive: the array's name typed on a terminal, or --confirm NAME.  0 or E_CONFIRM. */
MUST_CHECK int call_confirm(const struct call *call, const char *name, const char *what,
                            struct diag *diag);

json_t *diag_json(const struct diag *diag, bool changed); /* {"code","message","fix","changed"} */
