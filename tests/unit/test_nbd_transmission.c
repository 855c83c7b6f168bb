/* Requests over a socketpair: data, errors, limits, and clients that leave. */
#include <string.h>
#include <sys/socket.h>

#include "engine/base/rng.h"

#include "tests/unit/nbd_fixture.h"
#include "tests/unit/suite.h"

static void
start_serving(struct nbd_fixture *fx, const struct nbd_server_config *config)
{
    fixture_start(fx, config);
    CU_ASSERT_FATAL(client_go(fx, fx->fd));
}

static void
data_of_any_length_comes_back(void)
{
    static const uint32_t lengths[] = {0,     1,     511,   512,    4096,   16383,
                                       16384, 16385, 65537, 262144, 300001, (uint32_t)MIB(33)};
    struct nbd_fixture fx;
    struct rng rng;
    uint8_t *out = malloc(MIB(64)), *in = malloc(MIB(64));
    rng_seed(&rng, suite_seed());
    rng_fill(&rng, out, MIB(64));
    start_serving(&fx, NULL);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        uint64_t off = rng_below(&rng, FIXTURE_BYTES - lengths[i]);
        CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 0, off, lengths[i], out), 0);
        CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, off, lengths[i], in), 0);
        CU_ASSERT_EQUAL(memcmp(in, out, lengths[i]), 0);
    }
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 0, 1, (uint32_t)MIB(64), out), 0);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, 1, (uint32_t)MIB(64), in), 0);
    CU_ASSERT_EQUAL(memcmp(in, out, MIB(64)), 0);
    fixture_stop(&fx);
    free(out);
    free(in);
}

static void
rejected_requests_leave_the_stream_in_step(void)
{
    struct nbd_fixture fx;
    uint8_t *data = calloc(1, MIB(65));
    start_serving(&fx, NULL);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 0, FIXTURE_BYTES - 1, 512, data), NBD_ENOSPC);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 2, 0, 65536, data), NBD_EINVAL);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 0, 0, (uint32_t)MIB(65), data), NBD_EINVAL);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, 0, (uint32_t)MIB(65), data), NBD_EINVAL);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, NBD_CMD_FLAG_DF, 0, 512, data), NBD_EINVAL);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_BLOCK_STATUS, 0, 0, 512, NULL), NBD_EINVAL);
    CU_ASSERT_EQUAL(client_do(&fx, 77, 0, 0, 512, NULL), NBD_EINVAL);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, FIXTURE_BYTES, 0, data), 0);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_FLUSH, 0, 99, 99, NULL), 0);
    fixture_stop(&fx);
    free(data);
}

static void
a_read_only_export_takes_no_writes(void)
{
    struct nbd_fixture fx;
    uint8_t data[4096] = {0};
    fixture_start(&fx, NULL);
    fx.export.read_only = true;
    CU_ASSERT(client_go(&fx, fx.fd));
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 0, 0, sizeof(data), data), NBD_EPERM);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_TRIM, 0, 0, 512, NULL), NBD_EPERM);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE_ZEROES, 0, 0, 512, NULL), NBD_EPERM);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, 0, sizeof(data), data), 0);
    CU_ASSERT_EQUAL(fx.ram.op_count[REQ_WRITE], 0);
    fixture_stop(&fx);
}

static void
flags_reach_the_device(void)
{
    struct nbd_fixture fx;
    uint8_t data[512] = {0};
    start_serving(&fx, NULL);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, NBD_CMD_FLAG_FUA, 0, 512, data), 0);
    CU_ASSERT_EQUAL(fx.ram.last_flags, REQ_FUA);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, NBD_CMD_FLAG_FUA, 0, 512, data), 0);
    CU_ASSERT_EQUAL(fx.ram.last_flags, 0);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE_ZEROES, NBD_CMD_FLAG_NO_HOLE, 0, 512, NULL), 0);
    CU_ASSERT_EQUAL(fx.ram.last_flags, REQ_NO_HOLE);
    fx.ram.slow_zero = true;
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE_ZEROES, NBD_CMD_FLAG_FAST_ZERO, 0, 512, NULL),
                    NBD_ENOTSUP);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_TRIM, NBD_CMD_FLAG_FUA, 0, (uint32_t)MIB(80), NULL), 0);
    CU_ASSERT_EQUAL(fx.ram.last_len_bytes, MIB(80));
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_CACHE, 0, 0, 4096, NULL), 0);
    CU_ASSERT_EQUAL(fx.ram.op_count[REQ_CACHE], 1);
    fixture_stop(&fx);
}

static void
a_media_error_is_eio_and_the_connection_lives(void)
{
    struct nbd_fixture fx;
    uint8_t data[4096] = {0};
    start_serving(&fx, NULL);
    fx.ram.fail_err = -EIO;
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, 0, 4096, data), NBD_EIO);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 0, 0, 4096, data), NBD_EIO);
    fx.ram.fail_err = 0;
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, 0, 4096, data), 0);
    fixture_stop(&fx);
}

static void
a_lost_stream_closes(void)
{
    struct nbd_fixture fx;
    uint8_t junk[28] = {1};
    start_serving(&fx, NULL);
    CU_ASSERT(fixture_send(&fx, fx.fd, junk, sizeof(junk)));
    CU_ASSERT(fixture_is_closed(&fx, fx.fd));
    close(fx.fd);
    fx.fd = fixture_connect(&fx);
    CU_ASSERT(client_go(&fx, fx.fd));
    CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_WRITE, 0, 0, UINT32_MAX, 1));
    CU_ASSERT(fixture_is_closed(&fx, fx.fd));
    fixture_stop(&fx);
}

/* Eight reads are in flight when the client says goodbye. */
static void
eight_reads_then(struct nbd_fixture *fx, bool disc)
{
    start_serving(fx, NULL);
    fx->ram.hold = true;
    for (uint64_t i = 0; i < 8; i++)
        CU_ASSERT(client_request(fx, fx->fd, NBD_CMD_READ, 0, i * 4096, 4096, i));
    if (disc) { /* what else it carries is ignored */
        CU_ASSERT(client_request(fx, fx->fd, NBD_CMD_DISC, 0xffff, 0xfffffffffffffe00, 7, 0));
    } else {
        shutdown(fx->fd, SHUT_WR);
    }
    fixture_run(fx, 20);
    CU_ASSERT_EQUAL(fx->ram.held_count, 8);
    ram_dev_release(&fx->ram, true);
    for (uint64_t i = 8; i-- > 0;) {
        uint64_t cookie;
        uint8_t data[4096];
        CU_ASSERT_EQUAL(client_reply(fx, fx->fd, &cookie), 0);
        CU_ASSERT_EQUAL(cookie, i);
        CU_ASSERT(fixture_recv(fx, fx->fd, data, sizeof(data)));
    }
    CU_ASSERT(fixture_is_closed(fx, fx->fd));
    CU_ASSERT(fixture_wait_closed(fx, 1));
    fixture_stop(fx);
}

static void
disc_serves_what_is_in_flight(void)
{
    struct nbd_fixture fx;
    eight_reads_then(&fx, true);
}

static void
half_close_serves_what_is_in_flight(void)
{
    struct nbd_fixture fx;
    eight_reads_then(&fx, false);
}

static void
writes_of_a_vanished_client_are_finished(void)
{
    struct nbd_fixture fx;
    uint8_t data[8192];
    memset(data, 0x77, sizeof(data));
    start_serving(&fx, NULL);
    fx.ram.hold = true;
    for (uint64_t i = 0; i < 16; i++) {
        CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_WRITE, 0, i * 8192, 8192, i));
        CU_ASSERT(fixture_send(&fx, fx.fd, data, sizeof(data)));
    }
    /* One more is cut in the middle of its payload. */
    CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_WRITE, 0, MIB(1), 65536, 99));
    CU_ASSERT(fixture_send(&fx, fx.fd, data, sizeof(data)));
    fixture_run(&fx, 20);
    CU_ASSERT_EQUAL(fx.ram.held_count, 16);
    close(fx.fd);
    fixture_run(&fx, 20);
    CU_ASSERT_EQUAL(fx.closed, 0); /* the device has its memory */
    fx.fd = fixture_connect(&fx);  /* a later connection sees none of it */
    CU_ASSERT(client_go(&fx, fx.fd));
    ram_dev_release(&fx.ram, false);
    CU_ASSERT(fixture_wait_closed(&fx, 1));
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, 8192, 8192, data), 0);
    CU_ASSERT_EQUAL(data[0], 0x77);
    CU_ASSERT_EQUAL(fx.ram.memory[MIB(1)], 0);
    fixture_stop(&fx);
}

static void
without_memory_the_socket_waits(void)
{
    struct nbd_server_config config = {.payload_bytes = KIB(256), .in_flight_max = 128};
    struct nbd_fixture fx;
    uint8_t data[16384];
    start_serving(&fx, &config);
    fx.ram.hold = true;
    for (uint64_t i = 0; i < 64; i++)
        CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_READ, 0, 0, 16384, i));
    fixture_run(&fx, 20);
    CU_ASSERT_EQUAL(fx.ram.held_count, 4); /* a quarter of 256 KiB */
    int fd = fixture_connect(&fx);
    CU_ASSERT(client_go(&fx, fd));
    CU_ASSERT(client_request(&fx, fd, NBD_CMD_FLUSH, 0, 0, 0, 5)); /* needs no memory */
    CU_ASSERT(client_request(&fx, fd, NBD_CMD_READ, 0, 0, 512, 6));
    fixture_run(&fx, 20);
    CU_ASSERT_EQUAL(fx.ram.held_count, 5);
    ram_dev_release(&fx.ram, false);
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t cookie;
        CU_ASSERT_EQUAL(client_reply(&fx, fx.fd, &cookie), 0);
        CU_ASSERT_EQUAL(cookie, i);
        CU_ASSERT(fixture_recv(&fx, fx.fd, data, sizeof(data)));
    }
    for (uint64_t i = 5; i < 7; i++) {
        uint64_t cookie;
        CU_ASSERT_EQUAL(client_reply(&fx, fd, &cookie), 0);
        CU_ASSERT_EQUAL(cookie, i);
    }
    close(fd);
    fixture_stop(&fx);
}

static void
without_slots_the_socket_waits(void)
{
    struct nbd_server_config config = {.in_flight_max = 4};
    struct nbd_fixture fx;
    uint64_t cookie;
    start_serving(&fx, &config);
    fx.ram.hold = true;
    for (uint64_t i = 0; i < 100; i++)
        CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_FLUSH, 0, 0, 0, i));
    fixture_run(&fx, 20);
    CU_ASSERT_EQUAL(fx.ram.held_count, 4);
    ram_dev_release(&fx.ram, false);
    for (uint64_t i = 0; i < 100; i++) {
        CU_ASSERT_EQUAL(client_reply(&fx, fx.fd, &cookie), 0);
        CU_ASSERT_EQUAL(cookie, i);
    }
    fixture_stop(&fx);
}

static void
a_slow_reader_holds_a_bounded_amount(void)
{
    struct nbd_fixture fx;
    uint64_t cookie;
    uint8_t *data = malloc(MIB(8));
    start_serving(&fx, NULL);
    for (uint64_t i = 0; i < 40; i++)
        CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_READ, 0, 0, (uint32_t)MIB(8), i));
    fixture_run(&fx, 50);
    CU_ASSERT(fx.ram.op_count[REQ_READ] <= 9); /* 64 MiB held, and one sent in part */
    int fd = fixture_connect(&fx);
    CU_ASSERT(client_go(&fx, fd)); /* others do not notice */
    CU_ASSERT(client_request(&fx, fd, NBD_CMD_READ, 0, 0, (uint32_t)MIB(8), 77));
    CU_ASSERT_EQUAL(client_reply(&fx, fd, &cookie), 0);
    CU_ASSERT(fixture_recv(&fx, fd, data, MIB(8)));
    for (uint64_t i = 0; i < 40; i++) {
        CU_ASSERT_EQUAL(client_reply(&fx, fx.fd, &cookie), 0);
        CU_ASSERT_EQUAL(cookie, i);
        CU_ASSERT(fixture_recv(&fx, fx.fd, data, MIB(8)));
    }
    close(fd);
    fixture_stop(&fx);
    free(data);
}

static void
note_gone(void *flag)
{
    *(bool *)flag = true;
}

static void
a_removed_export_refuses_and_lets_go(void)
{
    struct nbd_fixture fx;
    uint64_t cookie;
    start_serving(&fx, NULL);
    fx.ram.hold = true;
    CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_FLUSH, 0, 0, 0, 1));
    fixture_run(&fx, 10);
    bool gone = false;
    nbd_server_remove(fx.server, &fx.export, note_gone, &gone);
    CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_FLUSH, 0, 0, 0, 2));
    CU_ASSERT_EQUAL(client_reply(&fx, fx.fd, &cookie), NBD_ESHUTDOWN);
    CU_ASSERT_EQUAL(cookie, 2);
    CU_ASSERT_FALSE(gone);
    ram_dev_release(&fx.ram, false);
    CU_ASSERT_EQUAL(client_reply(&fx, fx.fd, &cookie), 0);
    CU_ASSERT_EQUAL(cookie, 1);
    CU_ASSERT(fixture_is_closed(&fx, fx.fd));
    CU_ASSERT(fixture_wait_closed(&fx, 1));
    CU_ASSERT(gone);
    fixture_stop(&fx);
}

SUITE_MAIN("nbd_transmission", T(data_of_any_length_comes_back),
           T(rejected_requests_leave_the_stream_in_step), T(a_read_only_export_takes_no_writes),
           T(flags_reach_the_device), T(a_media_error_is_eio_and_the_connection_lives),
           T(a_lost_stream_closes), T(disc_serves_what_is_in_flight),
           T(half_close_serves_what_is_in_flight), T(writes_of_a_vanished_client_are_finished),
           T(without_memory_the_socket_waits), T(without_slots_the_socket_waits),
           T(a_slow_reader_holds_a_bounded_amount), T(a_removed_export_refuses_and_lets_go))
