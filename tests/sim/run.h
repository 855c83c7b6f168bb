/* One seed's run: an array, its clients, the model, and what went wrong first. */
#pragma once

#include "tests/sim/model.h"
#include "tests/sim/sim_array.h"

#define CLIENTS_MAX 16u
#define HOT_SPOTS   3u
#define WHY_BYTES   1024u

struct run;

struct client {
    struct req req;
    struct iovec iov[3];
    struct model_io io;
    struct run *run;
    uint8_t *memory; /* the allocation; the payload is `skew` bytes into it */
    uint32_t skew;
    bool busy;
};

struct run {
    uint64_t seed;
    struct rng rng;
    struct trace trace;
    struct sim_array sim;
    struct tap_watch watch;
    struct model model;
    char why[WHY_BYTES]; /* "": all is well */
    char model_why[WHY_BYTES];

    struct client clients[CLIENTS_MAX];
    uint32_t in_flight;
    uint32_t last_id; /* of writes */
    uint64_t hot[HOT_SPOTS], cursor;
    uint64_t requests;
    uint32_t skew_percent; /* how many requests are ragged */

    bool idle; /* in_flight has come down to 0 */
    bool stopping, stopped;
    int stop_err;
    bool expect_errors; /* RAID 0 with faults: requests may fail, but not lie */
    bool flush_failed;  /* then no flush may succeed until the array is opened anew (P3) */
    uint64_t doomed;    /* roles that something was done to: they may fail soon */

    /* allowance.c */
    bool synced;        /* redundancy was seen to agree with the data, since the array was opened */
    bool unclean;       /* it died since the last clean stop */
    uint64_t *unsynced; /* member sectors (columns of a stripe) that may disagree */
    uint64_t column_count;
    uint64_t roles_before; /* in use when it was last open */
};

/* The first failure counts. */
void run_fail(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);
static inline bool
run_failed(const struct run *run)
{
    return run->why[0] != '\0';
}
/* Everything one seed decides, happens and is checked.  False: it failed, and has printed why.
 * *hash: of the trace. */
bool run_seed(uint64_t seed, uint64_t *hash);

/* Tell what runs right now: for a handler of aborts. */
void run_print_running(void);

/* ---- client.c ------------------------------------------------------------------------------ */
/* A random request, when a client is free.  False: none was. */
bool client_submit_any(struct run *run);
bool client_submit(struct run *run, enum req_op op, uint32_t flags, uint64_t off_bytes,
                   uint64_t len_bytes);
/* They died with the array. */
void client_forget_all(struct run *run);

/* ---- clockwork.c --------------------------------------------------------------------------- */
void run_for(struct run *run, uint64_t ns);
void run_drain(struct run *run); /* until no client waits; a hang is a failure */
void run_stop(struct run *run);  /* begin to stop */
void run_until_stopped(struct run *run);
void run_read_all(struct run *run);
/* What array_status() says, checked for sanity. */
const struct array_status *run_status(struct run *run);
/* Roles whose members are in use and have nothing against them. */
uint64_t run_sound_roles(struct run *run);

/* ---- faults.c ------------------------------------------------------------------------------ */
/* Something bad for a member, if the array can bear it. */
void fault_any(struct run *run);
/* What is left of faults when everything starts anew: some members stay away. */
uint64_t fault_absent(struct run *run);
void fault_watch_init(struct run *run);
