/* THEORY OF OPERATION
 *
 * A request of any range and size gets a context (struct array_req) that walks it and keeps a
 * bounded window of stripe operations in flight; so a 64 MiB write or a 4 GiB trim costs bounded
 * memory, and others get their turn between its operations.
 *
 *      off ── head block ──┬────────── aligned body ──────────┬── tail block ── end
 *      one ragged          │  bands of the layout (band_iter) │  one ragged
 *      one-block operation │  or, for zeroes, whole rows      │  operation
 *
 * Where contexts or operations run out, requests wait in the order they came (array_io_wake).
 * Nothing here can fail for memory.  Zeroes go to the members as REQ_ZERO for whole rows where all
 * members can do that, else as writes of zeroes; TRIM does the former or nothing. */
#include "engine/array_io.h"

#include "engine/base/iov.h"

#include "engine/array_core.h"

#define WINDOW         16      /* stripe operations of one request in flight */
#define ZERO_ROWS_SPAN MIB(64) /* of each member, per operation: bounds how long others wait */

static void pump(struct array_req *areq, bool my_turn);

/* ---- the end of a request -------------------------------------------------------------------- */

static void
count_request(struct array *array, const struct req *req)
{
    struct array_stats *stats = &array->stats;
    switch (req->op) {
    case REQ_READ:
        stats->reads++;
        stats->read_bytes += req->len_bytes;
        break;
    case REQ_WRITE:
        stats->writes++;
        stats->write_bytes += req->len_bytes;
        break;
    case REQ_FLUSH:
        stats->flushes++;
        break;
    case REQ_TRIM:
        stats->trims++;
        break;
    case REQ_ZERO:
        stats->zeroes++;
        break;
    case REQ_CACHE:
        break;
    }
    latency_add(&stats->latency[req->op],
                (loop_now_ns(array->loop) - req->dev_time_ns) / (SECOND_NS / 1000000));
}

static void
finish_request(struct array *array, struct req *req, int err)
{
    count_request(array, req);
    array->in_flight--;
    if (UNLIKELY(array->stopping))
        array_poke_stop(array);
    req_done(req, err);
}

static void
finish_areq(struct array_req *areq)
{
    struct array *array = areq->array;
    struct req *req = areq->req;
    int err = areq->err;
    pool_put(&array->reqs, areq);
    if (!list_empty(&array->req_waiters))
        array_wake(array);
    finish_request(array, req, err);
}

/* ---- stripe operations ----------------------------------------------------------------------- */

static void
op_done(struct stripe_op *op)
{
    struct array_req *areq = op->owner;
    struct array *array = areq->array;
    if (UNLIKELY(op->err == -EOPNOTSUPP && op->kind == STRIPE_ZERO_ROWS)) {
        array->can_zero = false; /* it was a promise the file system could not keep: write them */
        areq->no_rows = true;
        areq->walking = false;
        areq->at_bytes = op->rows.array_off_bytes;
    } else if (op->err != 0 && areq->err == 0) {
        areq->err = op->err;
    }
    pool_put(&array->ops, op);
    if (!list_empty(&array->op_waiters))
        array_wake(array);
    areq->in_flight--;
    pump(areq, false);
}

static void
start(struct array_req *areq, struct stripe_op *op, enum stripe_kind kind)
{
    const struct req *req = areq->req;
    op->array = areq->array;
    op->done = op_done;
    op->owner = areq;
    op->kind = kind;
    op->flags = req->flags & (REQ_FUA | REQ_NO_HOLE | REQ_BACKGROUND);
    op->iov = req->iov;
    op->iov_count = req->iov_count;
    op->memory_off_bytes = req->off_bytes;
    areq->in_flight++;
    stripe_op_start(op);
}

static void
start_data(struct array_req *areq, struct stripe_op *op)
{
    start(areq, op, areq->req->op == REQ_READ ? STRIPE_READ : STRIPE_WRITE);
}

/* A part of one block: the operation covers the block. */
static void
start_ragged(struct array_req *areq, struct stripe_op *op, uint64_t block_off, uint64_t end)
{
    struct array *array = areq->array;
    struct band_iter iter;
    band_iter_init(&iter, &array->geometry, block_off, array->block_bytes, array->block_bytes);
    check(band_next(&iter, &op->band));
    check_eq(op->band.len_bytes, array->block_bytes); /* a block never crosses a chunk */
    op->ragged = true;
    op->part_off_bytes = areq->at_bytes;
    op->part_len_bytes = end - areq->at_bytes;
    areq->at_bytes = end;
    start_data(areq, op);
}

/* Whole rows from here on, for a ZERO or TRIM?  Sets *stop to where other means must end. */
static bool
find_rows(const struct array_req *areq, struct row_range *rows, uint64_t *stop)
{
    const struct array *array = areq->array;
    *stop = areq->end_bytes;
    if (areq->no_rows || !array->can_zero || areq->req->op == REQ_WRITE ||
        areq->req->op == REQ_READ)
        return false;
    const struct geometry *geometry = &array->geometry;
    uint64_t row_span = MAX(ZERO_ROWS_SPAN / geometry->chunk_bytes, 1u) * geometry->stripe_bytes;
    uint64_t len = MIN(areq->end_bytes - areq->at_bytes, row_span + geometry->stripe_bytes);
    *stop = areq->at_bytes + len;
    if (!rows_inside(geometry, areq->at_bytes, len, rows))
        return false;
    *stop = rows->array_off_bytes;
    return rows->array_off_bytes == areq->at_bytes;
}

/* Issue one operation for what begins at at_bytes; there is something left. */
static void
issue(struct array_req *areq, struct stripe_op *op)
{
    struct array *array = areq->array;
    uint64_t block = array->block_bytes, at = areq->at_bytes, stop;
    op->ragged = false;
    if (!areq->walking) {
        if (find_rows(areq, &op->rows, &stop)) {
            areq->at_bytes += op->rows.array_len_bytes;
            start(areq, op, STRIPE_ZERO_ROWS);
            return;
        }
        if (areq->req->op == REQ_TRIM && !areq->no_rows) {
            areq->at_bytes = stop; /* what is no whole row may keep its contents */
            pool_put(&array->ops, op);
            return;
        }
        uint64_t block_off = at / block * block;
        if (block_off != at || stop - at < block) {
            start_ragged(areq, op, block_off, MIN(block_off + block, stop));
            return;
        }
        areq->at_bytes = stop / block * block;
        band_iter_init(&areq->iter, &array->geometry, at, areq->at_bytes - at,
                       array->piece_max_bytes);
        check(band_next(&areq->iter, &areq->band));
    }
    op->band = areq->band;
    areq->walking = band_next(&areq->iter, &areq->band);
    start_data(areq, op);
}

static bool
more(const struct array_req *areq)
{
    return areq->err == 0 && (areq->walking || areq->at_bytes < areq->end_bytes);
}

/* May the next operation go while others of the request are in flight?  Row operations go alone: if
 * the members refuse, that range is written instead. */
static bool
may_overlap(const struct array_req *areq)
{
    return areq->walking || areq->req->op == REQ_READ || areq->req->op == REQ_WRITE;
}

/* Issue operations as far as the window allows, but one only when it is this request's turn among
 * those that wait for operations; finish when all is done. */
static void
pump(struct array_req *areq, bool my_turn)
{
    struct array *array = areq->array;
    if (areq->pumping || list_linked(&areq->wait_node))
        return;
    areq->pumping = true;
    while (more(areq) && areq->in_flight < WINDOW && (areq->in_flight == 0 || may_overlap(areq))) {
        struct stripe_op *op = NULL;
        if (my_turn || list_empty(&array->op_waiters)) /* nobody overtakes */
            op = pool_get(&array->ops);
        my_turn = false;
        if (op == NULL) {
            list_push_back(&array->op_waiters, &areq->wait_node);
            break;
        }
        issue(areq, op);
    }
    areq->pumping = false;
    if (areq->in_flight == 0 && !more(areq))
        finish_areq(areq);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void
flush_recorded(struct flush_waiter *waiter, int err)
{
    struct array_req *areq = CONTAINER_OF(waiter, struct array_req, flush);
    areq->err = err;
    finish_areq(areq);
}

static void
begin(struct array_req *areq, struct array *array, struct req *req)
{
    areq->req = req;
    areq->array = array;
    areq->wait_node = (struct list_node){0};
    areq->at_bytes = req->off_bytes;
    areq->end_bytes = req->off_bytes + req->len_bytes;
    areq->walking = areq->pumping = areq->no_rows = false;
    areq->in_flight = 0;
    areq->err = 0;
    if (req->op != REQ_FLUSH) {
        pump(areq, false);
        return;
    }
    areq->flush.node = (struct list_node){0};
    areq->flush.done = flush_recorded;
    array_flush_submit(&array->flush, &areq->flush);
}

/* What can be answered without touching a member. */
static bool
answer_at_once(struct array *array, struct req *req, int *err)
{
    struct row_range rows;
    *err = 0;
    if (array->stopping) {
        *err = -ESHUTDOWN;
        return true;
    }
    if (array->read_only && req_is_write(req)) {
        *err = -EROFS;
        return true;
    }
    if (req->op == REQ_FLUSH)
        return false;
    if (req->op == REQ_ZERO && (req->flags & REQ_FAST_ZERO) &&
        (!array->can_zero || !rows_inside(&array->geometry, req->off_bytes, req->len_bytes, &rows)))
        *err = -EOPNOTSUPP;
    return *err != 0 || req->op == REQ_CACHE || req->len_bytes == 0 ||
           (req->op == REQ_TRIM && !array->can_zero);
}

void
array_io_submit(struct array *array, struct req *req)
{
    int err;
    array->in_flight++;
    req->dev_time_ns = loop_now_ns(array->loop);
    if (UNLIKELY(answer_at_once(array, req, &err))) {
        finish_request(array, req, err);
        return;
    }
    check_le(req->off_bytes, array->size_bytes);
    check_le(req->len_bytes, array->size_bytes - req->off_bytes);
    struct array_req *areq =
        list_empty(&array->req_waiters) ? pool_get(&array->reqs) : NULL; /* nobody overtakes */
    if (areq == NULL) {
        req->dev_node = (struct list_node){0};
        list_push_back(&array->req_waiters, &req->dev_node);
        return;
    }
    begin(areq, array, req);
}

void
array_io_wake(struct array *array)
{
    while (!list_empty(&array->op_waiters) && array->ops.in_use < array->ops.count) {
        struct list_node *node = list_pop_front(&array->op_waiters);
        pump(CONTAINER_OF(node, struct array_req, wait_node), true);
    }
    while (!list_empty(&array->req_waiters)) {
        struct array_req *areq = pool_get(&array->reqs);
        if (areq == NULL)
            return;
        struct list_node *node = list_pop_front(&array->req_waiters);
        begin(areq, array, CONTAINER_OF(node, struct req, dev_node));
    }
}
