/* THEORY OF OPERATION.  Divergence is seen in the role tables: a member that was lost keeps a table
 * in which those that lost it still work; one that went on alone has a table without them.  Where
 * both have an sr5 area of their superblock's generation, its lineage says it exactly. */
#include "engine/meta/lineage.h"

#include <string.h>

static bool
is_data_role(uint16_t role)
{
    return role < SUPER_ROLE_JOURNAL;
}

/* A member's lineage counts only while it is of its superblock's generation: md moves the counter
 * without telling the area. */
static const struct area *
lineage(const struct candidate *c)
{
    bool current = c->has_area && c->area.events == c->super.events && !c->super_from_backup &&
                   memcmp(c->area.array_uuid, c->super.array_uuid, 16) == 0 &&
                   memcmp(c->area.device_uuid, c->super.device_uuid, 16) == 0;
    return current ? &c->area : NULL;
}

/* a knew `other` only up to a generation that other has left behind since. */
static bool
lost_sight(const struct area *a, uint16_t role, uint64_t events)
{
    return role < AREA_MEMBERS_MAX && events > 1 && a->role_events[role] < events - 1;
}

static bool
diverged_by_lineage(const struct candidate *m, const struct candidate *f)
{
    const struct area *am = lineage(m), *af = lineage(f);
    const struct super *sm = &m->super, *sf = &f->super;
    return am != NULL && af != NULL && lost_sight(am, super_role(sf), sf->events) &&
           lost_sight(af, super_role(sm), sm->events);
}

/* By the tables: does m know none of those that work now, and had it closed the freshest one's or
 * another one's role?  Then it went on without them, and they without it. */
static bool
diverged_by_tables(const struct candidate *m, const struct candidate *f)
{
    const struct super *sm = &m->super, *sf = &f->super;
    bool without = false;
    if (super_lists(sf, sm->dev_number, super_role(sm)) && sm->events + 1 >= sf->events &&
        super_lists(sm, sf->dev_number, super_role(sf)))
        return false; /* they know each other */
    for (uint32_t dev = 0; dev < sf->max_dev; dev++) {
        uint16_t role = sf->roles[dev];
        if (!is_data_role(role) || dev == sm->dev_number)
            continue;
        if (super_lists(sm, dev, role))
            return false; /* one that works now was with m to its end */
        without |= super_vacant(sm, role);
    }
    return without;
}

/* At (nearly) the same generation, reporting the freshest as lost is enough. */
static bool
reports_lost(const struct candidate *m, const struct candidate *f)
{
    const struct super *sm = &m->super, *sf = &f->super;
    bool adopted = sf->features & (SUPER_RECOVERY | SUPER_REPLACEMENT);
    return sm->events + 1 >= sf->events && !adopted && super_vacant(sm, super_role(sf));
}

bool
members_diverged(const struct candidate *m, const struct candidate *f)
{
    return diverged_by_lineage(m, f) || diverged_by_tables(m, f) || reports_lost(m, f);
}
