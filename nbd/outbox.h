/* Bytes of the negotiation that wait to be sent.
 *
 * Grows by need up to a limit; running out sets `failed`, which ends the connection, so that
 * nobody has to look at each append. */
#pragma once

#include "engine/base/compiler.h"

struct nbd_outbox {
    uint8_t *data;
    size_t used, sent, capacity;
    bool failed;
};

void nbd_outbox_append(struct nbd_outbox *outbox, const void *data, size_t bytes);
void nbd_outbox_destroy(struct nbd_outbox *outbox); /* leaves it empty and usable */
static inline size_t
nbd_outbox_waiting(const struct nbd_outbox *outbox)
{
    return outbox->used - outbox->sent;
}
