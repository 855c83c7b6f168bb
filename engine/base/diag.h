/* What went wrong, for a person: a stable code, one sentence, and what to do next.
 *
 * Control operations take a `struct diag *` and fill it when they return an error.  The code is
 * from the closed list in codes.h, which `sr5 explain` documents. */
#pragma once

#include "engine/base/compiler.h"

#define DIAG_FIX_MAX 3

enum diag_class { /* decides the exit code of sr5 (cli.md 1.8) */
                  DIAG_FAILED = 1,
                  DIAG_USAGE = 2,
                  DIAG_REFUSED = 3,
                  DIAG_DEGRADED = 4,
                  DIAG_OFFLINE = 5,
                  DIAG_BUSY = 6,
                  DIAG_NO_DAEMON = 7,
};

struct diag {
    enum diag_class class;
    const char *code; /* "E_USAGE"; static */
    char message[512];
    char fix[DIAG_FIX_MAX][256]; /* the next commands, "" when there are no more */
    int err;                     /* negative errno */
};

/* Fill *diag (may be NULL) and return err, so that `return diag_set(...)` reads well.
 * `code` must be a string literal from codes.def; another one is reported in the log as a bug of
 * ours, and tests/lint/codes.sh finds it before. */
int diag_set(struct diag *diag, enum diag_class class, const char *code, int err,
             const char *format, ...) PRINTF_LIKE(5, 6);
/* Add a next command; silently drops what does not fit, as half a command is worse than none. */
void diag_fix(struct diag *diag, const char *format, ...) PRINTF_LIKE(2, 3);
