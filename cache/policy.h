/* A cache policy: when a WRITE is answered, and what a FLUSH costs.
 *
 * A policy is a pure object.  The cache asks, the policy answers with an instruction, and the cache
 * carries it out.  So a policy does no I/O, keeps no state, allocates nothing, reads no clock,
 * never waits and cannot fail; the same question has the same answer, which a unit test can ask
 * for.
 *
 * What is fixed is here: the two instructions that exist without a log.  Those of the log (append
 * the flush to it, or destage in place, whichever is cheaper) are added together with it. */
#pragma once

#include "engine/base/units.h"

/* What the cache knows when it asks.  Facts only: what they mean is the policy's business. */
struct policy_facts {
    uint64_t dirty_bytes;     /* answered, and not yet on the members */
    uint64_t dirty_max_bytes; /* what may be dirty at most; never 0 */
    uint64_t request_bytes;   /* of the request asked about; FLUSH: 0 */
};

/* How a WRITE without FUA is answered.  (With FUA the cache does what `on_flush` says for it.) */
enum policy_write {
    POLICY_WRITE_THROUGH, /* to the members, redundancy too; answered when it is there */
    POLICY_WRITE_KEEP,    /* kept in memory; answered at once */
};

/* What has to be done before a FLUSH, or a WRITE with FUA, may be answered (P3). */
enum policy_flush {
    POLICY_FLUSH_MEMBERS, /* nothing is dirty: flush the members */
    POLICY_FLUSH_DESTAGE, /* write all that is dirty to the members, then flush them */
};

struct policy {
    /* Required.  What people type and the sr5 area records: 1 to 15 bytes. */
    const char *name;

    /* Required.  May WRITE_KEEP ever be the answer?  When false no cache is stacked on the array,
     * so that the policy costs nothing: on_write and on_flush are then asked by tests only. */
    bool keeps_dirty;

    /* Required.  Called for each WRITE, TRIM and ZERO without FUA.  WRITE_KEEP only when the
     * request fits: dirty_bytes + request_bytes <= dirty_max_bytes; the cache checks it. */
    enum policy_write (*on_write)(const struct policy_facts *facts);

    /* Required.  FLUSH_MEMBERS only when dirty_bytes is 0; the cache checks it (P3). */
    enum policy_flush (*on_flush)(const struct policy_facts *facts);

    /* Optional; default: never before the limit or a FLUSH asks for it.  May some of what is dirty
     * be written to the members now, when nothing forces it? */
    bool (*wants_destage)(const struct policy_facts *facts);
};

extern const struct policy policy_writethrough;
extern const struct policy policy_skeleton; /* to copy from; tested, never registered */

/* The policy of that name that this program can carry out, or NULL.  Constant, never freed; any
 * thread.  An array may record a name that is not here (`auto`): then policy_default() serves it.
 */
const struct policy *policy_find(const char *name);
/* The one that is right for every array: writethrough. */
const struct policy *policy_default(void);
/* All of them, ended by NULL, in the order in which help lists them. */
const struct policy *const *policy_all(void);

/* Does it want to destage?  Knows the default of the optional member. */
static inline bool
policy_wants_destage(const struct policy *policy, const struct policy_facts *facts)
{
    return policy->wants_destage != NULL && policy->wants_destage(facts);
}
