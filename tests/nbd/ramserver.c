/* An NBD server of memory: what the server costs and how foreign clients like it, without an array.
 *
 *   ramserver SOCKET|:PORT|- [SIZE_MIB [THREADS]]
 *
 * "-" serves stdin and stdout.  SIGTERM finishes what is in flight and ends, SIGINT says
 * ESHUTDOWN. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "engine/loop/loop.h"
#include "nbd/server.h"
#include "tests/unit/ram_dev.h"

#define THREADS_MAX 8

static struct loop *loops[THREADS_MAX];
static volatile sig_atomic_t signal_seen;

static void
on_signal(int number)
{
    signal_seen = number;
    loop_stop(loops[0]);
}

static void *
run_loop(void *loop)
{
    (void)loop_run(loop);
    return NULL;
}

static void
set_true(void *flag)
{
    *(bool *)flag = true;
}

static void
stdin_closed(void *ctx)
{
    (void)ctx;
    loop_stop(loops[0]);
}

static int
listen_on(struct nbd_server *server, const char *where, struct diag *diag)
{
    if (strcmp(where, "-") == 0)
        return nbd_server_serve_fd(server, 0, 1, stdin_closed, NULL);
    return strchr(where, ':') != NULL ? nbd_server_listen_tcp(server, where, diag)
                                      : nbd_server_listen_unix(server, where, diag);
}

int
main(int argc, char **argv)
{
    uint32_t threads = argc > 3 ? (uint32_t)atoi(argv[3]) : 1;
    uint64_t size = MIB(argc > 2 ? strtoull(argv[2], NULL, 0) : 64);
    pthread_t others[THREADS_MAX];
    struct nbd_server *server;
    struct diag diag = {0};
    struct ram_dev ram;
    struct mailbox *owner;
    if (argc < 2 || threads == 0 || threads > THREADS_MAX)
        return 2;
    ram_dev_init(&ram, size);
    memset(ram.memory, 0x5a, size); /* no page faults while we measure */
    for (uint32_t i = 0; i < threads; i++)
        if (loop_create(&loops[i], clock_real()) < 0)
            return 1;
    if (mailbox_create(&owner, loops[0]) < 0)
        return 1;
    struct nbd_export export = {.name = "ram",
                                .description = "memory",
                                .dev = &ram.dev,
                                .owner = owner,
                                .owner_loop = loops[0],
                                .size_bytes = size,
                                .preferred_bytes = 4096};
    struct nbd_server_config config = {.loops = loops, .loop_count = threads};
    if (nbd_server_create(&server, &config, &diag) < 0 || nbd_server_add(server, &export) < 0 ||
        listen_on(server, argv[1], &diag) < 0) {
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    for (uint32_t i = 1; i < threads; i++)
        pthread_create(&others[i], NULL, run_loop, loops[i]);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    (void)loop_run(loops[0]);
    bool stopped = false;
    nbd_server_stop(server, signal_seen == SIGINT ? NBD_STOP_FINAL : NBD_STOP_RESTART, 5000,
                    set_true, &stopped);
    (void)loop_run_until(loops[0], &stopped);
    for (uint32_t i = 1; i < threads; i++) {
        loop_stop(loops[i]);
        pthread_join(others[i], NULL);
        loop_destroy(loops[i]);
    }
    mailbox_destroy(owner);
    loop_destroy(loops[0]);
    ram_dev_destroy(&ram);
    return 0;
}
