/* THEORY OF OPERATION
 *
 * Loop 0 is the main thread's: signals, control socket, arrays, members, and the NBD server.  With
 * --threads N there are N-1 loops more, each on its own thread, for nothing but connections.
 *
 * It is built in the order of `struct daemon` and taken down in the reverse order; the end is
 *
 *     signal --> control socket closed --> NBD server stopped (what is in flight is answered,
 *     clients may come again) --> arrays drained and marked clean --> loops left --> exit
 *
 * A second signal changes nothing: dirty state is never dropped for haste.  Only when no member has
 * answered anything for HUNG_NS is the end not waited for: what was acknowledged as durable is so,
 * the rest is with a device that does not give it back, and the members stay marked active. */
#include "cli/daemon.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include "engine/base/msg.h"

#include "cli/arrays.h"
#include "cli/ctl_server.h"
#include "cli/ctl_verbs.h"
#include "cli/process.h"
#include "layouts/parity.h"

#define IO_DEPTH        1024 /* member requests in flight */
#define STOP_TIMEOUT_MS 5000 /* for clients that do not read their replies */
#define LOOPS_MAX       64
#define HUNG_NS         (20 * SECOND_NS) /* a disk recovers from an error in less, or it is no use */

struct daemon {
    const struct config *config;
    struct loop *loops[LOOPS_MAX];
    pthread_t threads[LOOPS_MAX]; /* of loops 1.. */
    uint32_t loop_count, thread_count;
    struct loop_fd signals;
    struct mailbox *mailbox;
    struct io_context *io;
    struct nbd_server *nbd;
    struct ctl_server *ctl;
    struct arrays arrays;
    struct loop_timer settle; /* --stdio: until the arrays have settled */
    struct loop_timer hung;   /* while the arrays are closed */
    uint64_t answers;         /* of members, when it was set */
    bool stopping, arrays_ready;
    int err;
};

/* ---- the end -----------------------------------------------------------------------------------
 */

static void
arrays_closed(void *ctx, int err)
{
    struct daemon *daemon = ctx;
    daemon->err = err;
    loop_timer_cancel(&daemon->hung);
    for (uint32_t i = 0; i < daemon->loop_count; i++)
        loop_stop(daemon->loops[i]);
}

static void
watch_hung(struct daemon *daemon)
{
    daemon->answers = arrays_answers(&daemon->arrays);
    loop_timer_set(daemon->loops[0], &daemon->hung, loop_now_ns(daemon->loops[0]) + HUNG_NS);
}

static void
hung_fired(struct loop_timer *timer)
{
    struct daemon *daemon = CONTAINER_OF(timer, struct daemon, hung);
    if (arrays_answers(&daemon->arrays) != daemon->answers) {
        watch_hung(daemon);
        return;
    }
    struct diag diag;
    diag_set(&diag, DIAG_FAILED, "E_HUNG", -ETIMEDOUT,
             "no member has answered for %llu s; ending without marking arrays clean",
             (unsigned long long)(HUNG_NS / SECOND_NS));
    msg(MSG_ERROR, "%s: %s", diag.code, diag.message);
    _exit((int)diag.class); /* nothing can be freed that a device still holds */
}

static void
nbd_stopped(void *ctx)
{
    struct daemon *daemon = ctx;
    daemon->nbd = NULL;
    watch_hung(daemon);
    arrays_close(&daemon->arrays, arrays_closed, daemon);
}

static void
stop(struct daemon *daemon)
{
    if (daemon->stopping)
        return;
    daemon->stopping = true;
    (void)sd_notify(0, "STOPPING=1");
    loop_timer_cancel(&daemon->settle);
    ctl_server_destroy(daemon->ctl);
    daemon->ctl = NULL;
    nbd_server_stop(daemon->nbd, NBD_STOP_RESTART, STOP_TIMEOUT_MS, nbd_stopped, daemon);
}

static void
signal_ready(struct loop_fd *watch, uint32_t events)
{
    struct daemon *daemon = CONTAINER_OF(watch, struct daemon, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(watch->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    msg(MSG_NOTICE,
        daemon->stopping ? "%s: already stopping; what is dirty is being written" : "%s: stopping",
        strsignal((int)info.ssi_signo));
    stop(daemon);
}

/* ---- the pieces --------------------------------------------------------------------------------
 */

static int
open_signals(struct daemon *daemon)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* threads made later inherit it */
    daemon->signals = (struct loop_fd){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                                       .events = EPOLLIN,
                                       .ready = signal_ready};
    return daemon->signals.fd < 0 ? -errno : loop_watch(daemon->loops[0], &daemon->signals);
}

static int
open_loops(struct daemon *daemon, struct diag *diag)
{
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < daemon->config->threads; i++) {
        err = loop_create(&daemon->loops[i], clock_real());
        daemon->loop_count += err == 0;
    }
    if (err == 0)
        err = open_signals(daemon);
    if (err == 0)
        err = mailbox_create(&daemon->mailbox, daemon->loops[0]);
    if (err < 0)
        return diag_set(diag, DIAG_FAILED, "E_START", err, "the event loop cannot be made: %s",
                        strerror(-err));
    return 0;
}

static int
open_listeners(struct daemon *daemon, struct diag *diag)
{
    const struct config *config = daemon->config;
    const char *address;
    bool control_asked = options_have(&config->options, "control");
    if (config->own_runtime_dir && !(config->stdio && control_asked)) {
        int err = config->stdio ? 0 : runtime_dir_make(diag);
        if (err < 0)
            return err;
    }
    const struct ctl_handler handler = {.handle = ctl_verbs_handle, .ctx = &daemon->arrays};
    int err = 0;
    if (!config->stdio || control_asked)
        err = ctl_server_create(&daemon->ctl, daemon->loops[0], config->control, &handler, diag);
    if (err == 0 && (!config->stdio || options_have(&config->options, "socket")))
        err = nbd_server_listen_unix(daemon->nbd, config->socket, diag);
    for (uint32_t i = 0; err == 0 && (address = options_nth(&config->options, "listen", i)) != NULL;
         i++)
        err = nbd_server_listen_tcp(daemon->nbd, address, diag);
    return err;
}

static void *
thread_main(void *loop)
{
    loop_run(loop);
    return NULL;
}

static int
open_threads(struct daemon *daemon, struct diag *diag)
{
    for (uint32_t i = 1; i < daemon->loop_count; i++) {
        int err = pthread_create(&daemon->threads[i], NULL, thread_main, daemon->loops[i]);
        if (err != 0)
            return diag_set(diag, DIAG_FAILED, "E_START", -err, "a thread cannot be made: %s",
                            strerror(err));
        daemon->thread_count = i;
    }
    return 0;
}

/* ---- --stdio -----------------------------------------------------------------------------------
 */

static void
stdio_closed(void *ctx)
{
    stop(ctx);
}

/* The one client is let in when every array is open or known to wait for good. */
static void
stdio_settle(struct loop_timer *timer)
{
    struct daemon *daemon = CONTAINER_OF(timer, struct daemon, settle);
    if (arrays_unsettled(&daemon->arrays)) {
        loop_timer_set(daemon->loops[0], timer, loop_now_ns(daemon->loops[0]) + SECOND_NS / 10);
        return;
    }
    if (nbd_server_serve_fd(daemon->nbd, STDIN_FILENO, STDOUT_FILENO, stdio_closed, daemon) < 0) {
        msg(MSG_ERROR, "stdin and stdout cannot be served");
        stop(daemon);
    }
}

/* ---- the whole
 * ----------------------------------------------------------------------------------- */

static int
open_daemon(struct daemon *daemon, struct diag *diag)
{
    const struct config *config = daemon->config;
    if (parity_selftest() < 0)
        return diag_set(diag, DIAG_FAILED, "E_PARITY", -EIO,
                        "parity computed two ways differs on this processor");
    int err = open_loops(daemon, diag);
    if (err == 0)
        err = io_context_create(&daemon->io, daemon->loops[0], config->io, IO_DEPTH, diag);
    if (err < 0)
        return err;
    const struct nbd_server_config server = {.loops = daemon->loops,
                                             .loop_count = daemon->loop_count};
    err = nbd_server_create(&daemon->nbd, &server, diag);
    if (err < 0)
        return err;
    arrays_init(&daemon->arrays, daemon->loops[0], daemon->mailbox, daemon->io, daemon->nbd,
                config);
    daemon->arrays_ready = true;
    err = open_listeners(daemon, diag);
    return err != 0 ? err : open_threads(daemon, diag);
}

static void
close_daemon(struct daemon *daemon)
{
    for (uint32_t i = 1; i <= daemon->thread_count; i++)
        pthread_join(daemon->threads[i], NULL);
    if (daemon->io != NULL)
        io_context_destroy(daemon->io);
    if (daemon->mailbox != NULL)
        mailbox_destroy(daemon->mailbox);
    if (daemon->signals.watched)
        loop_unwatch(&daemon->signals);
    if (daemon->signals.fd > 0)
        close(daemon->signals.fd);
    for (uint32_t i = 0; i < daemon->loop_count; i++)
        loop_destroy(daemon->loops[i]);
}

int
daemon_run(const struct config *config, struct diag *diag)
{
    struct daemon daemon = {
        .config = config, .settle.fired = stdio_settle, .hung.fired = hung_fired};
    process_harden();
    int err = open_daemon(&daemon, diag);
    if (err == 0) {
        arrays_scan(&daemon.arrays);
        if (config->stdio)
            stdio_settle(&daemon.settle);
        (void)sd_notify(0, "READY=1");
    } else if (daemon.arrays_ready) {
        stop(&daemon); /* nothing is open yet: only what was made is taken down */
    }
    if (daemon.arrays_ready)
        loop_run(daemon.loops[0]);
    close_daemon(&daemon);
    if (err == 0 && daemon.err < 0)
        err = diag_set(diag, DIAG_FAILED, "E_NOT_CLEAN", daemon.err,
                       "an array could not be marked clean on every member");
    return err;
}
