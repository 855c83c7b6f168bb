/* THEORY OF OPERATION.  One pass after another over the candidates; each gives a class to some, and
 * what is still UNJUDGED after the last is an error of ours:
 *
 *   strangers    no usable superblock, another array's uuid, contradicting parameters
 *   duplicates   one device uuid twice: nobody can say which is the copy
 *   freshest     the highest event counter of a member in its role decides (md.md 1.8.1)
 *   divergence   members that went on without those that went on without them
 *   the rest     spare, faulty, stale, or in its role
 *
 * D1  A member more than one event behind missed an acknowledged write: never a source (P5).
 * D2  One event behind is fine: superblocks are written in parallel and a cut may tear the set;
 *     nothing was acknowledged that depended on the torn update.
 * D3  A member that the freshest lists as failed is not used, whatever it says of itself.
 * D4  Two sides that each went on alone are never merged; one is chosen by name.
 *
 * How divergence is seen: lineage.c. */
#include "engine/meta/decide.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/bitset.h"

#include "engine/meta/bitmap_format.h"
#include "engine/meta/lineage.h"

#define ROLES_MAX      64u
#define CANDIDATES_MAX ARRAY_LEN(((struct decision *)0)->members)
#define UNJUDGED       ((enum member_class) - 1)
#define NOBODY         UINT32_MAX

struct court {
    const struct candidate *const *candidates;
    uint32_t count;
    const char *keep;
    struct decision *decision;
    struct diag *diag;
};

const char *member_class_name(enum member_class class)
{
    static const char *const names[] = {
        [MEMBER_ACTIVE] = "active",   [MEMBER_RECOVERING] = "recovering",
        [MEMBER_SPARE] = "spare",     [MEMBER_REPLACEMENT] = "replacement",
        [MEMBER_JOURNAL] = "journal", [MEMBER_STALE] = "stale",
        [MEMBER_FAULTY] = "faulty",   [MEMBER_DIVERGED] = "diverged",
        [MEMBER_FOREIGN] = "foreign", [MEMBER_DUPLICATE] = "duplicate",
    };
    return (size_t) class < ARRAY_LEN(names) ? names[class] : "unknown";
}

bool member_class_used(enum member_class class)
{
    return class == MEMBER_ACTIVE || class == MEMBER_RECOVERING || class == MEMBER_REPLACEMENT ||
           class == MEMBER_SPARE;
}

static const struct super *
super_of(const struct court *court, uint32_t i)
{
    return &court->candidates[i]->super;
}

static bool
unjudged(const struct court *court, uint32_t i)
{
    return court->decision->members[i].class == UNJUDGED;
}

static void PRINTF_LIKE(4, 5)
    judge(const struct court *court, uint32_t i, enum member_class class, const char *format, ...)
{
    struct decision_member *member = &court->decision->members[i];
    va_list args;
    member->class = class;
    va_start(args, format);
    vsnprintf(member->why, sizeof(member->why), format, args);
    va_end(args);
}

static bool
is_data_role(uint16_t role)
{
    return role < SUPER_ROLE_JOURNAL;
}

/* ---- strangers ------------------------------------------------------------------------------ */

bool
candidate_unfinished(const struct candidate *candidate)
{
    return candidate->has_super && candidate->has_area && candidate->area.generation == 0 &&
           candidate->area.events == candidate->super.events &&
           memcmp(candidate->area.array_uuid, candidate->super.array_uuid, 16) == 0;
}

/* The array exists from the moment the first area says so; by then every superblock is durable. */
static int
check_finished(const struct court *court)
{
    for (uint32_t i = 0; i < court->count; i++)
        if (court->candidates[i]->has_super && !candidate_unfinished(court->candidates[i]))
            return 0;
    return diag_set(court->diag, DIAG_REFUSED, "E_CREATE_UNFINISHED", -EINVAL,
                    "the creation of this array was interrupted; nothing was ever stored in it");
}

/* Duplicates among the candidates are refused; with --keep naming one of them, the others go. */
static int
pass_duplicates(const struct court *court)
{
    for (uint32_t i = 0; i < court->count; i++) {
        for (uint32_t j = i + 1; j < court->count; j++) {
            if (!unjudged(court, i) || !unjudged(court, j) ||
                memcmp(super_of(court, i)->device_uuid, super_of(court, j)->device_uuid, 16) != 0)
                continue;
            const char *a = court->candidates[i]->path, *b = court->candidates[j]->path;
            bool keep_a = court->keep != NULL && strcmp(court->keep, a) == 0;
            bool keep_b = court->keep != NULL && strcmp(court->keep, b) == 0;
            if (!keep_a && !keep_b) {
                diag_set(court->diag, DIAG_REFUSED, "E_DUPLICATE", -EINVAL,
                         "%s and %s are copies of one member; only one of them may be used", a, b);
                diag_fix(court->diag, "leave one of them out, or --keep=%s", a);
                return -EINVAL;
            }
            judge(court, keep_a ? j : i, MEMBER_DUPLICATE, "a copy of %s, which is kept",
                  keep_a ? a : b);
        }
    }
    return 0;
}

static void
pass_strangers(const struct court *court)
{
    const uint8_t *uuid = NULL;
    for (uint32_t i = 0; i < court->count; i++) {
        if (!court->candidates[i]->has_super) {
            judge(court, i, MEMBER_FOREIGN, "it has no usable superblock");
            continue;
        }
        if (uuid == NULL)
            uuid = super_of(court, i)->array_uuid;
        if (memcmp(uuid, super_of(court, i)->array_uuid, 16) != 0)
            judge(court, i, MEMBER_FOREIGN, "it belongs to another array");
    }
}

/* ---- the freshest --------------------------------------------------------------------------- */

/* Is a the better witness of the two?  More events; with one difference a member in sync goes
 * before one being rebuilt, which may be first to hear of its own adoption; then a superblock in
 * its place before a backup, a dirty before a clean (resync too much, not too little), the lower
 * role. */
static bool
fresher(const struct candidate *a, const struct candidate *b)
{
    const struct super *sa = &a->super, *sb = &b->super;
    bool rebuilt_a = sa->features & (SUPER_RECOVERY | SUPER_REPLACEMENT);
    bool rebuilt_b = sb->features & (SUPER_RECOVERY | SUPER_REPLACEMENT);
    uint64_t apart = sa->events > sb->events ? sa->events - sb->events : sb->events - sa->events;
    if (apart <= 1 && rebuilt_a != rebuilt_b)
        return rebuilt_b;
    if (apart != 0)
        return sa->events > sb->events;
    if (a->super_from_backup != b->super_from_backup)
        return b->super_from_backup;
    if (sa->resync_offset_sectors != sb->resync_offset_sectors)
        return sa->resync_offset_sectors < sb->resync_offset_sectors;
    return super_role(sa) < super_role(sb);
}

static uint32_t
find_freshest(const struct court *court, bool (*side)(const struct court *court, uint32_t i))
{
    uint32_t best = NOBODY;
    for (uint32_t i = 0; i < court->count; i++) {
        if (!unjudged(court, i) || !is_data_role(super_role(super_of(court, i))))
            continue;
        if (side != NULL && !side(court, i))
            continue;
        if (best == NOBODY || fresher(court->candidates[i], court->candidates[best]))
            best = i;
    }
    return best;
}

static int
check_servable(const struct court *court, uint32_t freshest)
{
    const struct super *f = super_of(court, freshest);
    struct diag *diag = court->diag;
    if (f->features & (SUPER_RESHAPE | SUPER_RESHAPE_BACKWARDS | SUPER_NEW_OFFSET))
        return diag_set(diag, DIAG_REFUSED, "E_RESHAPE", -EINVAL,
                        "the array is in the middle of a reshape, which only md can finish");
    if (f->features & SUPER_CLUSTERED)
        return diag_set(diag, DIAG_REFUSED, "E_CLUSTERED", -EINVAL,
                        "the array belongs to a cluster; another host may be writing to it");
    if (f->features & SUPER_JOURNAL)
        return diag_set(
            diag, DIAG_REFUSED, "E_JOURNAL", -EINVAL,
            "the array has a journal device, which may hold data that the members lack");
    if ((f->features & (SUPER_PPL | SUPER_MULTIPLE_PPLS)) &&
        f->resync_offset_sectors != SUPER_INFINITY)
        return diag_set(diag, DIAG_REFUSED, "E_PPL_DIRTY", -EINVAL,
                        "the array was not stopped cleanly and its partial parity log has to be "
                        "replayed, which only md can do");
    if (court->candidates[freshest]->bitmap_version == BITMAP_LOCKLESS)
        return diag_set(diag, DIAG_REFUSED, "E_LLBITMAP", -EINVAL,
                        "the array has a lockless bitmap, which only md can keep");
    if (court->candidates[freshest]->bitmap_version == BITMAP_CLUSTERED)
        return diag_set(diag, DIAG_REFUSED, "E_CLUSTERED", -EINVAL,
                        "the array's bitmap belongs to a cluster; another host may be writing");
    bool level_known =
        f->level == 0 || f->level == 1 || (f->level >= 4 && f->level <= 6) || f->level == 10;
    if (!level_known)
        return diag_set(diag, DIAG_REFUSED, "E_LEVEL_UNKNOWN", -EINVAL,
                        "level %" PRId32 " of md is not one that is served here", f->level);
    if (f->raid_disks > ROLES_MAX)
        return diag_set(diag, DIAG_REFUSED, "E_TOO_MANY_MEMBERS", -EINVAL,
                        "the array has %" PRIu32 " members; at most %u are served", f->raid_disks,
                        ROLES_MAX);
    return 0;
}

/* ---- contradiction -------------------------------------------------------------------------- */

/* What differs although it never may while an array lives; NULL: nothing. */
static const char *
contradiction(const struct super *m, const struct super *f)
{
    bool recent = m->events + 1 >= f->events;
    uint32_t layout_flag = (m->features ^ f->features) & SUPER_RAID0_LAYOUT;
    if (m->level != f->level)
        return "another level";
    if (m->layout != f->layout || layout_flag)
        return "another layout";
    if (m->chunk_sectors != f->chunk_sectors)
        return "another chunk size";
    if (m->created_s != f->created_s)
        return "another creation time";
    if (recent && m->raid_disks != f->raid_disks)
        return "another number of members";
    if (recent && m->used_sectors != f->used_sectors)
        return "another size";
    return NULL;
}

static void
pass_contradictions(const struct court *court, uint32_t freshest)
{
    for (uint32_t i = 0; i < court->count; i++) {
        const char *what = contradiction(super_of(court, i), super_of(court, freshest));
        if (unjudged(court, i) && what != NULL)
            judge(court, i, MEMBER_FOREIGN, "it contradicts the freshest member: %s", what);
    }
}

/* ---- divergence ----------------------------------------------------------------------------- */

static uint32_t
find_diverged(const struct court *court, uint32_t freshest)
{
    for (uint32_t i = 0; i < court->count; i++) {
        bool adopted = super_of(court, i)->features & (SUPER_RECOVERY | SUPER_REPLACEMENT);
        if (i != freshest && unjudged(court, i) && is_data_role(super_role(super_of(court, i))) &&
            !adopted && members_diverged(court->candidates[i], court->candidates[freshest]))
            return i;
    }
    return NOBODY;
}

static uint32_t
find_path(const struct court *court, const char *path)
{
    for (uint32_t i = 0; i < court->count; i++)
        if (unjudged(court, i) && strcmp(court->candidates[i]->path, path) == 0)
            return i;
    return NOBODY;
}

/* On the side of the member to keep: each lists the other as working. */
static bool
with_kept(const struct court *court, uint32_t i)
{
    uint32_t kept = find_path(court, court->keep);
    const struct super *si = super_of(court, i), *sk = super_of(court, kept);
    return i == kept || (super_lists(sk, si->dev_number, super_role(si)) &&
                         super_lists(si, sk->dev_number, super_role(sk)) &&
                         !members_diverged(court->candidates[i], court->candidates[kept]));
}

/* Settle a divergence, or refuse.  *freshest becomes that of the chosen side. */
static int
pass_divergence(const struct court *court, uint32_t *freshest)
{
    uint32_t other = find_diverged(court, *freshest);
    if (other == NOBODY)
        return 0;
    const struct candidate *a = court->candidates[*freshest], *b = court->candidates[other];
    uint32_t kept = court->keep != NULL ? find_path(court, court->keep) : NOBODY;
    if (kept == NOBODY || !is_data_role(super_role(super_of(court, kept)))) {
        diag_set(court->diag, DIAG_REFUSED, "E_DIVERGED", -EINVAL,
                 "two sides of the array were written apart: %s (generation %" PRIu64
                 ") and %s (generation %" PRIu64 "); they are not merged",
                 a->path, a->super.events, b->path, b->super.events);
        diag_fix(court->diag, "choose the side whose data counts: --keep=%s", a->path);
        diag_fix(court->diag, "or --keep=%s", b->path);
        return -EINVAL;
    }
    *freshest = find_freshest(court, with_kept);
    check_ne(*freshest, NOBODY);
    for (uint32_t i = 0; i < court->count; i++) {
        if (!unjudged(court, i) || !is_data_role(super_role(super_of(court, i))) || i == *freshest)
            continue;
        bool ahead = super_of(court, i)->events > super_of(court, *freshest)->events + 1;
        if (ahead || members_diverged(court->candidates[i], court->candidates[*freshest]))
            judge(court, i, MEMBER_DIVERGED, "it was written apart from %s, which is kept",
                  court->keep);
    }
    return 0;
}

/* ---- the rest ------------------------------------------------------------------------------- */

/* The place of a member that is fresh enough, or why it has none. */
static void
judge_in_role(const struct court *court, uint32_t i, uint32_t freshest)
{
    const struct super *m = super_of(court, i), *f = super_of(court, freshest);
    uint16_t role = super_role(m);
    uint16_t listed = m->dev_number < f->max_dev ? f->roles[m->dev_number] : SUPER_ROLE_SPARE;
    /* One that was just adopted may be first to hear of it; everybody else must be listed (D3). */
    bool adopted = m->features & (SUPER_RECOVERY | SUPER_REPLACEMENT);
    if (listed != role && i != freshest && !(adopted && m->events > f->events)) {
        judge(court, i, listed == SUPER_ROLE_FAULTY ? MEMBER_FAULTY : MEMBER_STALE,
              "the freshest member lists it as %s: it must be rebuilt",
              listed == SUPER_ROLE_FAULTY ? "failed" : "removed");
        return;
    }
    bool whole = !(m->features & SUPER_RECOVERY);
    struct decision_member *member = &court->decision->members[i];
    member->role = role;
    member->why[0] = '\0';
    if (m->features & SUPER_REPLACEMENT)
        member->class = MEMBER_REPLACEMENT;
    else
        member->class = whole ? MEMBER_ACTIVE : MEMBER_RECOVERING;
}

static void
judge_behind(const struct court *court, uint32_t i, uint32_t freshest)
{
    const struct super *m = super_of(court, i), *f = super_of(court, freshest);
    uint64_t behind = f->events - m->events;
    if (super_lists(f, m->dev_number, SUPER_ROLE_FAULTY))
        judge(court, i, MEMBER_FAULTY,
              "generation behind by %" PRIu64 " events: the others say it failed, must be rebuilt",
              behind);
    else
        judge(court, i, MEMBER_STALE,
              "generation behind by %" PRIu64 " events: failed or left earlier, must be rebuilt",
              behind);
}

static void
pass_rest(const struct court *court, uint32_t freshest)
{
    const struct super *f = super_of(court, freshest);
    for (uint32_t i = 0; i < court->count; i++) {
        const struct super *m = super_of(court, i);
        uint16_t role = super_role(m);
        if (!unjudged(court, i))
            continue;
        if (role == SUPER_ROLE_SPARE)
            judge(court, i, MEMBER_SPARE, "a spare");
        else if (role == SUPER_ROLE_FAULTY)
            judge(court, i, MEMBER_FAULTY, "it says itself that it failed");
        else if (role == SUPER_ROLE_JOURNAL)
            judge(court, i, MEMBER_JOURNAL, "a journal");
        else if (m->events + 1 < f->events)
            judge_behind(court, i, freshest);
        else
            judge_in_role(court, i, freshest);
    }
}

/* One member in sync for a role, one replacement beside it, and no more. */
static int
pass_roles(const struct court *court)
{
    uint32_t holder[ROLES_MAX], second[ROLES_MAX];
    memset(holder, 0xff, sizeof(holder));
    memset(second, 0xff, sizeof(second));
    for (uint32_t i = 0; i < court->count; i++) {
        struct decision_member *member = &court->decision->members[i];
        if (member->class > MEMBER_REPLACEMENT)
            continue;
        check_lt(member->role, ROLES_MAX);
        uint32_t *place =
            member->class == MEMBER_REPLACEMENT ? &second[member->role] : &holder[member->role];
        if (*place != NOBODY)
            return diag_set(court->diag, DIAG_REFUSED, "E_DUPLICATE", -EINVAL,
                            "%s and %s both claim role %" PRIu32, court->candidates[*place]->path,
                            court->candidates[i]->path, member->role);
        *place = i;
    }
    /* A finished replacement whose original is gone simply holds the role. */
    for (uint32_t role = 0; role < ROLES_MAX; role++) {
        if (second[role] == NOBODY || holder[role] != NOBODY)
            continue;
        if (!(super_of(court, second[role])->features & SUPER_RECOVERY))
            court->decision->members[second[role]].class = MEMBER_ACTIVE;
    }
    return 0;
}

static void
summarise(const struct court *court, uint32_t freshest)
{
    struct decision *d = court->decision;
    const struct super *f = super_of(court, freshest);
    uint64_t usable = 0;
    for (uint32_t dev = 0; dev < f->max_dev; dev++)
        if (f->roles[dev] < f->raid_disks)
            d->listed_roles |= mask_of(f->roles[dev]);
    for (uint32_t i = 0; i < court->count; i++) {
        const struct decision_member *member = &d->members[i];
        const struct super *m = super_of(court, i);
        if (court->candidates[i]->has_super && member->class != MEMBER_FOREIGN)
            d->events_max = MAX(d->events_max, m->events);
        if (member->class > MEMBER_REPLACEMENT)
            continue;
        usable |= mask_of(member->role);
        if (member->class == MEMBER_ACTIVE)
            d->present_roles |= mask_of(member->role);
        /* md takes the first one's word; the more careful word is the dirty one. */
        if (m->events == f->events && m->resync_offset_sectors != SUPER_INFINITY &&
            !court->candidates[i]->super_from_backup)
            d->dirty = true;
    }
    d->freshest = freshest;
    d->dirty = f->level != 0 && (d->dirty || f->resync_offset_sectors != SUPER_INFINITY);
    d->complete = (d->listed_roles & ~usable) == 0;
}

int
decide(const struct candidate *const *candidates, uint32_t count, const char *keep,
       struct decision *decision, struct diag *diag)
{
    struct court court = {candidates, count, keep, decision, diag};
    memset(decision, 0, sizeof(*decision));
    if (count > CANDIDATES_MAX)
        return diag_set(diag, DIAG_REFUSED, "E_TOO_MANY_MEMBERS", -EINVAL,
                        "%" PRIu32 " candidates for one array", count);
    decision->member_count = count;
    for (uint32_t i = 0; i < count; i++)
        decision->members[i] = (struct decision_member){.candidate = i, .class = UNJUDGED};
    pass_strangers(&court);
    uint32_t freshest = find_freshest(&court, NULL);
    if (freshest == NOBODY)
        return diag_set(diag, DIAG_FAILED, "E_NO_MEMBERS", -EINVAL,
                        "none of what was found holds data of the array");
    int err = check_finished(&court);
    if (err == 0)
        err = pass_duplicates(&court);
    if (err < 0)
        return err;
    freshest = find_freshest(&court, NULL); /* a duplicate may have gone */
    check_ne(freshest, NOBODY);
    pass_contradictions(&court, freshest);
    err = pass_divergence(&court, &freshest);
    if (err == 0)
        err = check_servable(&court, freshest);
    if (err < 0)
        return err;
    pass_rest(&court, freshest);
    err = pass_roles(&court);
    if (err == 0)
        summarise(&court, freshest);
    return err;
}
