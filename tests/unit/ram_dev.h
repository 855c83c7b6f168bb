/* A device in memory, for tests of what lies above: answers at once, or when the test says so. */
#pragma once

#include "engine/base/dev.h"

struct ram_dev {
    struct dev dev;
    uint8_t *memory;
    uint64_t size_bytes;
    bool hold;        /* keep requests until ram_dev_release() */
    bool slow_zero;   /* FAST_ZERO is -ENOTSUP */
    int fail_err;     /* answer with this; 0: do it */
    struct list held; /* by dev_node, in order of arrival */
    uint32_t held_count;
    uint64_t op_count[REQ_OP_COUNT];
    uint32_t last_flags;
    uint64_t last_len_bytes;
};

void ram_dev_init(struct ram_dev *ram, uint64_t size_bytes);
void ram_dev_destroy(struct ram_dev *ram);
/* Carry out and answer everything that is held, the newest first if `reversed`. */
void ram_dev_release(struct ram_dev *ram, bool reversed);
