#include "engine/carried.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define UUID8 8

struct carried {
    const struct create_options *options;
    struct diag *diag;
};

/* Is `word` (of `length` bytes) one of the comma-separated words of `list`? */
static bool
listed(const char *list, const char *word, size_t length)
{
    while (list != NULL && *list != '\0') {
        size_t this = strcspn(list, ",");
        if (this == length && strncasecmp(list, word, length) == 0)
            return true;
        list += this + (list[this] == ',');
    }
    return false;
}

static bool
trusted_super(const struct probe *probe, unsigned minor)
{
    enum super_verdict verdict = probe->supers[minor].verdict;
    return verdict == SUPER_OK || verdict == SUPER_UNSUPPORTED || verdict == SUPER_INSANE;
}

static int
refuse_member_of_array(const struct carried *c, const struct probe *probe, const uint8_t uuid[16],
                       const char *name)
{
    char text[36], last[64] = "";
    super_uuid_text(uuid, text);
    const struct super *s = &probe->candidate.super;
    if (probe->candidate.has_super && memcmp(s->array_uuid, uuid, 16) == 0) {
        time_t updated_s = (time_t)s->updated_s;
        struct tm utc;
        char day[32] = "";
        if (gmtime_r(&updated_s, &utc) != NULL)
            strftime(day, sizeof(day), "%Y-%m-%d %H:%M", &utc);
        snprintf(last, sizeof(last), ", role %d, last used %s UTC",
                 super_role(s) < SUPER_ROLE_JOURNAL ? (int)super_role(s) : -1, day);
    }
    diag_set(c->diag, DIAG_REFUSED, "E_MEMBER_OF_ARRAY", -EEXIST,
             "%s already belongs to array \"%s\" (uuid %s%s)", probe->path, name, text, last);
    diag_fix(c->diag, "sr5 inspect %s", probe->path);
    diag_fix(c->diag, "if that array is really to go: --overwrite-array=%.*s", UUID8, text);
    return -EEXIST;
}

static bool
may_overwrite_array(const struct carried *c, const uint8_t uuid[16])
{
    char text[36];
    super_uuid_text(uuid, text);
    return listed(c->options->overwrite_array, text, UUID8);
}

static int
check_arrays(const struct carried *c, const struct probe *probe)
{
    for (unsigned minor = 0; minor < 3; minor++) {
        if (!trusted_super(probe, minor) || probe->supers[minor].diag.err == -EIO)
            continue;
        const uint8_t *uuid = probe->supers[minor].array_uuid;
        if (!may_overwrite_array(c, uuid))
            return refuse_member_of_array(c, probe, uuid, probe->supers[minor].name);
    }
    const struct candidate *candidate = &probe->candidate;
    if (candidate->has_super && !may_overwrite_array(c, candidate->super.array_uuid))
        return refuse_member_of_array(c, probe, candidate->super.array_uuid, candidate->super.name);
    return 0;
}

/* md's of a trusted superblock and ours have been dealt with by check_arrays(). */
static bool
named_by_array(const struct probe *probe, const char *kind)
{
    if (strcmp(kind, "sr5") == 0)
        return probe->candidate.has_super;
    for (unsigned minor = 0; minor < 3; minor++) {
        char md[16];
        snprintf(md, sizeof(md), "md1.%u", minor);
        if (strcmp(kind, md) == 0)
            return trusted_super(probe, minor);
    }
    return false;
}

static int
check_signatures(const struct carried *c, const struct probe *probe)
{
    const struct probe_signature *first = NULL;
    char kinds[224] = "";
    for (uint32_t i = 0; i < probe->signature_count; i++) {
        const struct probe_signature *s = &probe->signatures[i];
        if (named_by_array(probe, s->kind) ||
            listed(c->options->overwrite_signature, s->kind, strlen(s->kind)))
            continue;
        if (first == NULL)
            first = s;
        size_t end = strlen(kinds);
        if (!listed(kinds, s->kind, strlen(s->kind)))
            snprintf(kinds + end, sizeof(kinds) - end, "%s%s", end ? "," : "", s->kind);
    }
    if (first == NULL)
        return 0;
    diag_set(c->diag, DIAG_REFUSED, "E_SIGNATURE", -EEXIST,
             "%s carries something: kind=%s at=%" PRIu64, probe->path, first->kind,
             first->off_bytes);
    diag_fix(c->diag, "if it is really to go: --overwrite-signature=%s", kinds);
    return -EEXIST;
}

int
carried_check(const struct create_options *options, struct blob *const *blobs, uint32_t count,
              struct probe *probes, struct diag *diag)
{
    const struct carried c = {options, diag};
    for (uint32_t i = 0; i < count; i++) {
        struct probe *probe = &probes[i];
        int err = probe_blob(blobs[i], blobs[i]->path, probe, diag);
        if (err < 0)
            return err;
        if (probe->read_err < 0)
            return diag_set(diag, DIAG_FAILED, "E_READ", probe->read_err,
                            "%s: places where metadata goes cannot be read", probe->path);
        if (candidate_unfinished(&probe->candidate))
            continue; /* remains of a creation that was cut off */
        if (probe->area_found && probe->candidate.area.generation == 0 &&
            !probe->candidate.has_super)
            continue;
        err = check_arrays(&c, probe);
        if (err == 0)
            err = check_signatures(&c, probe);
        if (err < 0)
            return err;
    }
    return 0;
}
