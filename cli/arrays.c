#include "cli/arrays.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/msg.h"

#define RESCAN_SOON_NS (1 * SECOND_NS)
#define RESCAN_SLOW_NS (5 * SECOND_NS)

static void rescan_fired(struct loop_timer *timer);

void
arrays_init(struct arrays *arrays, struct loop *loop, struct mailbox *mailbox,
            struct io_context *io, struct nbd_server *nbd, const struct config *config)
{
    *arrays = (struct arrays){.loop = loop,
                              .mailbox = mailbox,
                              .io = io,
                              .nbd = nbd,
                              .config = config,
                              .rescan.fired = rescan_fired};
    list_init(&arrays->entries);
}

static struct entry *
entry_of(struct list_node *node)
{
    return CONTAINER_OF(node, struct entry, node);
}

static uint64_t
wall_s(const struct arrays *arrays)
{
    return clock_wall_ns(loop_clock(arrays->loop)) / SECOND_NS;
}

static struct entry *
find_uuid(struct arrays *arrays, const uint8_t uuid[16])
{
    list_for_each (node, &arrays->entries) {
        if (memcmp(entry_of(node)->uuid, uuid, 16) == 0)
            return entry_of(node);
    }
    return NULL;
}

int
arrays_find(struct arrays *arrays, const char *text, struct entry **entry, struct diag *diag)
{
    *entry = NULL;
    list_for_each (node, &arrays->entries) {
        struct entry *candidate = entry_of(node);
        if (!entry_named(candidate->name, candidate->uuid, text))
            continue;
        if (*entry != NULL) {
            (void)diag_set(diag, DIAG_USAGE, "E_AMBIGUOUS", -EINVAL,
                           "\"%s\" names more than one array", text);
            diag_fix(diag, "name it by uuid: sr5 list");
            return -EINVAL;
        }
        *entry = candidate;
    }
    if (*entry != NULL)
        return 0;
    (void)diag_set(diag, DIAG_FAILED, "E_NO_SUCH_ARRAY", -ENOENT,
                   "the daemon knows no array \"%s\"", text);
    diag_fix(diag, "sr5 list; sr5 scan PATH; sr5 start PATH...");
    return -ENOENT;
}

int
arrays_find_open(struct arrays *arrays, const char *text, struct entry **entry, struct diag *diag)
{
    int err = arrays_find(arrays, text, entry, diag);
    if (err < 0 || entry_is_open(*entry))
        return err;
    (void)diag_set(diag, DIAG_OFFLINE, "E_NOT_SERVED", -ENOTCONN, "%s is %s: it is not open",
                   (*entry)->name, entry_state(*entry));
    diag_fix(diag, "sr5 status %s", (*entry)->name);
    return -ENOTCONN;
}

/* ---- the end ------------------------------------------------------------------------------------
 */

/* The last array has stopped and the daemon ends. */
static void
check_closed(struct arrays *arrays)
{
    list_for_each (node, &arrays->entries) {
        if (entry_is_open(entry_of(node)))
            return;
    }
    if (!arrays->closing || arrays->closed == NULL)
        return;
    void (*closed)(void *, int) = arrays->closed;
    arrays->closed = NULL;
    list_for_each_safe (node, &arrays->entries) {
        list_remove(node);
        entry_destroy(entry_of(node));
    }
    closed(arrays->closed_ctx, arrays->close_err);
}

uint64_t
arrays_answers(struct arrays *arrays)
{
    uint64_t answers = 0;
    list_for_each (node, &arrays->entries) {
        if (entry_is_open(entry_of(node)))
            answers += entry_answers(entry_of(node));
    }
    return answers;
}

struct entry *
arrays_entry(struct arrays *arrays, const struct found_array *found)
{
    struct entry *entry = find_uuid(arrays, found->uuid);
    if (entry != NULL)
        return entry;
    entry = calloc(1, sizeof(*entry));
    check(entry != NULL);
    entry->owner = arrays;
    entry->phase = ENTRY_WAITING;
    memcpy(entry->uuid, found->uuid, sizeof(entry->uuid));
    memcpy(entry->name, found->name, sizeof(entry->name));
    entry->since_s = wall_s(arrays);
    entry->degraded = arrays->config->degraded;
    entry->read_only = arrays->config->read_only;
    entry->wait_until_ns = loop_now_ns(arrays->loop) + arrays->config->degraded_wait_s * SECOND_NS;
    list_push_back(&arrays->entries, &entry->node);
    return entry;
}

/* ---- looking around ----------------------------------------------------------------------------
 */

/* Everywhere a member may be, but for those of arrays that are open. */
void
arrays_gather(struct arrays *arrays, struct specs *specs)
{
    struct specs all = {0};
    for (uint32_t i = 0; i < arrays->config->members.count; i++)
        specs_expand(&all, arrays->config->members.list[i]);
    list_for_each (node, &arrays->entries) {
        for (uint32_t i = 0; i < entry_of(node)->specs.count; i++)
            specs_add(&all, entry_of(node)->specs.list[i]);
    }
    for (uint32_t i = 0; i < all.count; i++) {
        bool taken = false;
        list_for_each (node, &arrays->entries) {
            taken = taken || (entry_is_open(entry_of(node)) &&
                              specs_have(&entry_of(node)->specs, all.list[i]));
        }
        if (!taken)
            specs_add(specs, all.list[i]);
    }
    specs_destroy(&all);
}

bool
arrays_unsettled(const struct arrays *arrays)
{
    for (const struct list_node *node = arrays->entries.head.next; node != &arrays->entries.head;
         node = node->next)
        if (entry_unsettled(CONTAINER_OF(node, const struct entry, node)))
            return true;
    return false;
}

void
arrays_changed(struct arrays *arrays)
{
    bool waiting = list_empty(&arrays->entries) && arrays->config->members.count != 0;
    list_for_each (node, &arrays->entries) {
        waiting = waiting || entry_of(node)->phase == ENTRY_WAITING;
    }
    loop_timer_cancel(&arrays->rescan);
    check_closed(arrays);
    if (waiting && !arrays->closing)
        loop_timer_set(arrays->loop, &arrays->rescan,
                       loop_now_ns(arrays->loop) +
                           (arrays_unsettled(arrays) ? RESCAN_SOON_NS : RESCAN_SLOW_NS));
}

void
arrays_scan(struct arrays *arrays)
{
    struct specs specs = {0};
    struct scan scan = {0};
    struct diag diag;
    arrays_gather(arrays, &specs);
    if (scan_specs(&scan, (const char *const *)specs.list, specs.count, NULL) < 0)
        msg(MSG_ERROR, "not enough memory to look for members");
    for (uint32_t i = 0; i < scan.array_count; i++) {
        struct entry *entry = arrays_entry(arrays, &scan.arrays[i]);
        if (entry->phase == ENTRY_WAITING && /* A2 */
            entry_try(entry, &scan.arrays[i], &diag) < 0)
            continue; /* the entry says why, and so does the log */
    }
    scan_destroy(&scan);
    specs_destroy(&specs);
    arrays_changed(arrays);
}

static void
rescan_fired(struct loop_timer *timer)
{
    arrays_scan(CONTAINER_OF(timer, struct arrays, rescan));
}

void
arrays_close(struct arrays *arrays, void (*closed)(void *ctx, int err), void *ctx)
{
    arrays->closing = true;
    list_for_each (node, &arrays->entries) {
        if (entry_of(node)->phase == ENTRY_SERVED)
            entry_close(entry_of(node));
    }
    arrays->closed = closed; /* from now on whoever stops last ends it */
    arrays->closed_ctx = ctx;
    arrays_changed(arrays);
}
