/* A server with one export of memory and a client on a socketpair, all in one thread: the client
 * never blocks, and the loop runs a little whenever it would. */
#pragma once

#include "engine/loop/loop.h"
#include "nbd/proto.h"
#include "nbd/server.h"
#include "tests/unit/ram_dev.h"

struct nbd_fixture {
    struct loop *loop;
    struct nbd_server *server;
    struct ram_dev ram;
    struct nbd_export export;
    int fd;          /* the client's end of the first connection; -1 when closed */
    uint32_t closed; /* connections that have gone */
};

#define FIXTURE_BYTES MIB(80)

/* config: NULL for defaults; loops are filled in. */
void fixture_start(struct nbd_fixture *fx, const struct nbd_server_config *config);
void fixture_stop(struct nbd_fixture *fx);   /* checks that the server ends by itself */
int fixture_connect(struct nbd_fixture *fx); /* another client */
void fixture_run(struct nbd_fixture *fx, uint32_t ms);
/* True when all bytes were taken or came within 5 s. */
bool fixture_send(struct nbd_fixture *fx, int fd, const void *data, size_t bytes);
bool fixture_recv(struct nbd_fixture *fx, int fd, void *data, size_t bytes);
bool fixture_is_closed(struct nbd_fixture *fx, int fd); /* end of file and nothing before it */
bool fixture_wait_closed(struct nbd_fixture *fx, uint32_t count);

bool client_option(struct nbd_fixture *fx, int fd, uint32_t option, const void *data, size_t bytes);
/* The type of the final reply, 0 when the connection was closed.  Skips INFO and SERVER replies. */
uint32_t client_option_reply(struct nbd_fixture *fx, int fd, uint32_t option);
bool client_hello(struct nbd_fixture *fx, int fd, uint32_t flags); /* greeting, flags */
bool client_go(struct nbd_fixture *fx, int fd);                    /* hello and GO */

bool client_request(struct nbd_fixture *fx, int fd, uint16_t type, uint16_t flags, uint64_t off,
                    uint32_t len, uint64_t cookie);
/* The error of the next reply, UINT32_MAX when none came; its cookie. */
uint32_t client_reply(struct nbd_fixture *fx, int fd, uint64_t *cookie);
/* One request and its answer.  data is sent with WRITE, filled by READ; may be NULL otherwise. */
uint32_t client_do(struct nbd_fixture *fx, uint16_t type, uint16_t flags, uint64_t off,
                   uint32_t len, void *data);
