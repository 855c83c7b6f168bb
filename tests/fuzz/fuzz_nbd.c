/* Fuzzing what a client may send: negotiation and transmission, over a socketpair.
 *
 * libFuzzer:   clang -fsanitize=fuzzer,address ... gives LLVMFuzzerTestOneInput() its inputs.
 * Alone:       -DFUZZ_STANDALONE: `fuzz_nbd [RUNS [SEED]]` mutates built-in sessions, `fuzz_nbd
 *              FILE` replays one input.
 *
 * An input is what the client sends, from its flags on; it need not read the greeting.  After each
 * input the server must still serve a well-behaved client. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/base/msg.h"
#include "engine/base/rng.h"

#include "tests/unit/nbd_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void
quiet(enum msg_level level, const char *line, void *ctx)
{
    (void)level;
    (void)line;
    (void)ctx;
}

/* Send as far as the server takes it, dropping what it answers. */
static void
feed(struct nbd_fixture *fx, int fd, const uint8_t *data, size_t bytes)
{
    uint8_t answers[4096];
    while (bytes != 0) {
        ssize_t sent = send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return;
        data += MAX(sent, 0);
        bytes -= (size_t)MAX(sent, 0);
        fixture_run(fx, 0);
        while (recv(fd, answers, sizeof(answers), MSG_DONTWAIT) > 0)
            ;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct nbd_fixture fx;
    static uint32_t runs;
    if (fx.loop == NULL) {
        struct nbd_server_config config = {.payload_bytes = MIB(4), .in_flight_max = 8};
        msg_set_sink(quiet, NULL);
        fixture_start(&fx, &config);
        check(client_go(&fx, fx.fd));
    }
    int fd = fixture_connect(&fx);
    fx.ram.hold = runs++ % 4 == 0; /* sometimes the device answers after the client has gone */
    feed(&fx, fd, data, bytes);
    close(fd);
    fixture_run(&fx, 0);
    ram_dev_release(&fx.ram, true);
    check(fixture_wait_closed(&fx, runs));
    check_eq(client_do(&fx, NBD_CMD_FLUSH, 0, 0, 0, NULL), 0);
    return 0;
}

#ifdef FUZZ_STANDALONE
/* ---- sessions to begin with ---------------------------------------------------------------- */
#define SESSION_BYTES_MAX 65536u

struct session {
    uint8_t data[SESSION_BYTES_MAX];
    size_t bytes;
};

static void
add(struct session *session, const void *data, size_t bytes)
{
    check_le(bytes, SESSION_BYTES_MAX - session->bytes);
    memcpy(session->data + session->bytes, data, bytes);
    session->bytes += bytes;
}

static void
add_option(struct session *session, uint32_t option, const char *data, size_t bytes)
{
    struct nbd_option_header header = {be64_make(NBD_OPTION_MAGIC), be32_make(option),
                                       be32_make((uint32_t)bytes)};
    add(session, &header, sizeof(header));
    add(session, data, bytes);
}

static void
add_request(struct session *session, uint16_t type, uint16_t flags, uint64_t off, uint32_t len)
{
    struct nbd_request_header header = {.magic = be32_make(NBD_REQUEST_MAGIC),
                                        .flags = be16_make(flags),
                                        .type = be16_make(type),
                                        .cookie = be64_make(session->bytes),
                                        .offset = be64_make(off),
                                        .length = be32_make(len)};
    static const uint8_t zeroes[20000];
    add(session, &header, sizeof(header));
    if (type == NBD_CMD_WRITE && len <= sizeof(zeroes))
        add(session, zeroes, len);
}

/* Which of the parts it has comes from the random numbers. */
static void
make_session(struct session *session, struct rng *rng)
{
    static const char info[] = "\0\0\0\3ram\0\2\0\1\0\3";
    static const uint16_t types[] = {NBD_CMD_READ,  NBD_CMD_WRITE,        NBD_CMD_WRITE,
                                     NBD_CMD_FLUSH, NBD_CMD_WRITE_ZEROES, NBD_CMD_TRIM,
                                     NBD_CMD_CACHE, NBD_CMD_BLOCK_STATUS, 9};
    session->bytes = 0;
    add(session, "\0\0\0\3", 4);
    for (uint64_t i = rng_below(rng, 4); i-- > 0;)
        add_option(session, (uint32_t)rng_range(rng, 2, 12), info,
                   rng_chance(rng, 50) ? sizeof(info) - 1 : 0);
    if (rng_chance(rng, 90))
        add_option(session, NBD_OPT_GO, info, sizeof(info) - 1);
    else
        add_option(session, NBD_OPT_EXPORT_NAME, "ram", 3);
    for (uint64_t i = rng_below(rng, 12); i-- > 0 && session->bytes < SESSION_BYTES_MAX - 24000;) {
        uint32_t len = (uint32_t)rng_below(rng, rng_chance(rng, 70) ? 4096 : 20000);
        add_request(session, types[rng_below(rng, ARRAY_LEN(types))],
                    (uint16_t)(rng_chance(rng, 20) ? rng_u64(rng) : 0),
                    rng_below(rng, FIXTURE_BYTES), len);
    }
    if (rng_chance(rng, 30))
        add_request(session, NBD_CMD_DISC, 0, 0, 0);
}

static void
mutate(struct session *session, struct rng *rng)
{
    static const uint8_t interesting[] = {0, 1, 0x7f, 0x80, 0xff};
    for (uint64_t i = rng_below(rng, 6); i-- > 0;) {
        size_t at = rng_below(rng, rng_chance(rng, 50) ? MIN(session->bytes, 128) : session->bytes);
        if (rng_chance(rng, 50))
            session->data[at] ^= (uint8_t)(1u << rng_below(rng, 8));
        else
            session->data[at] = interesting[rng_below(rng, ARRAY_LEN(interesting))];
    }
    if (rng_chance(rng, 20))
        session->bytes = 1 + rng_below(rng, session->bytes);
}

static int
replay(const char *path)
{
    static uint8_t data[MIB(1)];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 1;
    size_t bytes = fread(data, 1, sizeof(data), file);
    fclose(file);
    return LLVMFuzzerTestOneInput(data, bytes);
}

int
main(int argc, char **argv)
{
    static struct session session;
    char *end = NULL;
    uint64_t runs = argc > 1 ? strtoull(argv[1], &end, 0) : 2000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : rng_random_seed() & UINT32_MAX;
    struct rng rng;
    if (argc > 1 && *end != '\0')
        return replay(argv[1]);
    printf("fuzz_nbd: seed %llu\n", (unsigned long long)seed);
    rng_seed(&rng, seed);
    for (uint64_t i = 0; i < runs; i++) {
        make_session(&session, &rng);
        mutate(&session, &rng);
        (void)LLVMFuzzerTestOneInput(session.data, session.bytes);
    }
    printf("fuzz_nbd: %llu runs passed, 0 failed\n", (unsigned long long)runs);
    return 0;
}
#endif
