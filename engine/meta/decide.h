/* Which members make up an array, and may it start?  Pure: superblocks in, verdict out.
 *
 * THEORY.  Implements research/md.md 1.8 and P5: the freshest data member decides; a member behind
 * by more than one event, or that the freshest (or the lineage of the sr5 area) says was lost, is
 * stale and never a source; two halves that each say the other failed have diverged and are never
 * merged.  Nothing here reads or writes. */
#pragma once

#include "engine/meta/area.h"
#include "engine/meta/super.h"

/* One candidate: what was read from one file or device (engine/probe fills it). */
struct candidate {
    const char *path;
    uint64_t device_bytes;
    bool has_super;
    struct super super;
    bool has_area;
    struct area area;
    bool super_from_backup;  /* the superblock came from the sr5 area; then it counts as dirty */
    uint32_t bitmap_version; /* 3..6; 0: no bitmap */
};

enum member_class {
    MEMBER_ACTIVE,      /* in its role, in sync (below recovery_offset if recovering) */
    MEMBER_RECOVERING,  /* in its role, in sync only below recovery_offset */
    MEMBER_REPLACEMENT, /* second member of its role, in sync below recovery_offset */
    MEMBER_SPARE,
    MEMBER_JOURNAL,
    MEMBER_STALE,     /* missed writes: never a source */
    MEMBER_FAULTY,    /* the others say it failed */
    MEMBER_DIVERGED,  /* written apart from the others */
    MEMBER_FOREIGN,   /* another array's, or contradicts the freshest */
    MEMBER_DUPLICATE, /* same device uuid twice */
};

struct decision_member {
    uint32_t candidate;
    enum member_class class;
    uint32_t role; /* valid for ACTIVE, RECOVERING, REPLACEMENT */
    char why[160]; /* a sentence, for all that are not used */
};

struct decision {
    uint32_t freshest; /* candidate index */
    uint32_t member_count;
    struct decision_member members[2 * 64];
    uint64_t present_roles; /* roles with an ACTIVE member */
    uint64_t listed_roles;  /* roles the freshest superblock lists as active */
    bool dirty;             /* resync_offset != MAX */
    bool complete;          /* every listed role is present */
    /* Highest events of any candidate, used or not: the next superblock must be beyond it, so that
     * a side that was not kept can never win later. */
    uint64_t events_max;
};

/* For `count` candidates of one array uuid.  0; or -EINVAL with *diag when nothing can be made of
 * them: E_RESHAPE, E_CLUSTERED, E_DIVERGED, E_NO_MEMBERS, ...  keep: path of the member whose side
 * wins a divergence, or NULL. */
MUST_CHECK int decide(const struct candidate *const *candidates, uint32_t count, const char *keep,
                      struct decision *decision, struct diag *diag);
/* Written by a `create` that was cut off before it was complete, and nothing has happened since.
 * (An array counts as made as soon as one of its members says so.) */
bool candidate_unfinished(const struct candidate *candidate);
bool member_class_used(enum member_class class); /* it takes part in the array */
const char *member_class_name(enum member_class class);
