/* Time as a value that can be real or simulated.  Monotonic nanoseconds from an arbitrary zero,
 * and wall-clock seconds for what is written to disk. */
#pragma once

#include "engine/base/units.h"

struct clock {
    uint64_t (*now_ns)(struct clock *clock);
    uint64_t (*wall_ns)(struct clock *clock); /* since 1970, UTC */
};

struct clock *clock_real(void); /* static, thread-safe */

/* A clock that moves only when told. */
struct clock_virtual {
    struct clock clock;
    uint64_t now_ns_value;
    uint64_t wall_base_ns;
};
void clock_virtual_init(struct clock_virtual *clock);
void clock_virtual_advance(struct clock_virtual *clock, uint64_t to_ns); /* never backwards */

static inline uint64_t
clock_now_ns(struct clock *clock)
{
    return clock->now_ns(clock);
}

static inline uint64_t
clock_wall_ns(struct clock *clock)
{
    return clock->wall_ns(clock);
}
