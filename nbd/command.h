/* A request of the transmission phase, decoded and judged; pure (research/nbd.md 1.4, 1.5). */
#pragma once

#include "engine/base/req.h"

#include "nbd/proto.h"

struct nbd_command_request {
    uint16_t flags;
    uint16_t type;
    struct be64 cookie;
    uint64_t off_bytes;
    uint32_t len_bytes;
};

/* Of the export, as this connection sees it. */
struct nbd_command_limits {
    uint64_t size_bytes;
    uint32_t payload_bytes_max;
    bool read_only;
};

/* False when it is no request: the stream is lost. */
MUST_CHECK bool nbd_command_decode(const struct nbd_request_header *header,
                                   struct nbd_command_request *out);
/* How many bytes follow the header, whatever will be answered. */
uint32_t nbd_command_payload_bytes(const struct nbd_command_request *command);
/* 0, or the error of the wire to answer with.  DISC is not asked about. */
uint32_t nbd_command_check(const struct nbd_command_request *command,
                           const struct nbd_command_limits *limits);
/* Only for a command that nbd_command_check() let pass. */
enum req_op nbd_command_op(const struct nbd_command_request *command);
uint32_t nbd_command_req_flags(const struct nbd_command_request *command);
/* The one map from errno to the wire.  err <= 0; req_flags as given to the device. */
uint32_t nbd_command_error(int err, uint32_t req_flags);
