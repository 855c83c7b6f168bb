#include "engine/write_set.h"

#include <string.h>

void
write_set_init(struct write_set *set)
{
    memset(set, 0, sizeof(*set));
}

void
write_set_destroy(struct write_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->entries[i].bytes);
        free(set->entries[i].before);
    }
    free(set->entries);
    write_set_init(set);
}

static bool
make_room(struct write_set *set)
{
    if (set->count < set->room)
        return true;
    size_t room = set->room == 0 ? 64 : 2 * set->room;
    struct write_set_entry *entries = reallocarray(set->entries, room, sizeof(*entries));
    if (entries == NULL)
        return false;
    set->entries = entries;
    set->room = room;
    return true;
}

int
write_set_add(struct write_set *set, unsigned phase, struct blob *blob, uint64_t off_bytes,
              const void *bytes, size_t len)
{
    uint8_t *copy = calloc(1, len);
    if (copy == NULL || !make_room(set)) {
        free(copy);
        return -ENOMEM;
    }
    if (bytes != NULL)
        memcpy(copy, bytes, len);
    set->entries[set->count++] = (struct write_set_entry){
        .blob = blob, .off_bytes = off_bytes, .len = len, .bytes = copy, .phase = phase};
    return 0;
}

int
write_set_load(struct write_set *set, struct diag *diag)
{
    for (size_t i = 0; i < set->count; i++) {
        struct write_set_entry *entry = &set->entries[i];
        entry->before = malloc(entry->len);
        int err = entry->before == NULL
                      ? -ENOMEM
                      : blob_read(entry->blob, entry->before, entry->len, entry->off_bytes);
        if (err < 0)
            return diag_set(diag, DIAG_FAILED, "E_READ", err, "%s: cannot be read: %s",
                            entry->blob->path, strerror(-err));
    }
    return 0;
}

/* Flush each blob of the phase, once. */
static int
flush_phase(const struct write_set *set, unsigned phase, struct blob **failed)
{
    struct blob *last = NULL;
    int first_err = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct write_set_entry *entry = &set->entries[i];
        if (entry->phase != phase || entry->blob == last)
            continue;
        last = entry->blob;
        int err = blob_flush(entry->blob);
        if (err < 0 && first_err == 0) {
            first_err = err;
            *failed = entry->blob;
        }
    }
    return first_err;
}

static int
write_phase(struct write_set *set, unsigned phase, struct blob **failed)
{
    for (size_t i = 0; i < set->count; i++) {
        struct write_set_entry *entry = &set->entries[i];
        if (entry->phase != phase)
            continue;
        check(entry->before != NULL);
        entry->touched = true;
        int err = blob_write(entry->blob, entry->bytes, entry->len, entry->off_bytes);
        if (err < 0) {
            *failed = entry->blob;
            return err;
        }
    }
    return flush_phase(set, phase, failed);
}

int
write_set_apply(struct write_set *set, unsigned phase, struct diag *diag)
{
    struct blob *failed = NULL;
    int err = write_phase(set, phase, &failed);
    if (err == 0)
        return 0;
    int undo_err = write_set_undo(set);
    const char *outcome = "and putting back what was there failed, too";
    if (undo_err == 0)
        outcome = set->undo_wipes ? "there is no array, and what the members held is lost"
                                  : "everything was put back as it was";
    return diag_set(diag, DIAG_FAILED, "E_WRITE", err, "%s: writing failed: %s; %s", failed->path,
                    strerror(-err), outcome);
}

void
write_set_undo_wipes(struct write_set *set)
{
    set->undo_wipes = true;
    for (size_t i = 0; i < set->count; i++)
        memset(set->entries[i].before, 0, set->entries[i].len);
}

static int
undo_phase(struct write_set *set, unsigned phase)
{
    struct blob *failed = NULL;
    int first_err = 0;
    for (size_t i = set->count; i-- > 0;) {
        struct write_set_entry *entry = &set->entries[i];
        if (entry->phase != phase || !entry->touched)
            continue;
        int err = blob_write(entry->blob, entry->before, entry->len, entry->off_bytes);
        if (err == 0)
            entry->touched = false;
        else if (first_err == 0)
            first_err = err;
    }
    int err = flush_phase(set, phase, &failed);
    return first_err != 0 ? first_err : err;
}

int
write_set_undo(struct write_set *set)
{
    unsigned last = 0;
    int first_err = 0;
    for (size_t i = 0; i < set->count; i++)
        if (set->entries[i].touched)
            last = MAX(last, set->entries[i].phase);
    for (unsigned phase = last + 1; phase-- > 0;) {
        int err = undo_phase(set, phase);
        if (first_err == 0)
            first_err = err;
    }
    return first_err;
}
