/* Listening sockets: how clients come in. */
#pragma once

#include "engine/base/diag.h"

#include "engine/loop/loop.h"

struct nbd_listener;

/* accepted() owns the descriptor; `peer` says who it is, for people. */
typedef void nbd_accepted(void *ctx, int fd, const char *peer);

/* 0, or a negative errno and *diag.  The listener accepts from the next turn of the loop on. */
MUST_CHECK int nbd_listen_unix(struct nbd_listener **out, struct loop *loop, const char *path,
                               nbd_accepted *accepted, void *ctx, struct diag *diag);
MUST_CHECK int nbd_listen_tcp(struct nbd_listener **out, struct loop *loop, const char *address,
                              nbd_accepted *accepted, void *ctx, struct diag *diag);
void nbd_listener_close(struct nbd_listener *listener); /* removes its socket file; NULL is fine */
