/* A loop, a back end and one member on a fresh file, for the tests of engine/io. */
#pragma once

#include "engine/base/dev.h"

#include "engine/io/io_context.h"
#include "engine/io/member_dev.h"
#include "engine/loop/loop.h"

struct rig {
    struct loop *loop;
    struct io_context *context;
    struct dev *dev;
    char path[64];
};

/* Directories that are usually there: one on a disk, one in memory. */
#define RIG_DISK   "/tmp"
#define RIG_MEMORY "/dev/shm"

/* The file is sparse, of size_bytes. False (and nothing to close) when the host forbids the back
 * end or lacks the directory; says so. */
bool member_rig_open(struct rig *rig, const struct io_backend *backend, const char *directory,
                     uint32_t depth, uint64_t size_bytes);
void member_rig_close(struct rig *rig); /* removes the file, too */
/* One request to dev and its answer. */
int member_rig_call(struct loop *loop, struct dev *dev, enum req_op op, uint32_t flags,
                    uint64_t off_bytes, void *data, uint64_t len_bytes);
int member_rig_io(struct rig *rig, enum req_op op, uint32_t flags, uint64_t off_bytes, void *data,
                  uint64_t len_bytes);
/* Page-aligned; free() it. */
void *member_rig_memory(uint64_t bytes);

/* Thousands of random requests, many at a time, against a model of the contents. */
void member_rig_contract(struct rig *rig, uint64_t seed, uint32_t request_count);
