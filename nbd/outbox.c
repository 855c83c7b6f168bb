#include "nbd/outbox.h"

#include <string.h>

#include "engine/base/units.h"

/* 32 options and a LIST of a hundred exports with long descriptions stay far below this. */
#define OUTBOX_BYTES_MAX MIB(4)

void
nbd_outbox_append(struct nbd_outbox *outbox, const void *data, size_t bytes)
{
    if (outbox->sent == outbox->used)
        outbox->sent = outbox->used = 0;
    if (bytes > outbox->capacity - outbox->used) {
        size_t capacity = MAX(outbox->capacity * 2, outbox->used + bytes + 1024);
        uint8_t *larger = capacity > OUTBOX_BYTES_MAX ? NULL : realloc(outbox->data, capacity);
        if (larger == NULL) {
            outbox->failed = true;
            return;
        }
        outbox->data = larger;
        outbox->capacity = capacity;
    }
    if (bytes != 0)
        memcpy(outbox->data + outbox->used, data, bytes);
    outbox->used += bytes;
}

void
nbd_outbox_destroy(struct nbd_outbox *outbox)
{
    free(outbox->data);
    *outbox = (struct nbd_outbox){0};
}
