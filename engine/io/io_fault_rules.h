/* What a fault device does, as data: the grammar of io_fault.h, parsed. */
#pragma once

#include "engine/base/diag.h"

#define FAULT_RULES_MAX 16

enum fault_kind {
    FAULT_EIO_READ,
    FAULT_EIO_WRITE,
    FAULT_EIO_FLUSH,
    FAULT_DELAY,
    FAULT_HANG,
    FAULT_GONE,
    FAULT_SHORT,
    FAULT_ENOSPC,
    FAULT_FLIP,
};
#define FAULT_KIND_COUNT 9

struct fault_rule {
    enum fault_kind kind;
    uint64_t value; /* DELAY: milliseconds; SHORT: bytes */
    uint64_t off_bytes, len_bytes;
};

struct fault_rules {
    struct fault_rule rules[FAULT_RULES_MAX];
    uint32_t count;
};

/* 0, or -EINVAL with *diag, which names what is known; *out is then undefined. */
MUST_CHECK int fault_rules_parse(struct fault_rules *out, const char *text, struct diag *diag);
/* The first rule of a kind that meets [off, off+len), or NULL. */
const struct fault_rule *fault_rules_find(const struct fault_rules *rules, enum fault_kind kind,
                                          uint64_t off_bytes, uint64_t len_bytes);
/* The first of a kind, wherever it applies. */
const struct fault_rule *fault_rules_first(const struct fault_rules *rules, enum fault_kind kind);
