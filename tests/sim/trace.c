#include "tests/sim/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/hash.h"

void
trace_init(struct trace *trace, struct clock *clock, bool live)
{
    trace->clock = clock;
    trace->live = live;
    trace->count = trace->hash = 0;
}

static void
print_event(const struct trace_event *event)
{
    if (event->text[0] != '\0') {
        printf("  %12.6f ms  %s\n", (double)event->time_ns / 1e6, event->text);
        return;
    }
    printf("  %12.6f ms  %-10s %3" PRIu64 "  %8" PRIu64 " + %-8" PRIu64,
           (double)event->time_ns / 1e6, event->what, event->who, event->off, event->len);
    printf(event->err != 0 ? " %s\n" : "\n", strerror(-event->err));
}

static struct trace_event *
next_event(struct trace *trace)
{
    struct trace_event *event = &trace->events[trace->count++ % TRACE_EVENTS];
    event->time_ns = clock_now_ns(trace->clock);
    event->text[0] = '\0';
    return event;
}

void
trace_add(struct trace *trace, const char *what, uint64_t who, uint64_t off, uint64_t len, int err)
{
    struct trace_event *event = next_event(trace);
    event->what = what;
    event->who = who;
    event->off = off;
    event->len = len;
    event->err = err;
    uint64_t hash = trace->hash;
    for (const char *c = what; *c != '\0'; c++)
        hash = hash * 31 + (uint8_t)*c;
    hash = hash_mix(hash ^ event->time_ns) + who;
    hash = hash_mix(hash + off) ^ len;
    trace->hash = hash_mix(hash ^ ((uint64_t)(uint32_t)err << 32));
    if (trace->live)
        print_event(event);
}

void
trace_say(struct trace *trace, const char *format, ...)
{
    struct trace_event *event = next_event(trace);
    va_list args;
    va_start(args, format);
    vsnprintf(event->text, sizeof(event->text), format, args);
    va_end(args);
    if (trace->live)
        print_event(event);
}

void
trace_print(const struct trace *trace, uint32_t count)
{
    uint64_t have = MIN(trace->count, TRACE_EVENTS);
    for (uint64_t i = trace->count - MIN(have, count); i < trace->count; i++)
        print_event(&trace->events[i % TRACE_EVENTS]);
}
