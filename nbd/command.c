#include "nbd/command.h"

/* What each command may carry.  FUA is legal everywhere once SEND_FUA is advertised; DF only with
 * structured replies. */
static const struct {
    bool known, writes;
    uint16_t flags_allowed;
    uint32_t error_past_end;
} commands[] = {
    [NBD_CMD_READ] = {true, false, NBD_CMD_FLAG_FUA, NBD_EINVAL},
    [NBD_CMD_WRITE] = {true, true, NBD_CMD_FLAG_FUA, NBD_ENOSPC},
    [NBD_CMD_FLUSH] = {true, false, NBD_CMD_FLAG_FUA, 0},
    [NBD_CMD_TRIM] = {true, true, NBD_CMD_FLAG_FUA, NBD_EINVAL},
    [NBD_CMD_CACHE] = {true, false, NBD_CMD_FLAG_FUA, NBD_EINVAL},
    [NBD_CMD_WRITE_ZEROES] = {true, true,
                              NBD_CMD_FLAG_FUA | NBD_CMD_FLAG_NO_HOLE | NBD_CMD_FLAG_FAST_ZERO,
                              NBD_ENOSPC},
};

bool
nbd_command_decode(const struct nbd_request_header *header, struct nbd_command_request *out)
{
    if (be32_get(header->magic) != NBD_REQUEST_MAGIC)
        return false;
    *out = (struct nbd_command_request){
        .flags = be16_get(header->flags),
        .type = be16_get(header->type),
        .cookie = header->cookie,
        .off_bytes = be64_get(header->offset),
        .len_bytes = be32_get(header->length),
    };
    return true;
}

uint32_t
nbd_command_payload_bytes(const struct nbd_command_request *command)
{
    return command->type == NBD_CMD_WRITE ? command->len_bytes : 0;
}

static bool
moves_data(uint16_t type)
{
    return type == NBD_CMD_READ || type == NBD_CMD_WRITE || type == NBD_CMD_CACHE;
}

uint32_t
nbd_command_check(const struct nbd_command_request *command,
                  const struct nbd_command_limits *limits)
{
    if (command->type >= ARRAY_LEN(commands) || !commands[command->type].known)
        return NBD_EINVAL;
    if ((command->flags & ~commands[command->type].flags_allowed) != 0)
        return NBD_EINVAL;
    if (limits->read_only && commands[command->type].writes)
        return NBD_EPERM;
    if (command->type == NBD_CMD_FLUSH) /* offset and length are reserved: old clients send junk */
        return 0;
    if (command->off_bytes > limits->size_bytes ||
        command->len_bytes > limits->size_bytes - command->off_bytes)
        return commands[command->type].error_past_end;
    if (moves_data(command->type) && command->len_bytes > limits->payload_bytes_max)
        return NBD_EINVAL;
    return 0;
}

enum req_op
nbd_command_op(const struct nbd_command_request *command)
{
    static const enum req_op ops[] = {
        [NBD_CMD_READ] = REQ_READ, [NBD_CMD_WRITE] = REQ_WRITE, [NBD_CMD_FLUSH] = REQ_FLUSH,
        [NBD_CMD_TRIM] = REQ_TRIM, [NBD_CMD_CACHE] = REQ_CACHE, [NBD_CMD_WRITE_ZEROES] = REQ_ZERO,
    };
    check_lt(command->type, ARRAY_LEN(ops));
    check_ne(command->type, NBD_CMD_DISC);
    return ops[command->type];
}

uint32_t
nbd_command_req_flags(const struct nbd_command_request *command)
{
    uint32_t flags = 0;
    if (commands[command->type].writes && (command->flags & NBD_CMD_FLAG_FUA) != 0)
        flags |= REQ_FUA;
    if ((command->flags & NBD_CMD_FLAG_NO_HOLE) != 0)
        flags |= REQ_NO_HOLE;
    if ((command->flags & NBD_CMD_FLAG_FAST_ZERO) != 0)
        flags |= REQ_FAST_ZERO;
    return flags;
}

uint32_t
nbd_command_error(int err, uint32_t req_flags)
{
    check(err <= 0);
    switch (-err) {
    case 0:
        return 0;
    case EPERM:
    case EROFS:
    case EACCES:
        return NBD_EPERM;
    case ENOMEM:
        return NBD_ENOMEM;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return NBD_ENOSPC;
    case ESHUTDOWN:
        return NBD_ESHUTDOWN;
    case EOPNOTSUPP: /* ENOTSUP on Linux; clients expect it for FAST_ZERO only */
        return (req_flags & REQ_FAST_ZERO) != 0 ? NBD_ENOTSUP : NBD_EINVAL;
    case EINVAL:
        return NBD_EINVAL;
    default: /* whatever a medium comes up with is an I/O error, never the client's fault */
        return NBD_EIO;
    }
}
