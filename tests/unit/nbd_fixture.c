#include "tests/unit/nbd_fixture.h"

#include <string.h>
#include <sys/socket.h>

#define PATIENCE_MS 5000

struct run_timer {
    struct loop_timer timer;
    bool fired;
};

static void
run_fired(struct loop_timer *timer)
{
    CONTAINER_OF(timer, struct run_timer, timer)->fired = true;
}

void
fixture_run(struct nbd_fixture *fx, uint32_t ms)
{
    struct run_timer until = {.timer.fired = run_fired};
    loop_timer_set(fx->loop, &until.timer, loop_now_ns(fx->loop) + ms * MS_NS);
    check_eq(loop_run_until(fx->loop, &until.fired), 0);
}

static void
count_closed(void *ctx)
{
    ((struct nbd_fixture *)ctx)->closed++;
}

int
fixture_connect(struct nbd_fixture *fx)
{
    int fds[2];
    check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    check_eq(nbd_server_serve_fd(fx->server, fds[1], fds[1], count_closed, fx), 0);
    return fds[0];
}

void
fixture_start(struct nbd_fixture *fx, const struct nbd_server_config *config)
{
    struct nbd_server_config with_loop = config != NULL ? *config : (struct nbd_server_config){0};
    *fx = (struct nbd_fixture){0};
    check_eq(loop_create(&fx->loop, clock_real()), 0);
    with_loop.loops = &fx->loop;
    with_loop.loop_count = 1;
    check_eq(nbd_server_create(&fx->server, &with_loop, NULL), 0);
    ram_dev_init(&fx->ram, FIXTURE_BYTES);
    fx->export = (struct nbd_export){.name = "ram",
                                     .description = "memory",
                                     .dev = &fx->ram.dev,
                                     .size_bytes = FIXTURE_BYTES,
                                     .preferred_bytes = 4096};
    check_eq(nbd_server_add(fx->server, &fx->export), 0);
    fx->fd = fixture_connect(fx);
}

static void
set_true(void *flag)
{
    *(bool *)flag = true;
}

void
fixture_stop(struct nbd_fixture *fx)
{
    bool stopped = false;
    nbd_server_stop(fx->server, NBD_STOP_RESTART, PATIENCE_MS, set_true, &stopped);
    check_eq(loop_run_until(fx->loop, &stopped), 0);
    if (fx->fd >= 0)
        close(fx->fd);
    loop_destroy(fx->loop);
    ram_dev_destroy(&fx->ram);
}

bool
fixture_send(struct nbd_fixture *fx, int fd, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    for (uint32_t waited = 0; bytes != 0 && waited < PATIENCE_MS;) {
        ssize_t sent = send(fd, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return false;
        at += MAX(sent, 0);
        bytes -= (size_t)MAX(sent, 0);
        waited += sent < 0;
        fixture_run(fx, sent < 0);
    }
    return bytes == 0;
}

bool
fixture_recv(struct nbd_fixture *fx, int fd, void *data, size_t bytes)
{
    uint8_t *at = data;
    for (uint32_t waited = 0; bytes != 0 && waited < PATIENCE_MS;) {
        ssize_t got = recv(fd, at, bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return false;
        at += MAX(got, 0);
        bytes -= (size_t)MAX(got, 0);
        waited += got < 0;
        if (got < 0)
            fixture_run(fx, 1);
    }
    return bytes == 0;
}

bool
fixture_is_closed(struct nbd_fixture *fx, int fd)
{
    uint8_t byte;
    for (uint32_t waited = 0; waited < PATIENCE_MS; waited++) {
        ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (got >= 0 || errno != EAGAIN)
            return got <= 0;
        fixture_run(fx, 1);
    }
    return false;
}

bool
fixture_wait_closed(struct nbd_fixture *fx, uint32_t count)
{
    for (uint32_t waited = 0; fx->closed < count && waited < PATIENCE_MS; waited++)
        fixture_run(fx, 1);
    return fx->closed == count;
}

bool
client_hello(struct nbd_fixture *fx, int fd, uint32_t flags)
{
    struct nbd_greeting greeting;
    struct be32 answer = be32_make(flags);
    return fixture_recv(fx, fd, &greeting, sizeof(greeting)) &&
           be64_get(greeting.magic) == NBD_GREETING_MAGIC &&
           be64_get(greeting.option_magic) == NBD_OPTION_MAGIC && be16_get(greeting.flags) == 3 &&
           fixture_send(fx, fd, &answer, sizeof(answer));
}

bool
client_option(struct nbd_fixture *fx, int fd, uint32_t option, const void *data, size_t bytes)
{
    struct nbd_option_header header = {.magic = be64_make(NBD_OPTION_MAGIC),
                                       .option = be32_make(option),
                                       .length = be32_make((uint32_t)bytes)};
    return fixture_send(fx, fd, &header, sizeof(header)) && fixture_send(fx, fd, data, bytes);
}

uint32_t
client_option_reply(struct nbd_fixture *fx, int fd, uint32_t option)
{
    for (;;) {
        struct nbd_option_reply reply;
        uint8_t data[8192];
        if (!fixture_recv(fx, fd, &reply, sizeof(reply)))
            return 0;
        check_eq(be64_get(reply.magic), NBD_OPTION_REPLY_MAGIC);
        check_eq(be32_get(reply.option), option);
        check_le(be32_get(reply.length), sizeof(data));
        if (!fixture_recv(fx, fd, data, be32_get(reply.length)))
            return 0;
        uint32_t type = be32_get(reply.type);
        if (type != NBD_REP_INFO && type != NBD_REP_SERVER)
            return type;
    }
}

bool
client_go(struct nbd_fixture *fx, int fd)
{
    static const uint8_t go[] = {0, 0, 0, 3, 'r', 'a', 'm', 0, 0};
    return client_hello(fx, fd, 3) && client_option(fx, fd, NBD_OPT_GO, go, sizeof(go)) &&
           client_option_reply(fx, fd, NBD_OPT_GO) == NBD_REP_ACK;
}

bool
client_request(struct nbd_fixture *fx, int fd, uint16_t type, uint16_t flags, uint64_t off,
               uint32_t len, uint64_t cookie)
{
    struct nbd_request_header header = {.magic = be32_make(NBD_REQUEST_MAGIC),
                                        .flags = be16_make(flags),
                                        .type = be16_make(type),
                                        .cookie = be64_make(cookie),
                                        .offset = be64_make(off),
                                        .length = be32_make(len)};
    return fixture_send(fx, fd, &header, sizeof(header));
}

uint32_t
client_reply(struct nbd_fixture *fx, int fd, uint64_t *cookie)
{
    struct nbd_simple_reply reply;
    if (!fixture_recv(fx, fd, &reply, sizeof(reply)))
        return UINT32_MAX;
    check_eq(be32_get(reply.magic), NBD_SIMPLE_REPLY_MAGIC);
    *cookie = be64_get(reply.cookie);
    return be32_get(reply.error);
}

uint32_t
client_do(struct nbd_fixture *fx, uint16_t type, uint16_t flags, uint64_t off, uint32_t len,
          void *data)
{
    static uint64_t cookie_next = 0xfeedface00000000;
    uint64_t cookie = cookie_next++, answered;
    if (!client_request(fx, fx->fd, type, flags, off, len, cookie))
        return UINT32_MAX;
    if (type == NBD_CMD_WRITE && !fixture_send(fx, fx->fd, data, len))
        return UINT32_MAX;
    uint32_t error = client_reply(fx, fx->fd, &answered);
    if (error == UINT32_MAX || answered != cookie)
        return UINT32_MAX;
    if (type == NBD_CMD_READ && error == 0 && !fixture_recv(fx, fx->fd, data, len))
        return UINT32_MAX;
    return error;
}
