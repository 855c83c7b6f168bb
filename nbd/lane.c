#include "nbd/lane.h"

#include "engine/loop/remote_dev.h"
#include "nbd/conn.h"

/* Of the payload budget: what small payloads have for themselves. */
#define SMALL_SHARE 4

/* ---- memory ------------------------------------------------------------------------------ */
static struct arena *
arena_for(struct nbd_lane *lane, uint32_t bytes)
{
    return bytes <= NBD_SMALL_PAYLOAD_BYTES ? &lane->small : &lane->large;
}

static struct list *
waiting_for(struct nbd_lane *lane, const struct arena *arena)
{
    return arena == &lane->small ? &lane->waiting_small : &lane->waiting_large;
}

uint64_t
nbd_lane_memory_bytes_max(const struct nbd_lane *lane)
{
    return lane->large.page_count * BLOCK_BYTES;
}

void *
nbd_lane_memory_get(struct nbd_lane *lane, struct nbd_conn *conn, uint32_t bytes)
{
    struct arena *arena = arena_for(lane, bytes);
    struct list *waiting = waiting_for(lane, arena);
    bool favoured = lane->favoured == conn;
    void *memory = NULL;
    if (favoured || list_empty(waiting))
        memory = arena_get(arena, bytes);
    lane->favoured = NULL; /* once; then it is somebody else's turn */
    if (memory != NULL)
        return memory;
    if (favoured)
        list_push_front(waiting, &conn->wait_node);
    else
        list_push_back(waiting, &conn->wait_node);
    return NULL;
}

void
nbd_lane_memory_put(struct nbd_lane *lane, void *memory, uint32_t bytes)
{
    arena_put(arena_for(lane, bytes), memory, bytes);
    if (!list_empty(&lane->waiting_small) || !list_empty(&lane->waiting_large))
        loop_defer(lane->loop, &lane->resume);
}

static void
serve_waiting(struct nbd_lane *lane, struct list *waiting)
{
    struct list_node *node;
    while ((node = list_pop_front(waiting)) != NULL) {
        struct nbd_conn *conn = CONTAINER_OF(node, struct nbd_conn, wait_node);
        lane->favoured = conn;
        nbd_transmission_run(conn);
        lane->favoured = NULL;
        nbd_conn_update(conn);
        if (list_first(waiting) == node)
            return; /* still not enough for the first: the others wait behind it */
    }
}

static void
lane_resume(struct loop_step *step)
{
    struct nbd_lane *lane = CONTAINER_OF(step, struct nbd_lane, resume);
    serve_waiting(lane, &lane->waiting_small);
    serve_waiting(lane, &lane->waiting_large);
}

/* ---- ports ------------------------------------------------------------------------------- */
struct nbd_port *
nbd_lane_port_get(struct nbd_lane *lane, struct nbd_export *export, uint32_t request_max)
{
    list_for_each (node, &lane->ports) {
        struct nbd_port *port = CONTAINER_OF(node, struct nbd_port, node);
        if (port->export == export) {
            port->refs++;
            return port;
        }
    }
    struct nbd_port *port = calloc(1, sizeof(*port));
    if (port == NULL)
        return NULL;
    *port = (struct nbd_port){.export = export, .dev = export->dev, .refs = 1};
    port->remote = export->owner_loop != NULL && export->owner_loop != lane->loop;
    if (port->remote &&
        remote_dev_create(&port->dev, export->dev, export->owner, lane->mailbox, request_max) < 0) {
        free(port);
        return NULL;
    }
    list_push_back(&lane->ports, &port->node);
    return port;
}

void
nbd_lane_port_put(struct nbd_lane *lane, struct nbd_port *port)
{
    loop_assert_thread(lane->loop);
    check_gt(port->refs, 0);
    if (--port->refs != 0)
        return;
    list_remove(&port->node);
    if (port->remote)
        dev_close(port->dev);
    free(port);
}

/* ---- the turn ---------------------------------------------------------------------------- */
void
nbd_lane_dirty(struct nbd_lane *lane, struct nbd_conn *conn)
{
    if (list_linked(&conn->dirty_node))
        return;
    if (list_empty(&lane->dirty)) /* perhaps our hook has run already: see that it does again */
        loop_defer(lane->loop, &lane->round);
    list_push_back(&lane->dirty, &conn->dirty_node);
}

static void
lane_round(struct loop_step *step)
{
    (void)step; /* being a step is all it does */
}

static void
lane_before_sleep(struct loop_hook *hook)
{
    struct nbd_lane *lane = CONTAINER_OF(hook, struct nbd_lane, hook);
    struct list_node *node;
    while ((node = list_pop_front(&lane->dirty)) != NULL) {
        struct nbd_conn *conn = CONTAINER_OF(node, struct nbd_conn, dirty_node);
        nbd_reply_flush(conn);
        nbd_conn_update(conn);
    }
    loop_undefer(lane->loop, &lane->round); /* its purpose is fulfilled */
}

static void
lane_kicked(struct mail *mail)
{
    struct nbd_lane *lane = CONTAINER_OF(mail, struct nbd_lane, kick);
    __atomic_store_n(&lane->kicked, false, __ATOMIC_SEQ_CST);
    list_for_each_safe (node, &lane->conns)
        nbd_conn_obey(CONTAINER_OF(node, struct nbd_conn, lane_node));
}

void
nbd_lane_kick(struct nbd_lane *lane)
{
    if (!__atomic_exchange_n(&lane->kicked, true, __ATOMIC_SEQ_CST))
        mailbox_post(lane->mailbox, &lane->kick);
}

/* ---- life -------------------------------------------------------------------------------- */
static void
lane_left(struct loop_step *step)
{
    struct nbd_lane *lane = CONTAINER_OF(step, struct nbd_lane, left);
    struct mailbox *mailbox = lane->mailbox;
    check(list_empty(&lane->conns));
    check(list_empty(&lane->ports));
    loop_hook_remove(lane->loop, &lane->hook);
    loop_undefer(lane->loop, &lane->round);
    loop_undefer(lane->loop, &lane->resume);
    lane->loop = NULL;
    if (mailbox != lane->home) { /* the way home goes last */
        lane->mailbox = NULL;
        mailbox_destroy(mailbox);
    }
    mailbox_post(lane->home, &lane->gone);
}

static void
lane_leave(struct mail *mail)
{
    struct nbd_lane *lane = CONTAINER_OF(mail, struct nbd_lane, leave);
    loop_defer(lane->loop, &lane->left); /* a mailbox cannot go while it delivers */
}

void
nbd_lane_leave(struct nbd_lane *lane, struct mailbox *home)
{
    lane->home = home;
    mailbox_post(lane->mailbox, &lane->leave);
}

int
nbd_lane_init(struct nbd_lane *lane, struct loop *loop, uint64_t payload_bytes)
{
    *lane = (struct nbd_lane){
        .hook = {.before_sleep = lane_before_sleep},
        .round = {.run = lane_round},
        .resume = {.run = lane_resume},
        .left = {.run = lane_left},
        .kick = {.deliver = lane_kicked},
        .leave = {.deliver = lane_leave},
    };
    list_init(&lane->conns);
    list_init(&lane->dirty);
    list_init(&lane->ports);
    list_init(&lane->waiting_small);
    list_init(&lane->waiting_large);
    uint64_t small = MAX(payload_bytes / SMALL_SHARE, (uint64_t)NBD_SMALL_PAYLOAD_BYTES);
    uint64_t large = payload_bytes > small ? payload_bytes - small : NBD_SMALL_PAYLOAD_BYTES;
    int err = arena_init(&lane->small, small);
    if (err == 0)
        err = arena_init(&lane->large, large);
    if (err == 0)
        err = mailbox_create(&lane->mailbox, loop);
    if (err == 0) {
        lane->loop = loop;
        loop_hook_add(loop, &lane->hook);
    }
    return err;
}

void
nbd_lane_destroy(struct nbd_lane *lane)
{
    if (lane->loop != NULL)
        loop_hook_remove(lane->loop, &lane->hook);
    if (lane->mailbox != NULL)
        mailbox_destroy(lane->mailbox);
    arena_destroy(&lane->small);
    arena_destroy(&lane->large);
    *lane = (struct nbd_lane){0};
}
