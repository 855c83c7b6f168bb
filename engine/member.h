/* A member of an open array: its device, what it may be used for, and what happened to it.
 *
 * Only the array's loop touches it.  State changes go through array_member_fail() and
 * array_member_suspect() (engine/array_core.h), which keep the masks of the array right. */
#pragma once

#include "engine/base/dev.h"

#include "engine/array_state.h"
#include "engine/meta/area.h"
#include "engine/meta/bitmap.h"
#include "engine/meta/decide.h"

enum member_fault { /* why it is faulty */
                    FAULT_NONE,
                    FAULT_ASSEMBLY, /* stale, diverged... at assembly: never used */
                    FAULT_GONE,
                    FAULT_WRITE,
                    FAULT_FLUSH,
                    FAULT_NO_SPACE,
                    FAULT_ADMIN,
};

struct member {
    struct dev *dev;
    struct dev_info info;
    char path[256];
    uint32_t index; /* in array->members */
    enum member_class class;
    enum member_state state;
    enum member_fault fault;
    uint64_t fault_wall_ns;
    bool has_role;
    bool replacement; /* second member of its role: written along, read last */
    bool gone;        /* its last request said -ENODEV */
    uint32_t role;
    uint64_t frontier_bytes; /* REBUILDING: in sync below it, from data_off_bytes (I6) */

    struct super super; /* as last read or written */
    struct area area;
    bool has_area;
    unsigned area_slot; /* where the newest slot is; the next one goes to the other */
    bool has_bitmap;
    bool super_restored; /* it was found only as a copy when the array was opened */
    uint64_t super_off_bytes, bitmap_off_bytes, data_off_bytes;

    struct bad_range bad[BAD_RANGES_MAX]; /* absolute on the device, sorted */
    uint32_t bad_count;

    uint32_t in_flight;
    uint64_t read_end_bytes; /* where the last read ended: sequential readers stay */
    uint64_t writes_done;    /* completed writes that a flush must make durable */
    uint64_t writes_flushed; /* how many of them one has */
    uint64_t read_errors, write_errors, repaired;
    uint64_t reads, writes, flushes, read_bytes, write_bytes;
};

/* Does it hold the right bytes for [off, off+len) of its data?  Pure. */
bool member_readable(const struct member *member, uint64_t off_bytes, uint64_t len_bytes);
/* A good write over a whole bad range makes it good (in memory; md's list on disk stays).  True
 * when there was one. */
bool member_forget_bad(struct member *member, uint64_t off_bytes, uint64_t len_bytes);

static inline bool
member_in_sync(const struct member *member)
{
    return member->state == MS_ONLINE || member->state == MS_SUSPECT;
}

/* Takes writes of its role. */
static inline bool
member_writable(const struct member *member)
{
    return member_in_sync(member) || member->state == MS_REBUILDING;
}

/* Its superblock is kept up to date. */
static inline bool
member_live(const struct member *member)
{
    return member_writable(member) || member->state == MS_SPARE;
}

/* Completed writes that only a flush makes durable. */
static inline bool
member_needs_flush(const struct member *member)
{
    return member->info.volatile_cache && member->writes_done != member->writes_flushed;
}
