/* The arrays of the daemon.  On its first loop. */
#pragma once

#include "cli/entry.h"

struct arrays {
    struct loop *loop;
    struct mailbox *mailbox;
    struct io_context *io;
    struct nbd_server *nbd;
    const struct config *config;
    struct list entries;
    struct loop_timer rescan;
    bool closing;
    int close_err;
    void (*closed)(void *ctx, int err);
    void *closed_ctx;
};

struct start_request {
    const char *const *names; /* NULL-terminated; names or uuids, or paths; NULL: all found */
    const char *const *paths; /* parallel to names: each as a path */
    const bool *is_path;      /* only as a path */
    enum degraded_policy degraded;
    bool read_only, dry_run;
    const char *keep;
};

void arrays_init(struct arrays *arrays, struct loop *loop, struct mailbox *mailbox,
                 struct io_context *io, struct nbd_server *nbd, const struct config *config);
/* Look for arrays and start what is to be started; goes on looking while something waits.
 * Blocks for as long as reading the members' metadata takes. */
void arrays_scan(struct arrays *arrays);
/* The entry of what was found, made when it is new. */
struct entry *arrays_entry(struct arrays *arrays, const struct found_array *found);
/* Where members may be, but for those of arrays that are open. */
void arrays_gather(struct arrays *arrays, struct specs *specs);
/* After a change of some entry's phase: look again later, or not any more. */
void arrays_changed(struct arrays *arrays);
/* sr5 start (arrays_start.c).  0 and a list of {"name","uuid","state","text","next"}; or negative
 * with *diag. */
MUST_CHECK int arrays_start(struct arrays *arrays, const struct start_request *request,
                            json_t **list, struct diag *diag);
/* The daemon ends: the NBD server is gone already; stop all arrays, then closed(). */
void arrays_close(struct arrays *arrays, void (*closed)(void *ctx, int err), void *ctx);
/* How many requests members have answered: it stands still when they all hang. */
uint64_t arrays_answers(struct arrays *arrays);
/* By name, uuid, or at least eight digits of it; E_NO_SUCH_ARRAY, E_AMBIGUOUS. */
MUST_CHECK int arrays_find(struct arrays *arrays, const char *text, struct entry **entry,
                           struct diag *diag);
/* The same for what must be open: E_NOT_SERVED. */
MUST_CHECK int arrays_find_open(struct arrays *arrays, const char *text, struct entry **entry,
                                struct diag *diag);
/* Is anything still inside its wait?  (Not: waiting for good.) */
bool arrays_unsettled(const struct arrays *arrays);
