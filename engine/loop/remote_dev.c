/* THEORY OF OPERATION
 *
 * Each request on its way is a `crossing`: a copy of the request for the target's loop, and the
 * mail that carries it there and back.
 *
 *   here                                      there
 *   submit ─▶ going ═══ request_arrives ═══▶ dev_submit(target)
 *   parent's done ◀═══ answer_arrives ═══ returning ◀─ child's done
 *
 * `going` belongs to the thread here, `returning` to the one there.  Each gathers what one turn
 * brings and is posted as one batch by a deferred step.  A crossing belongs to the side that it is
 * on, and is not touched by the other after it was posted; once the last answer has been posted
 * the thread there does not touch the device at all, so that it may be closed. */
#include "engine/loop/remote_dev.h"

#include "engine/base/pool.h"

struct remote_dev {
    struct dev dev;
    struct dev *target;
    struct dev_info info;
    struct mailbox *there_box, *here_box;
    struct pool crossings;
    struct list waiting; /* requests without a crossing, by dev_node */
    struct mail_batch going, returning;
    struct loop_step post_going, post_returning;
};

struct crossing {
    struct mail mail;
    struct remote_dev *remote;
    struct req *parent;
    struct req child;
};

static struct remote_dev *
remote_of(struct dev *dev)
{
    return CONTAINER_OF(dev, struct remote_dev, dev);
}

static void answer_arrives(struct mail *mail);

/* ---- there: the target's thread -------------------------------------------------------- */

static void
child_done(struct req *child)
{
    struct crossing *crossing = CONTAINER_OF(child, struct crossing, child);
    struct remote_dev *remote = crossing->remote;
    crossing->mail.deliver = answer_arrives;
    mail_batch_add(&remote->returning, &crossing->mail);
    loop_defer(mailbox_loop(remote->there_box), &remote->post_returning);
}

static void
post_returning(struct loop_step *step)
{
    struct remote_dev *remote = CONTAINER_OF(step, struct remote_dev, post_returning);
    mailbox_post_batch(remote->here_box, &remote->returning);
}

static void
request_arrives(struct mail *mail)
{
    struct crossing *crossing = CONTAINER_OF(mail, struct crossing, mail);
    dev_submit(crossing->remote->target, &crossing->child);
}

/* ---- here: the submitter's thread ------------------------------------------------------ */

static void
cross(struct remote_dev *remote, struct req *req)
{
    struct crossing *crossing = pool_get(&remote->crossings);
    *crossing = (struct crossing){
        .mail.deliver = request_arrives,
        .remote = remote,
        .parent = req,
        .child =
            {
                .op = req->op,
                .flags = req->flags,
                .off_bytes = req->off_bytes,
                .len_bytes = req->len_bytes,
                .iov = req->iov,
                .iov_count = req->iov_count,
                .done = child_done,
            },
    };
    mail_batch_add(&remote->going, &crossing->mail);
    loop_defer(mailbox_loop(remote->here_box), &remote->post_going);
}

static bool
may_cross(const struct remote_dev *remote)
{
    return remote->crossings.in_use < remote->crossings.count;
}

static void
post_going(struct loop_step *step)
{
    struct remote_dev *remote = CONTAINER_OF(step, struct remote_dev, post_going);
    mailbox_post_batch(remote->there_box, &remote->going);
}

static void
answer_arrives(struct mail *mail)
{
    struct crossing *crossing = CONTAINER_OF(mail, struct crossing, mail);
    struct remote_dev *remote = crossing->remote;
    struct req *parent = crossing->parent;
    int err = crossing->child.err;
    pool_put(&remote->crossings, crossing);
    struct list_node *next = list_pop_front(&remote->waiting); /* before what done() submits */
    if (next != NULL)
        cross(remote, CONTAINER_OF(next, struct req, dev_node));
    req_done(parent, err); /* may close the device */
}

static void
remote_submit(struct dev *dev, struct req *req)
{
    struct remote_dev *remote = remote_of(dev);
    loop_assert_thread(mailbox_loop(remote->here_box));
    if (may_cross(remote)) {
        cross(remote, req);
        return;
    }
    req->dev_node = (struct list_node){0};
    list_push_back(&remote->waiting, &req->dev_node);
}

static void
remote_info(const struct dev *dev, struct dev_info *info)
{
    *info = CONTAINER_OF(dev, const struct remote_dev, dev)->info;
}

static void
remote_close(struct dev *dev)
{
    struct remote_dev *remote = remote_of(dev);
    loop_assert_thread(mailbox_loop(remote->here_box));
    check(list_empty(&remote->waiting));
    pool_destroy(&remote->crossings); /* checks that nothing is on the way */
    free(remote);
}

static const struct dev_ops remote_ops = {
    .submit = remote_submit,
    .info = remote_info,
    .close = remote_close,
};

int
remote_dev_create(struct dev **out, struct dev *target, struct mailbox *there, struct mailbox *here,
                  uint32_t request_max)
{
    check_gt(request_max, 0);
    struct remote_dev *remote = calloc(1, sizeof(*remote));
    if (remote == NULL)
        return -ENOMEM;
    remote->dev.ops = &remote_ops;
    remote->target = target;
    remote->info = dev_info(target);
    remote->there_box = there;
    remote->here_box = here;
    remote->post_going.run = post_going;
    remote->post_returning.run = post_returning;
    list_init(&remote->waiting);
    int err = pool_init(&remote->crossings, sizeof(struct crossing), request_max);
    if (err != 0) {
        free(remote);
        return err;
    }
    *out = &remote->dev;
    return 0;
}
