/* Negotiation over a socketpair: every option, whole, short, long and cut anywhere. */
#include <string.h>

#include "nbd/handshake.h"
#include "tests/unit/nbd_fixture.h"
#include "tests/unit/suite.h"

#define UNKNOWN_OPTION 0x1234u

/* After whatever came before, the stream is in step when an unknown option is answered so. */
static bool
in_step(struct nbd_fixture *fx)
{
    return client_option(fx, fx->fd, UNKNOWN_OPTION, NULL, 0) &&
           client_option_reply(fx, fx->fd, UNKNOWN_OPTION) == NBD_REP_ERR_UNSUP;
}

static const struct {
    uint32_t option;
    const char *data;
    size_t bytes;
    uint32_t reply;
} cases[] = {
    {NBD_OPT_LIST, "", 0, NBD_REP_ACK},
    {NBD_OPT_LIST, "x", 1, NBD_REP_ERR_INVALID},
    {NBD_OPT_STARTTLS, "", 0, NBD_REP_ERR_POLICY},
    {NBD_OPT_STARTTLS, "xyz", 3, NBD_REP_ERR_INVALID},
    {NBD_OPT_STRUCTURED_REPLY, "", 0, NBD_REP_ERR_UNSUP},
    {NBD_OPT_STRUCTURED_REPLY, "x", 1, NBD_REP_ERR_INVALID},
    {NBD_OPT_EXTENDED_HEADERS, "", 0, NBD_REP_ERR_UNSUP},
    {NBD_OPT_EXTENDED_HEADERS, "x", 1, NBD_REP_ERR_INVALID},
    {NBD_OPT_LIST_META_CONTEXT, "\0\0\0\0\0\0\0\0", 8, NBD_REP_ERR_UNSUP},
    {NBD_OPT_SET_META_CONTEXT, "\0\0\0\3ram\0\0\0\0", 11, NBD_REP_ERR_UNSUP},
    {4, "", 0, NBD_REP_ERR_UNSUP},
    {99, "junk", 4, NBD_REP_ERR_UNSUP},
    {NBD_OPT_INFO, "\0\0\0\3ram\0\0", 9, NBD_REP_ACK},
    {NBD_OPT_INFO, "\0\0\0\0\0\0", 6, NBD_REP_ACK}, /* the only export is the default one */
    {NBD_OPT_INFO, "\0\0\0\3ram\0\4\0\0\0\1\0\2\0\3", 17, NBD_REP_ACK},
    {NBD_OPT_INFO, "\0\0\0\3ram\0\1\77\77", 11, NBD_REP_ACK}, /* an unknown kind is ignored */
    {NBD_OPT_INFO, "", 0, NBD_REP_ERR_INVALID},
    {NBD_OPT_INFO, "\0\0\0\3ra", 6, NBD_REP_ERR_INVALID},
    {NBD_OPT_INFO, "\0\0\0\3ram\0", 8, NBD_REP_ERR_INVALID},
    {NBD_OPT_INFO, "\0\0\0\3ram\0\1\0", 10, NBD_REP_ERR_INVALID},
    {NBD_OPT_INFO, "\0\0\0\3ram\0\0x", 10, NBD_REP_ERR_INVALID},
    {NBD_OPT_INFO, "\377\377\377\377ram\0\0", 9, NBD_REP_ERR_INVALID},
    {NBD_OPT_INFO, "\0\0\0\3r\0m\0\0", 9, NBD_REP_ERR_INVALID},
    {NBD_OPT_INFO, "\0\0\0\3rom\0\0", 9, NBD_REP_ERR_UNKNOWN},
    {NBD_OPT_GO, "\0\0\0\3rom\0\0", 9, NBD_REP_ERR_UNKNOWN},
    {NBD_OPT_GO, "\0\0\0\3ram\0\1", 9, NBD_REP_ERR_INVALID},
    {NBD_OPT_GO, "\200\0\0\0ram\0\0", 9, NBD_REP_ERR_INVALID},
};

static void
every_option_is_answered_and_leaves_the_stream_in_step(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct nbd_fixture fx;
        fixture_start(&fx, NULL);
        CU_ASSERT(client_hello(&fx, fx.fd, 3));
        CU_ASSERT(client_option(&fx, fx.fd, cases[i].option, cases[i].data, cases[i].bytes));
        uint32_t reply = client_option_reply(&fx, fx.fd, cases[i].option);
        if (reply != cases[i].reply)
            printf("case %zu: option %u: %#x instead of %#x\n", i, cases[i].option, reply,
                   cases[i].reply);
        CU_ASSERT_EQUAL(reply, cases[i].reply);
        CU_ASSERT(in_step(&fx));
        fixture_stop(&fx);
    }
}

static void
long_payloads_are_read_to_their_end(void)
{
    static const uint32_t options[] = {NBD_OPT_LIST,
                                       NBD_OPT_STARTTLS,
                                       NBD_OPT_INFO,
                                       NBD_OPT_GO,
                                       NBD_OPT_STRUCTURED_REPLY,
                                       NBD_OPT_LIST_META_CONTEXT,
                                       NBD_OPT_SET_META_CONTEXT,
                                       NBD_OPT_EXTENDED_HEADERS,
                                       77};
    static const uint32_t lengths[] = {4096, NBD_OPTION_BYTES_KEPT_MAX,
                                       NBD_OPTION_BYTES_KEPT_MAX + 1, NBD_OPTION_BYTES_MAX};
    struct nbd_fixture fx;
    uint8_t *junk = calloc(1, NBD_OPTION_BYTES_MAX);
    memset(junk, 0xa5, NBD_OPTION_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        fixture_start(&fx, NULL);
        CU_ASSERT(client_hello(&fx, fx.fd, 3));
        for (size_t j = 0; j < ARRAY_LEN(lengths); j++) {
            CU_ASSERT(client_option(&fx, fx.fd, options[i], junk, lengths[j]));
            CU_ASSERT((client_option_reply(&fx, fx.fd, options[i]) & 0x80000000) != 0);
        }
        CU_ASSERT(in_step(&fx));
        fixture_stop(&fx);
    }
    free(junk);
}

static void
absurd_lengths_and_magics_close(void)
{
    struct nbd_option_header headers[] = {
        {be64_make(NBD_OPTION_MAGIC), be32_make(7), be32_make(UINT32_MAX)},
        {be64_make(NBD_OPTION_MAGIC), be32_make(3), be32_make(NBD_OPTION_BYTES_MAX + 1)},
        {be64_make(NBD_OPTION_MAGIC + 1), be32_make(3), be32_make(0)},
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        struct nbd_fixture fx;
        fixture_start(&fx, NULL);
        CU_ASSERT(client_hello(&fx, fx.fd, 3));
        CU_ASSERT(fixture_send(&fx, fx.fd, &headers[i], sizeof(headers[i])));
        CU_ASSERT(fixture_is_closed(&fx, fx.fd));
        fixture_stop(&fx);
    }
}

static void
unknown_client_flags_close(void)
{
    struct nbd_fixture fx;
    fixture_start(&fx, NULL);
    CU_ASSERT(client_hello(&fx, fx.fd, 4));
    CU_ASSERT(fixture_is_closed(&fx, fx.fd));
    fixture_stop(&fx);
}

static void
without_fixed_newstyle_only_export_name_is_legal(void)
{
    struct nbd_fixture fx;
    struct nbd_export_reply reply;
    fixture_start(&fx, NULL);
    CU_ASSERT(client_hello(&fx, fx.fd, 0));
    CU_ASSERT(client_option(&fx, fx.fd, NBD_OPT_LIST, NULL, 0));
    CU_ASSERT(fixture_is_closed(&fx, fx.fd));
    close(fx.fd);
    fx.fd = fixture_connect(&fx);
    CU_ASSERT(client_hello(&fx, fx.fd, 0));
    CU_ASSERT(client_option(&fx, fx.fd, NBD_OPT_EXPORT_NAME, "ram", 3));
    CU_ASSERT(fixture_recv(&fx, fx.fd, &reply, sizeof(reply)));
    CU_ASSERT_EQUAL(be64_get(reply.size_bytes), FIXTURE_BYTES);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_FLUSH, 0, 0, 0, NULL), 0);
    fixture_stop(&fx);
}

static void
export_name_without_zeroes_and_of_an_unknown_export(void)
{
    struct nbd_fixture fx;
    struct nbd_export_reply reply;
    fixture_start(&fx, NULL);
    CU_ASSERT(client_hello(&fx, fx.fd, 3));
    CU_ASSERT(client_option(&fx, fx.fd, NBD_OPT_EXPORT_NAME, "", 0));
    CU_ASSERT(fixture_recv(&fx, fx.fd, &reply, offsetof(struct nbd_export_reply, zeroes)));
    CU_ASSERT_EQUAL(be16_get(reply.flags), 0xd6d);
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_FLUSH, 0, 0, 0, NULL), 0);
    int fd = fixture_connect(&fx);
    CU_ASSERT(client_hello(&fx, fd, 3));
    CU_ASSERT(client_option(&fx, fd, NBD_OPT_EXPORT_NAME, "rom", 3));
    CU_ASSERT(fixture_is_closed(&fx, fd));
    close(fd);
    fixture_stop(&fx);
}

static void
abort_is_acknowledged_with_any_payload(void)
{
    struct nbd_fixture fx;
    fixture_start(&fx, NULL);
    CU_ASSERT(client_hello(&fx, fx.fd, 3));
    CU_ASSERT(client_option(&fx, fx.fd, NBD_OPT_ABORT, "whatever", 8));
    CU_ASSERT_EQUAL(client_option_reply(&fx, fx.fd, NBD_OPT_ABORT), NBD_REP_ACK);
    CU_ASSERT(fixture_is_closed(&fx, fx.fd));
    fixture_stop(&fx);
}

static void
a_hundred_options_are_too_many(void)
{
    struct nbd_fixture fx;
    uint32_t answered = 0;
    fixture_start(&fx, NULL);
    CU_ASSERT(client_hello(&fx, fx.fd, 3));
    while (answered < 100 && in_step(&fx))
        answered++;
    CU_ASSERT_EQUAL(answered, 32);
    fixture_stop(&fx);
}

/* flags, LIST, INFO, GO, one READ: what a client sends, as one string of bytes. */
static size_t
recorded_session(uint8_t *out)
{
    static const uint8_t info[] = {0, 0, 0, 3, 'r', 'a', 'm', 0, 1, 0, 3};
    static const uint32_t options[] = {NBD_OPT_LIST, NBD_OPT_INFO, NBD_OPT_GO};
    size_t used = 4;
    memcpy(out, "\0\0\0\3", 4);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        size_t bytes = i == 0 ? 0 : sizeof(info);
        struct nbd_option_header header = {be64_make(NBD_OPTION_MAGIC), be32_make(options[i]),
                                           be32_make((uint32_t)bytes)};
        memcpy(out + used, &header, sizeof(header));
        memcpy(out + used + sizeof(header), info, bytes);
        used += sizeof(header) + bytes;
    }
    struct nbd_request_header request = {
        .magic = be32_make(NBD_REQUEST_MAGIC), .cookie = be64_make(7), .length = be32_make(512)};
    memcpy(out + used, &request, sizeof(request));
    return used + sizeof(request);
}

static bool
session_is_answered(struct nbd_fixture *fx)
{
    uint8_t greeting[18], data[512];
    uint64_t cookie;
    return fixture_recv(fx, fx->fd, greeting, 18) &&
           client_option_reply(fx, fx->fd, NBD_OPT_LIST) == NBD_REP_ACK &&
           client_option_reply(fx, fx->fd, NBD_OPT_INFO) == NBD_REP_ACK &&
           client_option_reply(fx, fx->fd, NBD_OPT_GO) == NBD_REP_ACK &&
           client_reply(fx, fx->fd, &cookie) == 0 && cookie == 7 &&
           fixture_recv(fx, fx->fd, data, sizeof(data));
}

static void
pipelined_options_and_the_first_request_are_answered(void)
{
    struct nbd_fixture fx;
    uint8_t session[256];
    size_t bytes = recorded_session(session);
    fixture_start(&fx, NULL);
    CU_ASSERT(fixture_send(&fx, fx.fd, session, bytes));
    CU_ASSERT(session_is_answered(&fx));
    fixture_stop(&fx);
}

static void
one_byte_at_a_time_is_answered(void)
{
    struct nbd_fixture fx;
    uint8_t session[256];
    size_t bytes = recorded_session(session);
    fixture_start(&fx, NULL);
    for (size_t i = 0; i < bytes; i++) {
        CU_ASSERT(fixture_send(&fx, fx.fd, session + i, 1));
        fixture_run(&fx, 0);
    }
    CU_ASSERT(session_is_answered(&fx));
    fixture_stop(&fx);
}

static void
a_session_cut_after_any_byte_ends_cleanly(void)
{
    struct nbd_fixture fx;
    uint8_t session[256];
    size_t bytes = recorded_session(session);
    fixture_start(&fx, NULL);
    for (size_t i = 0; i <= bytes; i++) {
        int fd = fixture_connect(&fx);
        CU_ASSERT(fixture_send(&fx, fd, session, i));
        if (i % 2 == 0)
            fixture_run(&fx, 0);
        close(fd);
    }
    CU_ASSERT(fixture_wait_closed(&fx, (uint32_t)bytes + 1));
    CU_ASSERT(client_go(&fx, fx.fd));
    fixture_stop(&fx);
}

static void
silent_clients_go_at_the_deadline_and_lock_nobody_out(void)
{
    struct nbd_server_config config = {.handshake_timeout_ms = 150, .connections_max = 4};
    struct nbd_fixture fx;
    int silent[40];
    fixture_start(&fx, &config);
    CU_ASSERT(client_go(&fx, fx.fd));
    for (size_t i = 0; i < ARRAY_LEN(silent); i++)
        silent[i] = fixture_connect(&fx);
    int fd = fixture_connect(&fx);
    CU_ASSERT(client_go(&fx, fd));
    CU_ASSERT(fixture_wait_closed(&fx, ARRAY_LEN(silent)));
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_FLUSH, 0, 0, 0, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(silent); i++)
        close(silent[i]);
    close(fd);
    fixture_stop(&fx);
}

static void
too_many_clients_are_told_so(void)
{
    static const uint8_t go[] = {0, 0, 0, 3, 'r', 'a', 'm', 0, 0};
    struct nbd_server_config config = {.connections_max_per_export = 1};
    struct nbd_fixture fx;
    fixture_start(&fx, &config);
    CU_ASSERT(client_go(&fx, fx.fd));
    int fd = fixture_connect(&fx);
    CU_ASSERT(client_hello(&fx, fd, 3));
    CU_ASSERT(client_option(&fx, fd, NBD_OPT_GO, go, sizeof(go)));
    CU_ASSERT_EQUAL(client_option_reply(&fx, fd, NBD_OPT_GO), NBD_REP_ERR_POLICY);
    close(fx.fd);
    CU_ASSERT(fixture_wait_closed(&fx, 1));
    CU_ASSERT(client_option(&fx, fd, NBD_OPT_GO, go, sizeof(go)));
    CU_ASSERT_EQUAL(client_option_reply(&fx, fd, NBD_OPT_GO), NBD_REP_ACK);
    fx.fd = fd;
    fixture_stop(&fx);
}

SUITE_MAIN("nbd_handshake", T(every_option_is_answered_and_leaves_the_stream_in_step),
           T(long_payloads_are_read_to_their_end), T(absurd_lengths_and_magics_close),
           T(unknown_client_flags_close), T(without_fixed_newstyle_only_export_name_is_legal),
           T(export_name_without_zeroes_and_of_an_unknown_export),
           T(abort_is_acknowledged_with_any_payload), T(a_hundred_options_are_too_many),
           T(pipelined_options_and_the_first_request_are_answered),
           T(one_byte_at_a_time_is_answered), T(a_session_cut_after_any_byte_ends_cleanly),
           T(silent_clients_go_at_the_deadline_and_lock_nobody_out),
           T(too_many_clients_are_told_so))
