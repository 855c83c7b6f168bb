#include "engine/base/clock.h"

#include <time.h>

/* 2026-01-01T00:00:00Z: simulated runs write the same times to disk every time. */
#define VIRTUAL_WALL_BASE_NS (UINT64_C(1767225600) * SECOND_NS)

static uint64_t
read_clock(clockid_t id)
{
    struct timespec time;
    check_eq(clock_gettime(id, &time), 0);
    return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

static uint64_t
real_now_ns(struct clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t
real_wall_ns(struct clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_REALTIME);
}

struct clock *
clock_real(void)
{
    static struct clock real = {.now_ns = real_now_ns, .wall_ns = real_wall_ns};
    return &real;
}

static uint64_t
virtual_now_ns(struct clock *clock)
{
    return CONTAINER_OF(clock, struct clock_virtual, clock)->now_ns_value;
}

static uint64_t
virtual_wall_ns(struct clock *clock)
{
    const struct clock_virtual *self = CONTAINER_OF(clock, struct clock_virtual, clock);
    return self->wall_base_ns + self->now_ns_value;
}

void
clock_virtual_init(struct clock_virtual *clock)
{
    *clock = (struct clock_virtual){
        .clock = {.now_ns = virtual_now_ns, .wall_ns = virtual_wall_ns},
        .wall_base_ns = VIRTUAL_WALL_BASE_NS,
    };
}

void
clock_virtual_advance(struct clock_virtual *clock, uint64_t to_ns)
{
    check_ge(to_ns, clock->now_ns_value);
    clock->now_ns_value = to_ns;
}
