/* Messages of the daemon to its log: one line each, levels, rate limit for what clients cause. */
#pragma once

#include "engine/base/compiler.h"

enum msg_level { MSG_ERROR, MSG_WARNING, MSG_NOTICE, MSG_INFO, MSG_DEBUG };

/* Thread-safe.  Default sink is stderr with <N> priority prefixes when under systemd. */
void msg(enum msg_level level, const char *format, ...) PRINTF_LIKE(2, 3);
void msg_set_level(enum msg_level level_max);
/* Tests: take lines away from stderr.  NULL restores. */
void msg_set_sink(void (*sink)(enum msg_level level, const char *line, void *ctx), void *ctx);

/* At most `burst` messages per 10 s through one limiter; the rest are counted and reported. */
struct msg_limit {
    uint64_t window_start_ns;
    uint32_t sent, dropped;
};
bool msg_allowed(struct msg_limit *limit, uint64_t now_ns, uint32_t burst);
