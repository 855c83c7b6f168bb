/* The negotiation, as a pure function from option to reply (research/nbd.md 1.2).
 *
 * The caller (conn.c) reads a header, checks the length, reads the whole payload, and only then
 * asks here; so no path through the handlers can leave bytes of an option unread. */
#pragma once

#include "nbd/export.h"
#include "nbd/outbox.h"

/* Longer options end the connection; longer than the second are read, but not kept. */
#define NBD_OPTION_BYTES_MAX      ((uint32_t)MIB(1))
#define NBD_OPTION_BYTES_KEPT_MAX ((uint32_t)KIB(192)) /* a legal INFO has at most 135,172 */

enum nbd_next {
    NBD_NEXT_OPTION,
    NBD_NEXT_TRANSMISSION, /* handshake->chosen is the export */
    NBD_NEXT_CLOSE,        /* when what is in the outbox has been sent */
};

struct nbd_handshake {
    const struct nbd_directory *directory;
    struct nbd_export *chosen;
    uint32_t options_left;
    bool greeted; /* the client's flags have been read */
    bool fixed;
    bool no_zeroes;
};

void nbd_handshake_init(struct nbd_handshake *handshake, const struct nbd_directory *directory,
                        struct nbd_outbox *out);
/* Take the client's flags, which come first. */
MUST_CHECK enum nbd_next nbd_handshake_flags(struct nbd_handshake *handshake, uint32_t flags);
/* Take one option, whose payload has been read.  payload is NULL when it was too long to keep. */
MUST_CHECK enum nbd_next nbd_handshake_option(struct nbd_handshake *handshake, uint32_t option,
                                              const uint8_t *payload, uint32_t bytes,
                                              struct nbd_outbox *out);
