/* Member states, the array's state as a function of them, and what status and stats report. */
#pragma once

#include "engine/base/req.h"

#include "layouts/layout.h"

enum member_state {
    MS_MISSING,
    MS_SPARE,
    MS_REBUILDING, /* in sync below its frontier only */
    MS_ONLINE,
    MS_SUSPECT, /* in use, but errors were seen */
    MS_FAULTY,
};
enum array_state {
    AS_ONLINE,
    AS_DEGRADED,
    AS_REBUILDING,
    AS_WAITING, /* not enough members yet; nothing exported (the daemon's, not an open array's) */
    AS_READ_ONLY,
    AS_FAILED,
    AS_STOPPED,
};

const char *member_state_name(enum member_state state);
const char *array_state_name(enum array_state state);
/* The legal arrows; an illegal one is a bug of ours. */
bool member_state_arrow(enum member_state from, enum member_state to);

#define PROBLEMS_MAX       32
#define STATUS_MEMBERS_MAX (2 * MEMBERS_MAX)

struct problem {
    const char *code;     /* codes.def: "MEMBER_FAULTY", "WRITE_HOLE_OPEN"... */
    const char *severity; /* "info", "warning", "critical" */
    char member[256];     /* path or "" */
    char text[256];
    uint64_t since_wall_ns;
    char fix[2][256];
};

struct member_status {
    int32_t role; /* -1: none */
    char id[37];  /* device uuid */
    char path[256];
    enum member_state state;
    uint64_t read_errors, write_errors, repaired;
    uint64_t reads, writes, flushes, read_bytes, write_bytes;
};

struct job_status { /* the resync job, for now */
    bool active;
    uint32_t id;
    const char *kind;
    uint64_t position_bytes, total_bytes, rate_bytes_s, eta_s;
};

struct array_status {
    char name[33];
    uint8_t uuid[16];
    struct geometry geometry;
    enum array_state state;
    bool dirty;
    uint64_t events;
    uint32_t members_total, members_online;
    uint32_t failures_survivable;
    uint32_t member_count; /* entries below */
    struct member_status members[STATUS_MEMBERS_MAX];
    uint32_t problem_count;
    struct problem problems[PROBLEMS_MAX];
    struct job_status job;
    uint64_t log_bytes; /* reserved */
    char policy[16], consistency[16];
    uint64_t in_flight;
};

#define LATENCY_BUCKETS 64
struct latency { /* power-of-two-and-a-half histogram of microseconds; see stats.h */
    uint64_t count, buckets[LATENCY_BUCKETS];
};

struct array_stats {
    uint64_t reads, writes, flushes, trims, zeroes, read_bytes, write_bytes;
    uint64_t full_stripe_writes, rmw_writes, rcw_writes, degraded_reads;
    uint64_t group_commit_flushes, log_appends, log_bytes;
    uint64_t super_writes, bitmap_writes;
    struct latency latency[REQ_OP_COUNT];
};
/* Microseconds below which `permille` of the samples lie. */
uint64_t latency_percentile_us(const struct latency *latency, uint32_t permille);
void latency_add(struct latency *latency, uint64_t us);
