/* The control socket: one JSON object per line in, one out (docs in sr5d(8)).
 *
 *   -> {"sr5":1,"verb":"status","args":{"name":"tank"}}
 *   <- {"sr5":1,"result":{...}}   or   {"sr5":1,"error":{"class":1,"code":...,"message":...}}
 *
 * Never blocks; a client has one request at a time, what it sends meanwhile waits in its socket.
 * Only the daemon's own user and root are heard (SO_PEERCRED).  What cannot be understood gets an
 * error, what is too long or endless is cut off. */
#pragma once

#include <jansson.h>

#include "engine/base/diag.h"

#include "engine/loop/loop.h"

struct ctl_server;
struct ctl_call; /* one request, until it is answered */

/* Every request that is well-formed comes here; answer it by one of the two below, now or later.
 * args is borrowed until then. */
struct ctl_handler {
    void (*handle)(void *ctx, struct ctl_call *call, const char *verb, const json_t *args);
    void *ctx;
};

/* A stale socket file is replaced; one that answers is E_IN_USE. Mode 0600. */
MUST_CHECK int ctl_server_create(struct ctl_server **out, struct loop *loop, const char *path,
                                 const struct ctl_handler *handler, struct diag *diag);
/* Removes the socket and hangs up on everybody, those who wait for an answer too. */
void ctl_server_destroy(struct ctl_server *server);

void ctl_answer(struct ctl_call *call, json_t *result); /* takes the reference */
void ctl_refuse(struct ctl_call *call, const struct diag *diag);
