/* A policy to copy from: it compiles, it is tested (tests/unit/test_policy.c), nothing uses it.
 *
 * THEORY OF OPERATION.  The simplest policy that keeps anything:
 *
 *      WRITE   kept in memory while it fits, else written through
 *      FLUSH   what is dirty is destaged, then the members are flushed
 *      idle    destage from half full on, so that there is room for a burst
 *
 * To add a policy: copy this file to cache/policy_NAME.c, rename, answer the questions, and follow
 * docs/adding-a-policy.md. */
#include "engine/base/check.h"

#include "cache/policy.h"

/* Half: the other half takes a burst while the first is on its way to the members. */
#define DESTAGE_FROM_DIVISOR 2

static bool
fits(const struct policy_facts *facts)
{
    check_le(facts->dirty_bytes, facts->dirty_max_bytes);
    return facts->request_bytes <= facts->dirty_max_bytes - facts->dirty_bytes;
}

static enum policy_write
skeleton_on_write(const struct policy_facts *facts)
{
    return fits(facts) ? POLICY_WRITE_KEEP : POLICY_WRITE_THROUGH;
}

/* P3: whatever is dirty goes first. */
static enum policy_flush
skeleton_on_flush(const struct policy_facts *facts)
{
    return facts->dirty_bytes == 0 ? POLICY_FLUSH_MEMBERS : POLICY_FLUSH_DESTAGE;
}

static bool
skeleton_wants_destage(const struct policy_facts *facts)
{
    return facts->dirty_bytes >= facts->dirty_max_bytes / DESTAGE_FROM_DIVISOR;
}

const struct policy policy_skeleton = {
    .name = "skeleton",
    .keeps_dirty = true,
    .on_write = skeleton_on_write,
    .on_flush = skeleton_on_flush,
    .wants_destage = skeleton_wants_destage,
};
