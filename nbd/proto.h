/* The NBD protocol's numbers and packed formats, as they are on the wire (research/nbd.md 1.1).
 *
 * Only constants and layouts: who may say what when is in handshake.c and command.c. */
#pragma once

#include <assert.h>

#include "engine/base/endian.h"
#include "engine/base/units.h"

#define NBD_GREETING_MAGIC     UINT64_C(0x4e42444d41474943) /* "NBDMAGIC" */
#define NBD_OPTION_MAGIC       UINT64_C(0x49484156454f5054) /* "IHAVEOPT" */
#define NBD_OPTION_REPLY_MAGIC UINT64_C(0x0003e889045565a9)
#define NBD_REQUEST_MAGIC      UINT32_C(0x25609513)
#define NBD_SIMPLE_REPLY_MAGIC UINT32_C(0x67446698)

/* Of the greeting, and the client's answer to it. */
#define NBD_FLAG_FIXED_NEWSTYLE 0x1u
#define NBD_FLAG_NO_ZEROES      0x2u

enum nbd_option {
    NBD_OPT_EXPORT_NAME = 1,
    NBD_OPT_ABORT = 2,
    NBD_OPT_LIST = 3,
    NBD_OPT_STARTTLS = 5,
    NBD_OPT_INFO = 6,
    NBD_OPT_GO = 7,
    NBD_OPT_STRUCTURED_REPLY = 8,
    NBD_OPT_LIST_META_CONTEXT = 9,
    NBD_OPT_SET_META_CONTEXT = 10,
    NBD_OPT_EXTENDED_HEADERS = 11,
};

#define NBD_REP_ACK         UINT32_C(1)
#define NBD_REP_SERVER      UINT32_C(2)
#define NBD_REP_INFO        UINT32_C(3)
#define NBD_REP_ERR_UNSUP   UINT32_C(0x80000001)
#define NBD_REP_ERR_POLICY  UINT32_C(0x80000002)
#define NBD_REP_ERR_INVALID UINT32_C(0x80000003)
#define NBD_REP_ERR_UNKNOWN UINT32_C(0x80000006)
#define NBD_REP_ERR_TOO_BIG UINT32_C(0x80000009)

enum nbd_info {
    NBD_INFO_EXPORT = 0,
    NBD_INFO_NAME = 1,
    NBD_INFO_DESCRIPTION = 2,
    NBD_INFO_BLOCK_SIZE = 3,
};

/* Transmission flags: what an export can do. */
#define NBD_HAS_FLAGS         0x001u
#define NBD_READ_ONLY         0x002u
#define NBD_SEND_FLUSH        0x004u
#define NBD_SEND_FUA          0x008u
#define NBD_ROTATIONAL        0x010u
#define NBD_SEND_TRIM         0x020u
#define NBD_SEND_WRITE_ZEROES 0x040u
#define NBD_CAN_MULTI_CONN    0x100u
#define NBD_SEND_CACHE        0x400u
#define NBD_SEND_FAST_ZERO    0x800u

enum nbd_command {
    NBD_CMD_READ = 0,
    NBD_CMD_WRITE = 1,
    NBD_CMD_DISC = 2,
    NBD_CMD_FLUSH = 3,
    NBD_CMD_TRIM = 4,
    NBD_CMD_CACHE = 5,
    NBD_CMD_WRITE_ZEROES = 6,
    NBD_CMD_BLOCK_STATUS = 7,
    NBD_CMD_RESIZE = 8,
};

#define NBD_CMD_FLAG_FUA       0x01u
#define NBD_CMD_FLAG_NO_HOLE   0x02u
#define NBD_CMD_FLAG_DF        0x04u
#define NBD_CMD_FLAG_FAST_ZERO 0x10u

/* Errors on the wire; the same numbers as Linux's, but spelled out by the protocol. */
#define NBD_EPERM     UINT32_C(1)
#define NBD_EIO       UINT32_C(5)
#define NBD_ENOMEM    UINT32_C(12)
#define NBD_EINVAL    UINT32_C(22)
#define NBD_ENOSPC    UINT32_C(28)
#define NBD_ENOTSUP   UINT32_C(95)
#define NBD_ESHUTDOWN UINT32_C(108)

#define NBD_STRING_BYTES_MAX 4096u

/* What we advertise, and what we take.  64 MiB is beyond the 32 MiB every server is expected to
 * take because the reference server's own test sends 49,865,728 bytes at once. */
#define NBD_PAYLOAD_BYTES_ADVERTISED ((uint32_t)MIB(32))
#define NBD_PAYLOAD_BYTES_MAX        ((uint32_t)MIB(64))

struct nbd_greeting {
    struct be64 magic, option_magic;
    struct be16 flags;
} PACKED;

struct nbd_option_header {
    struct be64 magic;
    struct be32 option;
    struct be32 length;
} PACKED;

struct nbd_option_reply {
    struct be64 magic;
    struct be32 option;
    struct be32 type;
    struct be32 length;
} PACKED;

/* Answers EXPORT_NAME; the zeroes are left out when both sides agreed to. */
struct nbd_export_reply {
    struct be64 size_bytes;
    struct be16 flags;
    uint8_t zeroes[124];
} PACKED;

struct nbd_info_export {
    struct be16 type;
    struct be64 size_bytes;
    struct be16 flags;
} PACKED;

struct nbd_info_block_size {
    struct be16 type;
    struct be32 minimum, preferred, payload_max;
} PACKED;

struct nbd_request_header {
    struct be32 magic;
    struct be16 flags;
    struct be16 type;
    struct be64 cookie;
    struct be64 offset;
    struct be32 length;
} PACKED;

struct nbd_simple_reply {
    struct be32 magic;
    struct be32 error;
    struct be64 cookie; /* copied, never looked at */
} PACKED;

static_assert(sizeof(struct nbd_greeting) == 18, "wire format");
static_assert(sizeof(struct nbd_option_header) == 16, "wire format");
static_assert(sizeof(struct nbd_option_reply) == 20, "wire format");
static_assert(sizeof(struct nbd_export_reply) == 134, "wire format");
static_assert(sizeof(struct nbd_info_export) == 12, "wire format");
static_assert(sizeof(struct nbd_info_block_size) == 14, "wire format");
static_assert(sizeof(struct nbd_request_header) == 28, "wire format");
static_assert(sizeof(struct nbd_simple_reply) == 16, "wire format");
