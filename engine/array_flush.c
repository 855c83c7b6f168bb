/* THEORY OF OPERATION
 *
 * At most one round runs.  A flush that arrives while it does joins the next round, never the
 * running one: the members' flushes of the running round may have been submitted before the
 * writes it has to cover were done.  One round serves everything that waits.
 *
 *      START   flush every member with completed writes it has not flushed yet
 *      RECORD  a member that failed is recorded on the survivors before anyone is told (I11)
 *      FINISH  answer this round, begin the next when somebody waits
 *
 * P3.  When a flush fails, what the member had in its cache may be gone, and a second flush that
 * succeeds proves nothing about it.  So the member is failed, if the others have the data.  If they
 * have not, the array cannot keep its promise any more: `lost` stays set, and every flush says
 * -EIO, until the array is opened anew. */
#include "engine/array_flush.h"

#include <stdlib.h>

#include "engine/array_core.h"

enum flush_stage { FLUSH_START, FLUSH_MEMBERS, FLUSH_RECORD, FLUSH_FINISH };

static void flush_step(struct array_flush *flush);

static void
child_done(struct req *req)
{
    struct flush_child *child = CONTAINER_OF(req, struct flush_child, req);
    struct array_flush *flush = child->flush;
    child->member->in_flight--;
    child->member->flushes++;
    if (req->err == 0)
        child->member->writes_flushed = child->mark;
    else if (member_writable(child->member) &&
             !array_member_fail(flush->array, child->member,
                                req->err == -ENODEV ? FAULT_GONE : FAULT_FLUSH))
        flush->lost = true;
    if (--flush->pending == 0)
        flush_step(flush);
}

static bool
flush_members(struct array_flush *flush)
{
    struct array *array = flush->array;
    flush->pending = 1; /* ours: a child may complete at once (I3) */
    for (uint32_t i = 0; i < array->member_count; i++) {
        struct member *member = &array->members[i];
        if (!member_writable(member) || !member_needs_flush(member))
            continue;
        struct flush_child *child = &flush->children[i];
        child->flush = flush;
        child->member = member;
        child->mark = member->writes_done;
        child->req = (struct req){.op = REQ_FLUSH, .done = child_done};
        flush->pending++;
        member->in_flight++;
        dev_submit(member->dev, &child->req);
    }
    return --flush->pending == 0;
}

static void
recorded(struct meta_waiter *waiter, int err)
{
    struct array_flush *flush = CONTAINER_OF(waiter, struct array_flush, record);
    if (err != 0)
        flush->err = err;
    flush_step(flush);
}

static void
finish_round(struct array_flush *flush)
{
    struct list done;
    list_init(&done);
    list_splice_back(&done, &flush->current);
    int err = flush->lost ? -EIO : flush->err;
    struct list_node *node;
    while ((node = list_pop_front(&done)) != NULL) {
        struct flush_waiter *waiter = CONTAINER_OF(node, struct flush_waiter, node);
        waiter->done(waiter, err);
    }
}

static void
flush_step(struct array_flush *flush)
{
    for (;;) {
        switch ((enum flush_stage)flush->stage++) {
        case FLUSH_START:
            flush->running = true;
            flush->err = 0;
            list_splice_back(&flush->current, &flush->next);
            break;
        case FLUSH_MEMBERS:
            flush->array->stats.group_commit_flushes++;
            if (!flush_members(flush))
                return;
            break;
        case FLUSH_RECORD:
            if (!meta_io_record(&flush->array->meta, &flush->record, recorded))
                return;
            break;
        case FLUSH_FINISH:
            finish_round(flush);
            flush->stage = FLUSH_START;
            if (list_empty(&flush->next)) {
                flush->running = false;
                array_poke_stop(flush->array);
                return;
            }
            break;
        }
    }
}

void
array_flush_submit(struct array_flush *flush, struct flush_waiter *waiter)
{
    list_push_back(&flush->next, &waiter->node);
    if (!flush->running)
        flush_step(flush);
}

int
array_flush_init(struct array_flush *flush, struct array *array)
{
    *flush = (struct array_flush){.array = array};
    list_init(&flush->next);
    list_init(&flush->current);
    flush->children = calloc(array->member_count, sizeof(*flush->children));
    return flush->children != NULL ? 0 : -ENOMEM;
}

void
array_flush_destroy(struct array_flush *flush)
{
    free(flush->children);
    flush->children = NULL;
}
