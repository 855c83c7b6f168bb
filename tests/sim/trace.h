/* What happened in a run: a ring of events, printed when the run fails, and a hash of all of them,
 * by which two runs are compared bit for bit. */
#pragma once

#include "engine/base/clock.h"
#include "engine/base/compiler.h"

#define TRACE_EVENTS 512u
#define TRACE_TEXT   120u

struct trace_event {
    uint64_t time_ns;
    const char *what; /* a literal */
    uint64_t who, off, len;
    int err;
    char text[TRACE_TEXT]; /* "": none */
};

struct trace {
    struct clock *clock;
    bool live; /* print each event at once */
    uint64_t count, hash;
    struct trace_event events[TRACE_EVENTS];
};

void trace_init(struct trace *trace, struct clock *clock, bool live);
void trace_add(struct trace *trace, const char *what, uint64_t who, uint64_t off, uint64_t len,
               int err);
/* Free words; not part of the hash (they may hold a random uuid). */
void trace_say(struct trace *trace, const char *format, ...) PRINTF_LIKE(2, 3);
/* The last `count` events to stdout. */
void trace_print(const struct trace *trace, uint32_t count);
