/* The file or block device under a member: opening, exclusion, size and geometry. */
#pragma once

#include "engine/base/dev.h"
#include "engine/base/diag.h"

struct member_file {
    int fd;
    bool is_block;
    bool direct;    /* O_DIRECT: the kernel keeps no copy */
    bool in_memory; /* tmpfs: nothing to make durable, and I/O completes at once */
    struct dev_info info;
};

enum member_file_flag {
    MEMBER_FILE_READ_ONLY = 1u << 0,
    MEMBER_FILE_NO_LOCK = 1u << 1, /* neither O_EXCL nor a lock */
    MEMBER_FILE_DIRECT = 1u << 2,  /* O_DIRECT where there is such a thing */
};

/* 0, or a negative errno with *diag (E_IN_USE, E_OPEN). Changes not one byte. */
MUST_CHECK int member_file_open(struct member_file *file, const char *path, uint32_t flags,
                                struct diag *diag);
/* Size and geometry of a descriptor that is open already and stays the caller's. */
MUST_CHECK int member_file_from_fd(struct member_file *file, int fd);
