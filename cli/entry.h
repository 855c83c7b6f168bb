/* One array the daemon knows: found, waiting, served, stopped.
 *
 * Lives on the daemon's first loop, as everything does that is not a connection's. */
#pragma once

#include <jansson.h>

#include "engine/base/list.h"

#include "cli/config.h"
#include "engine/assemble.h"
#include "nbd/server.h"

struct arrays;

enum entry_phase {
    ENTRY_WAITING,  /* not open: members are missing or held by others; tried again */
    ENTRY_REFUSED,  /* not open: it cannot be served as it is; tried when asked */
    ENTRY_SERVED,   /* open and exported */
    ENTRY_STOPPING, /* draining */
    ENTRY_STOPPED,  /* stopped by hand: stays so until it is started by hand */
};

/* One array the daemon knows. */
struct entry {
    struct list_node node;
    struct arrays *owner;
    enum entry_phase phase;
    uint8_t uuid[16];
    char name[33];
    struct specs specs; /* of its members, where they were last found */
    json_t *found;      /* its status object while it is not open */
    struct array *array;
    struct nbd_export export;
    uint64_t since_s;       /* wall clock: when it was found */
    uint64_t wait_until_ns; /* degraded: not before */
    enum degraded_policy degraded;
    bool read_only;
    char *keep;
    char problem[48];                    /* code last logged: say a thing once */
    void (*stopped)(void *ctx, int err); /* who waits for the stop; NULL: nobody */
    void *stopped_ctx;
};

/* Open it when it may start, keep it waiting when it may not yet.  0: it is served or waits; else
 * negative with *diag, and it waits (E_IN_USE, missing members) or is refused. Not when open. */
MUST_CHECK int entry_try(struct entry *entry, const struct found_array *found, struct diag *diag);
/* Drain and stop it; then stopped(), perhaps at once.  Refused with *diag when it is not the time.
 */
MUST_CHECK int entry_stop(struct entry *entry, void (*stopped)(void *ctx, int err), void *ctx,
                          struct diag *diag);
/* The daemon ends and the NBD server is gone already: stop the array of a served entry. */
void entry_close(struct entry *entry);
void entry_destroy(struct entry *entry);
bool entry_is_open(const struct entry *entry);
/* Inside the wait for its missing members?  (Not: waiting for good.) */
bool entry_unsettled(const struct entry *entry);
/* Is `text` its name, its uuid, or the first eight or more digits of that? */
bool entry_named(const char *name, const uint8_t uuid[16], const char *text);
/* The state word (cli.md 2). */
const char *entry_state(const struct entry *entry);
/* How many requests its members have answered; it is open. */
uint64_t entry_answers(const struct entry *entry);
/* Its entry of sr5.status/1 `arrays`; a new reference. */
json_t *entry_status(const struct entry *entry);
