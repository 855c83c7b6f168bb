/* Members as devices: opening by a spec.
 *
 * spec = PATH                            a regular file or a block device
 *      | fault:RULE[,RULE]...:PATH       the same behind the fault wrapper (io_fault.h)
 *
 * A block device is opened O_EXCL, a file is locked (OFD lock, exclusive for writing, shared for
 * reading); two daemons never open one member for writing. O_DIRECT where the file system has it,
 * else buffered with a notice.  The returned device obeys req.h; requests that fail do so with
 * -EIO (media), -ENOSPC (the file system under a file is full), -ENODEV (gone). */
#pragma once

#include "engine/base/dev.h"
#include "engine/base/diag.h"

#include "engine/loop/loop.h"

enum io_engine { IO_LIBAIO, IO_URING };

struct io_context; /* one per loop: the aio context or ring, its batch, its limits */

/* -ENOSYS or -EPERM with a diag when the host forbids the engine. depth: requests in flight. */
MUST_CHECK int io_context_create(struct io_context **out, struct loop *loop, enum io_engine engine,
                                 uint32_t depth, struct diag *diag);
void io_context_destroy(struct io_context *context); /* no member may be open */

struct member_open {
    const char *spec;
    bool read_only;
    bool no_lock; /* tests of the on-disk guards only */
};
/* 0, or a negative errno with *diag: E_IN_USE (locked, held, mounted), E_OPEN, E_USAGE. */
MUST_CHECK int member_dev_open(struct dev **out, struct io_context *context,
                               const struct member_open *how, struct diag *diag);
/* Path part of a spec (points into it). */
const char *member_spec_path(const char *spec);
/* Same rules of exclusion, for metadata acts (create, assemble...). Opened read-only it excludes
 * nobody and nobody excludes it, so that a running array can be looked at.  io/blob_file.c */
struct blob;
MUST_CHECK int blob_file_open(struct blob **out, const char *path, bool read_only,
                              struct diag *diag);
/* A blob over a descriptor that stays the caller's, opened without O_DIRECT and kept at its
 * position. */
MUST_CHECK int blob_fd_open(struct blob **out, int fd, const char *path, struct diag *diag);
