/* THEORY OF OPERATION
 *
 * A member is in one of six states; these are the legal arrows, every other is a bug of ours.
 *
 *      MISSING ──► SPARE ──► REBUILDING ──► ONLINE ◄──► SUSPECT
 *         ▲          │            │            │            │
 *         └──────────┴────────────┴── FAULTY ◄─┴────────────┘
 *
 * The state of the array is a function of its members' states, worked out when somebody asks
 * (array_status.c); it is never stored, so it cannot disagree with them.
 *
 *      READ_ONLY   opened so
 *      FAILED      members that answer are not enough for the layout
 *      REBUILDING  some role is served by a member that is not in sync everywhere yet
 *      DEGRADED    some role has no member in sync
 *      ONLINE      all roles are in sync
 *
 * Whether redundancy agrees with the data (a resync is pending) is a problem, not a state. */
#include "engine/array_state.h"

#define ARROW(to) (1u << (to))

static const unsigned arrows[] = {
    [MS_MISSING] = ARROW(MS_SPARE) | ARROW(MS_REBUILDING) | ARROW(MS_ONLINE),
    [MS_SPARE] = ARROW(MS_REBUILDING) | ARROW(MS_FAULTY) | ARROW(MS_MISSING),
    [MS_REBUILDING] = ARROW(MS_ONLINE) | ARROW(MS_FAULTY) | ARROW(MS_SPARE),
    [MS_ONLINE] = ARROW(MS_SUSPECT) | ARROW(MS_FAULTY),
    [MS_SUSPECT] = ARROW(MS_ONLINE) | ARROW(MS_FAULTY),
    [MS_FAULTY] = ARROW(MS_MISSING),
};

bool
member_state_arrow(enum member_state from, enum member_state to)
{
    check_lt(from, ARRAY_LEN(arrows));
    return arrows[from] & ARROW(to);
}

const char *
member_state_name(enum member_state state)
{
    static const char *const names[] = {
        [MS_MISSING] = "missing", [MS_SPARE] = "spare",     [MS_REBUILDING] = "rebuilding",
        [MS_ONLINE] = "online",   [MS_SUSPECT] = "suspect", [MS_FAULTY] = "faulty",
    };
    check_lt(state, ARRAY_LEN(names));
    return names[state];
}

const char *
array_state_name(enum array_state state)
{
    static const char *const names[] = {
        [AS_ONLINE] = "online",   [AS_DEGRADED] = "degraded",   [AS_REBUILDING] = "rebuilding",
        [AS_WAITING] = "waiting", [AS_READ_ONLY] = "read-only", [AS_FAILED] = "failed",
        [AS_STOPPED] = "stopped",
    };
    check_lt(state, ARRAY_LEN(names));
    return names[state];
}
