/* The array: a device over its members.
 *
 * One loop owns it.  array_dev() takes READ, WRITE, FLUSH, TRIM, ZERO, CACHE of any byte range.
 * Opened from an assembly, which says what was found and decided; everything the data path needs
 * is allocated then (I8). */
#pragma once

#include "engine/base/dev.h"
#include "engine/base/diag.h"

#include "engine/array_state.h"
#include "engine/loop/loop.h"
#include "engine/meta/decide.h"
#include "engine/probe.h"
#include "layouts/layout.h"

/* A member ready to be used: its device, what was read from it, and where it goes. */
struct array_member_open {
    struct dev *dev; /* taken over by the array */
    char path[256];
    const struct probe *probe; /* borrowed during array_open() */
    enum member_class class;
    uint32_t role;
};

struct array_open {
    struct loop *loop;
    const struct array_member_open *members;
    uint32_t member_count;
    uint32_t freshest; /* index into members */
    bool read_only;
    bool accept_dirty_degraded; /* tests and, later, --accept-lost */
    uint64_t scratch_bytes;     /* 0: default (32 MiB) */
    uint32_t request_max;       /* stripe operations in flight; 0: default (256) */
    uint32_t idle_clean_ms;     /* 0: default (200): dirty -> clean after that much idleness */
    bool no_background;         /* tests: no resync job, no lazy bitmap clearing */
};

struct array;

/* 0, or a negative errno with *diag: E_NOT_ENOUGH_MEMBERS, E_DIRTY_DEGRADED, E_RESHAPE,
 * E_PPL_DIRTY, E_JOURNAL, E_LLBITMAP, E_GEOMETRY...  Nothing is written by opening.  On error the
 * devices stay the caller's. */
MUST_CHECK int array_open(struct array **out, const struct array_open *how, struct diag *diag);
struct dev *array_dev(struct array *array); /* belongs to the array; close by array_stop() */

/* Drain, flush, mark clean, close the members; then stopped() on the loop, after which the array
 * is gone. New requests get -ESHUTDOWN.  err: the clean mark could not be written everywhere. */
void array_stop(struct array *array, void (*stopped)(void *ctx, int err), void *ctx);
/* Let go at once, writing nothing (simulated death; a test). Members are closed. */
void array_abandon(struct array *array);

/* Drop a member for good (sr5 fail): recorded on the survivors, then done().  Refused with *diag
 * (E_LAST_GOOD_COPY, E_NO_SUCH_MEMBER) when the array would not be enough without it. */
MUST_CHECK int array_fail(struct array *array, uint32_t member_index, struct diag *diag,
                          void (*done)(void *ctx, int err), void *ctx);
/* "2", a device uuid (or its first 8 digits) or a path; ambiguous or unknown: *diag, negative. */
MUST_CHECK int array_find_member(struct array *array, const char *text, uint32_t *member_index,
                                 struct diag *diag);
/* The member's device, for changing its fault rules. */
struct dev *array_member_dev(struct array *array, uint32_t member_index);

void array_status(struct array *array, struct array_status *status);
void array_stats(struct array *array, struct array_stats *stats);
const struct geometry *array_geometry(const struct array *array);
