/* THEORY OF OPERATION
 *
 * Two questions about a member, answered from what is known about it and nothing else: does it hold
 * the right bytes of a range, and which of its bad ranges has a write just made good?
 *
 *      data  |======== in sync ========|- - - not yet (rebuilding) - - -|
 *            0      [bad]              ^ frontier
 *
 * I6: a rebuilding member or a replacement counts only below its frontier.  Bad ranges come from
 * md's log, in addresses of the device; everything else here counts from the start of the data. */
#include "engine/member.h"

bool
member_readable(const struct member *member, uint64_t off_bytes, uint64_t len_bytes)
{
    if (!member_in_sync(member)) {
        /* I6 */
        if (member->state != MS_REBUILDING || off_bytes + len_bytes > member->frontier_bytes)
            return false;
    }
    uint64_t at = member->data_off_bytes + off_bytes;
    for (uint32_t i = 0; i < member->bad_count; i++)
        if (ranges_overlap(member->bad[i].off_bytes, member->bad[i].len_bytes, at, len_bytes))
            return false;
    return true;
}

bool
member_forget_bad(struct member *member, uint64_t off_bytes, uint64_t len_bytes)
{
    uint64_t from = member->data_off_bytes + off_bytes, to = from + len_bytes;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < member->bad_count; i++) {
        const struct bad_range *bad = &member->bad[i];
        if (bad->off_bytes < from || bad->off_bytes + bad->len_bytes > to)
            member->bad[kept++] = *bad;
    }
    bool forgot = kept != member->bad_count;
    member->bad_count = kept;
    return forgot;
}
