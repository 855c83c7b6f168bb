/* THEORY OF OPERATION
 *
 * Write caching off.  Nothing is ever answered that is not on the members:
 *
 *      WRITE   to the members, with its redundancy; answered when all have taken it
 *      FLUSH   a flush of the members, whose own caches may be volatile
 *
 * It keeps nothing dirty, so the daemon stacks no cache for it: the array itself is what the server
 * serves, and the branch is taken once, when the array is started.
 *
 * Deliberately not here: a read cache (the members' page cache is not used either, O_DIRECT). */
#include "engine/base/check.h"

#include "cache/policy.h"

static enum policy_write
writethrough_on_write(const struct policy_facts *facts)
{
    check_eq(facts->dirty_bytes, 0);
    return POLICY_WRITE_THROUGH;
}

static enum policy_flush
writethrough_on_flush(const struct policy_facts *facts)
{
    check_eq(facts->dirty_bytes, 0); /* P3 */
    return POLICY_FLUSH_MEMBERS;
}

const struct policy policy_writethrough = {
    .name = "writethrough",
    .keeps_dirty = false,
    .on_write = writethrough_on_write,
    .on_flush = writethrough_on_flush,
};
