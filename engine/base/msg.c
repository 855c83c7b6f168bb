#include "engine/base/msg.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"

#define LINE_BYTES_MAX 1024
#define WINDOW_NS      (10 * SECOND_NS)

static const struct {
    const char *name;
    char priority; /* syslog's, as systemd reads it from stderr */
} levels[] = {
    [MSG_ERROR] = {"error", '3'}, [MSG_WARNING] = {"warning", '4'}, [MSG_NOTICE] = {"notice", '5'},
    [MSG_INFO] = {"info", '6'},   [MSG_DEBUG] = {"debug", '7'},
};

static atomic_int level_max_now = MSG_INFO;

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below */
static void (*sink_now)(enum msg_level level, const char *line, void *ctx);
static void *sink_ctx;

/* One write, so that lines of several threads do not mix. */
static void
write_stderr(enum msg_level level, const char *line)
{
    char text[LINE_BYTES_MAX + 16];
    int bytes = getenv("JOURNAL_STREAM") != NULL
                    ? snprintf(text, sizeof(text), "<%c>%s\n", levels[level].priority, line)
                    : snprintf(text, sizeof(text), "%s: %s\n", levels[level].name, line);
    if (bytes > 0 && write(STDERR_FILENO, text, (size_t)bytes) < 0)
        return; /* there is nobody left to tell */
}

void
msg(enum msg_level level, const char *format, ...)
{
    if (level > (enum msg_level)atomic_load_explicit(&level_max_now, memory_order_relaxed))
        return;
    int saved_errno = errno;
    char line[LINE_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    for (char *c = line; *c != '\0'; c++) /* what a client named must not forge a line */
        if ((unsigned char)*c < ' ' || *c == '\x7f')
            *c = '?';
    pthread_mutex_lock(&sink_lock);
    if (sink_now != NULL)
        sink_now(level, line, sink_ctx);
    else
        write_stderr(level, line);
    pthread_mutex_unlock(&sink_lock);
    errno = saved_errno;
}

void
msg_set_level(enum msg_level level_max)
{
    atomic_store_explicit(&level_max_now, (int)level_max, memory_order_relaxed);
}

void
msg_set_sink(void (*sink)(enum msg_level level, const char *line, void *ctx), void *ctx)
{
    pthread_mutex_lock(&sink_lock);
    sink_now = sink;
    sink_ctx = ctx;
    pthread_mutex_unlock(&sink_lock);
}

bool
msg_allowed(struct msg_limit *limit, uint64_t now_ns, uint32_t burst)
{
    bool fresh = limit->sent == 0 && limit->dropped == 0;
    if (fresh || now_ns - limit->window_start_ns >= WINDOW_NS) {
        if (limit->dropped != 0)
            msg(MSG_NOTICE, "%" PRIu32 " messages like the next were dropped", limit->dropped);
        *limit = (struct msg_limit){.window_start_ns = now_ns};
    }
    if (limit->sent >= burst) {
        limit->dropped++;
        return false;
    }
    limit->sent++;
    return true;
}
