/* The error matrix (research/nbd.md 1.5) and the map of errors, without a socket. */
#include "nbd/command.h"
#include "tests/unit/suite.h"

#define SIZE MIB(100)

static uint32_t
verdict(uint16_t type, uint16_t flags, uint64_t off, uint32_t len, bool read_only)
{
    struct nbd_command_request command = {
        .type = type, .flags = flags, .off_bytes = off, .len_bytes = len};
    struct nbd_command_limits limits = {SIZE, NBD_PAYLOAD_BYTES_MAX, read_only};
    return nbd_command_check(&command, &limits);
}

static const struct {
    uint16_t type, flags_allowed;
    uint32_t past_end, read_only;
} commands[] = {
    {NBD_CMD_READ, 0x01, NBD_EINVAL, 0},
    {NBD_CMD_WRITE, 0x01, NBD_ENOSPC, NBD_EPERM},
    {NBD_CMD_TRIM, 0x01, NBD_EINVAL, NBD_EPERM},
    {NBD_CMD_CACHE, 0x01, NBD_EINVAL, 0},
    {NBD_CMD_WRITE_ZEROES, 0x13, NBD_ENOSPC, NBD_EPERM},
};

static void
every_boundary_of_every_command_is_judged(void)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        uint16_t type = commands[i].type;
        uint32_t error = commands[i].past_end;
        CU_ASSERT_EQUAL(verdict(type, 0, 0, 1, false), 0);
        CU_ASSERT_EQUAL(verdict(type, 0, 0, 0, false), 0);
        CU_ASSERT_EQUAL(verdict(type, 0, SIZE, 0, false), 0);
        CU_ASSERT_EQUAL(verdict(type, 0, SIZE - 1, 1, false), 0);
        CU_ASSERT_EQUAL(verdict(type, 0, SIZE - 1, 2, false), error);
        CU_ASSERT_EQUAL(verdict(type, 0, SIZE, 1, false), error);
        CU_ASSERT_EQUAL(verdict(type, 0, SIZE + 1, 0, false), error);
        CU_ASSERT_EQUAL(verdict(type, 0, UINT64_MAX - 511, 1024, false), error);
        CU_ASSERT_EQUAL(verdict(type, 0, UINT64_MAX, UINT32_MAX, false), error);
        CU_ASSERT_EQUAL(verdict(type, 0, 0, 1, true), commands[i].read_only);
        CU_ASSERT_EQUAL(verdict(type, 0, SIZE, 1, true),
                        commands[i].read_only != 0 ? NBD_EPERM : error);
    }
}

static void
every_flag_of_every_command_is_judged(void)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        for (uint32_t bit = 0; bit < 16; bit++) {
            uint16_t flag = (uint16_t)(1u << bit);
            CU_ASSERT_EQUAL(verdict(commands[i].type, flag, 0, 1, false),
                            (commands[i].flags_allowed & flag) != 0 ? 0 : NBD_EINVAL);
        }
}

static void
flush_ignores_its_range(void)
{
    CU_ASSERT_EQUAL(verdict(NBD_CMD_FLUSH, 0, UINT64_MAX, UINT32_MAX, true), 0);
    CU_ASSERT_EQUAL(verdict(NBD_CMD_FLUSH, NBD_CMD_FLAG_FUA, 0, 0, false), 0);
    CU_ASSERT_EQUAL(verdict(NBD_CMD_FLUSH, NBD_CMD_FLAG_NO_HOLE, 0, 0, false), NBD_EINVAL);
}

static void
lengths_are_limited_where_data_moves(void)
{
    CU_ASSERT_EQUAL(verdict(NBD_CMD_READ, 0, 0, NBD_PAYLOAD_BYTES_MAX, false), 0);
    CU_ASSERT_EQUAL(verdict(NBD_CMD_READ, 0, 0, NBD_PAYLOAD_BYTES_MAX + 1, false), NBD_EINVAL);
    CU_ASSERT_EQUAL(verdict(NBD_CMD_WRITE, 0, 0, NBD_PAYLOAD_BYTES_MAX + 1, false), NBD_EINVAL);
    CU_ASSERT_EQUAL(verdict(NBD_CMD_CACHE, 0, 0, NBD_PAYLOAD_BYTES_MAX + 1, false), NBD_EINVAL);
    CU_ASSERT_EQUAL(verdict(NBD_CMD_TRIM, 0, 0, (uint32_t)SIZE, false), 0);
    CU_ASSERT_EQUAL(verdict(NBD_CMD_WRITE_ZEROES, 0, 0, (uint32_t)SIZE, false), 0);
}

static void
unknown_commands_are_invalid(void)
{
    static const uint16_t unknown[] = {NBD_CMD_BLOCK_STATUS, NBD_CMD_RESIZE, 9, 100, UINT16_MAX};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
        CU_ASSERT_EQUAL(verdict(unknown[i], 0, 0, 1, false), NBD_EINVAL);
}

static void
errors_reach_the_wire_as_what_they_are(void)
{
    static const struct {
        int err;
        uint32_t flags, wire;
    } map[] = {
        {0, 0, 0},
        {-EPERM, 0, NBD_EPERM},
        {-EROFS, 0, NBD_EPERM},
        {-EIO, 0, NBD_EIO},
        {-ENODEV, 0, NBD_EIO},
        {-EILSEQ, 0, NBD_EIO},
        {-ETIMEDOUT, 0, NBD_EIO},
        {-ENOMEM, 0, NBD_ENOMEM},
        {-ENOSPC, 0, NBD_ENOSPC},
        {-EINVAL, 0, NBD_EINVAL},
        {-ESHUTDOWN, 0, NBD_ESHUTDOWN},
        {-ENOTSUP, REQ_FAST_ZERO, NBD_ENOTSUP},
        {-ENOTSUP, 0, NBD_EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(map); i++)
        CU_ASSERT_EQUAL(nbd_command_error(map[i].err, map[i].flags), map[i].wire);
}

SUITE_MAIN("nbd_command", T(every_boundary_of_every_command_is_judged),
           T(every_flag_of_every_command_is_judged), T(flush_ignores_its_range),
           T(lengths_are_limited_where_data_moves), T(unknown_commands_are_invalid),
           T(errors_reach_the_wire_as_what_they_are))
