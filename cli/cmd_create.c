/* sr5 create: from the command line to create_array() and back.
 *
 * Everything typed is checked first; member files (--size-each) are made next, never over an
 * existing file, and removed again whatever fails (P4); create_array() then reads and checks all
 * members before its first write. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "engine/base/units.h"

#include "cli/cmd.h"
#include "cli/format.h"
#include "engine/create.h"
#include "engine/io/member_dev.h"

#define CHUNK_DEFAULT_BYTES KIB(64)
#define SIZE_EACH_MIN_BYTES MIB(16)
#define COUNT_MAX           (2 * MEMBERS_MAX)

const struct option_spec cmd_create_options[] = {
    {"level", "L", "0, 1, 4, 5, 6 or 10", 0},
    {"chunk", "SIZE", "bytes of one member before the next follows (64K)", 0},
    {"layout", "NAME", "rotation or copies: left-symmetric, near=2... (the level's usual one)", 0},
    {"spare", "MEMBER", "a spare; may be repeated", OPTION_REPEAT},
    {"size-each", "SIZE", "make the member files, sparse, of this size (from 16M up)", 0},
    {"policy", "auto|writethrough|writeback", "cache policy to record (auto)", 0},
    {"consistency", "log|resync", "how an unclean stop is made good (log)", 0},
    {"init", "lazy|zero|resync", "when redundancy is made to agree (lazy)", 0},
    {"log", "DEVICE", "a log device of its own (not built yet)", OPTION_REPEAT},
    {"overwrite-array", "UUID8", "go over the array whose uuid starts so", 0},
    {"overwrite-signature", "KIND", "go over the contents of that kind: ext4, gpt...", 0},
    {"dry-run", NULL, "check everything and print the result, write nothing", 0},
    {NULL, NULL, NULL, 0},
};

struct creation {
    struct call *call;
    struct create_options how;
    uint32_t member_count, spare_count, count;
    const char *paths[COUNT_MAX]; /* members, then spares */
    struct blob *blobs[COUNT_MAX];
    int fds[COUNT_MAX]; /* dry run of --size-each: memory in place of files; else 0 */
    bool zeroed[COUNT_MAX], made[COUNT_MAX];
    uint64_t size_each_bytes; /* 0: the members exist */
    struct create_result result;
};

/* ---- what was typed ---------------------------------------------------------------------- */

static int
parse_level(struct creation *c, struct diag *diag)
{
    const struct options *options = &c->call->options;
    const char *level = options_get(options, "level"), *layout = options_get(options, "layout");
    if (level == NULL)
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL,
                        "--level is missing: 0, 1, 4, 5, 6 or 10");
    if (!level_parse(level, &c->how.level))
        return diag_set(diag, DIAG_USAGE, "E_LEVEL_UNKNOWN", -EINVAL,
                        "there is no level \"%s\"; known are 0, 1, 4, 5, 6 and 10", level);
    c->how.layout = layout_default(c->how.level);
    if (layout != NULL && !layout_parse(c->how.level, layout, &c->how.layout))
        return diag_set(diag, DIAG_USAGE, "E_LAYOUT_UNKNOWN", -EINVAL,
                        "%s has no layout \"%s\"; known are %s", level_name(c->how.level), layout,
                        c->how.level == RAID10 ? "near=N, far=N, offset=N"
                                               : "left-symmetric, left-asymmetric, right-symmetric,"
                                                 " right-asymmetric, parity-first, parity-last");
    return 0;
}

static int
parse_name(struct creation *c, struct diag *diag)
{
    const char *name = call_operand(c->call, 0);
    size_t len = strlen(name);
    bool good = len >= 1 && len <= 32 && name[0] != '-';
    for (size_t i = 0; i < len; i++)
        good = good && (unsigned char)name[i] > ' ' && name[i] != '/' && name[i] != ':' &&
               name[i] != '\x7f';
    c->how.name = name;
    if (good)
        return 0;
    return diag_set(diag, DIAG_USAGE, "E_NAME", -EINVAL,
                    "\"%s\" cannot name an array: 1 to 32 bytes, no blank, no '/', no ':'", name);
}

static enum create_init
parse_init(const char *text)
{
    if (text != NULL && strcmp(text, "zero") == 0)
        return INIT_ZERO;
    return text != NULL && strcmp(text, "resync") == 0 ? INIT_RESYNC : INIT_LAZY;
}

static int
parse(struct creation *c, struct diag *diag)
{
    const struct options *options = &c->call->options;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int err = parse_name(c, diag);
    if (err == 0)
        err = parse_level(c, diag);
    if (err == 0)
        err = options_size(options, "chunk", CHUNK_DEFAULT_BYTES, &c->how.chunk_bytes, diag);
    if (err == 0)
        err = options_size(options, "size-each", 0, &c->size_each_bytes, diag);
    if (err < 0)
        return err;
    if (options_have(options, "size-each") && c->size_each_bytes < SIZE_EACH_MIN_BYTES)
        return diag_set(diag, DIAG_USAGE, "E_MEMBER_SHORT", -EINVAL,
                        "--size-each %s is too small: a member has at least 16 MiB",
                        options_get(options, "size-each"));
    if (options_have(options, "log"))
        return diag_set(diag, DIAG_USAGE, "E_LOG_DEVICE_LATER", -ENOTSUP,
                        "log devices of their own are not built yet; leave --log out and the log "
                        "lies on the members");
    const char *consistency = options_get(options, "consistency");
    const char *policy = options_get(options, "policy");
    c->how.consistency = consistency != NULL ? consistency : "log";
    c->how.policy = policy != NULL ? policy : "auto";
    c->how.init = parse_init(options_get(options, "init"));
    c->how.overwrite_array = options_get(options, "overwrite-array");
    c->how.overwrite_signature = options_get(options, "overwrite-signature");
    c->how.dry_run = options_have(options, "dry-run");
    c->how.wall_ns = (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
    return 0;
}

static int
parse_members(struct creation *c, struct diag *diag)
{
    const struct options *options = &c->call->options;
    c->member_count = options->operand_count - 1;
    while (options_nth(options, "spare", c->spare_count) != NULL)
        c->spare_count++;
    if (c->member_count > MEMBERS_MAX || c->spare_count > MEMBERS_MAX)
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL,
                        "an array has at most %u members and as many spares", MEMBERS_MAX);
    c->count = c->member_count + c->spare_count;
    for (uint32_t i = 0; i < c->count; i++) {
        c->paths[i] = i < c->member_count ? call_operand(c->call, i + 1)
                                          : options_nth(options, "spare", i - c->member_count);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(c->paths[i], c->paths[j]) == 0)
                return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "%s is named twice",
                                c->paths[i]);
    }
    return 0;
}

/* ---- members ------------------------------------------------------------------------------- */

/* A new file of the size asked for; in a dry run memory that looks like it. */
static int
make_file(struct creation *c, uint32_t i, struct diag *diag)
{
    const char *path = c->paths[i];
    struct stat st;
    if (lstat(path, &st) == 0) {
        (void)diag_set(diag, DIAG_REFUSED, "E_EXISTS", -EEXIST,
                       "%s exists; --size-each only makes new files", path);
        diag_fix(diag, "leave --size-each out to use the file as it is, or name another path");
        return -EEXIST;
    }
    int fd = c->how.dry_run ? memfd_create("member", MFD_CLOEXEC)
                            : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return diag_set(diag, DIAG_FAILED, "E_OPEN", -errno, "%s cannot be made: %s", path,
                        strerror(errno));
    c->made[i] = !c->how.dry_run;
    c->zeroed[i] = true;
    int err = ftruncate(fd, (off_t)c->size_each_bytes) < 0 ? -errno : 0;
    if (err == 0 && c->how.dry_run) {
        c->fds[i] = fd;
        return blob_fd_open(&c->blobs[i], fd, path, diag);
    }
    close(fd);
    if (err < 0)
        return diag_set(diag, DIAG_FAILED, "E_OPEN", err,
                        "%s cannot be made %" PRIu64 " bytes long: %s", path, c->size_each_bytes,
                        strerror(-err));
    return blob_file_open(&c->blobs[i], path, false, diag);
}

/* A regular file without any data block reads as zeroes all over. */
static bool
all_hole(const char *path)
{
    struct stat st;
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_DATA) < 0 &&
           errno == ENXIO;
}

static int
open_members(struct creation *c, struct diag *diag)
{
    for (uint32_t i = 0; i < c->count; i++) {
        int err;
        if (c->size_each_bytes != 0) {
            err = make_file(c, i, diag);
        } else {
            err = blob_file_open(&c->blobs[i], c->paths[i], c->how.dry_run, diag);
            c->zeroed[i] = err == 0 && all_hole(c->paths[i]);
        }
        if (err < 0)
            return err;
    }
    return 0;
}

/* Let go of everything; on failure the files made here go too. */
static void
close_members(struct creation *c, bool keep)
{
    for (uint32_t i = 0; i < c->count; i++) {
        blob_close(c->blobs[i]);
        if (c->fds[i] > 0)
            close(c->fds[i]);
        if (c->made[i] && !keep)
            unlink(c->paths[i]);
    }
}

/* ---- the answer ---------------------------------------------------------------------------- */

static json_t *
result_json(const struct creation *c, const char *layout, const char *uuid)
{
    const struct create_result *r = &c->result;
    json_t *members = json_array();
    for (uint32_t i = 0; i < c->count; i++)
        json_array_append_new(members,
                              json_pack("{s:i, s:o}", "role", i < c->member_count ? (int)i : -1,
                                        "path", json_bytes(c->paths[i])));
    return json_pack(
        "{s:o, s:s, s:s, s:s, s:I, s:I, s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b}", "name",
        json_bytes(c->how.name), "uuid", uuid, "level", level_name(c->how.level), "layout", layout,
        "size_bytes", (json_int_t)r->geometry.array_bytes, "chunk_bytes",
        (json_int_t)(c->how.level == RAID1 ? 0 : r->geometry.chunk_bytes), "members", members,
        "dry_run", (int)c->how.dry_run, "raw_bytes", (json_int_t)r->raw_bytes, "parity_bytes",
        (json_int_t)r->parity_bytes, "metadata_bytes", (json_int_t)r->metadata_bytes, "log_bytes",
        (json_int_t)r->log_bytes, "slack_bytes", (json_int_t)r->slack_bytes, "data_offset_bytes",
        (json_int_t)r->data_offset_bytes, "failures_survivable", (int)r->geometry.tolerance,
        "in_sync", (int)r->in_sync);
}

static void
print_row(struct table *table, const char *sign, const char *what, uint64_t bytes)
{
    char size[FORMAT_BYTES];
    table_cell(table, "%s %s", sign, what);
    table_cell(table, "%s", size_format(bytes, size));
}

/* All members, spares too: with one of them alone the array would only wait. */
static void
print_next(const struct creation *c)
{
    printf("next: sr5 start");
    for (uint32_t i = 0; i < c->count; i++)
        printf(" %s", c->paths[i]);
    printf("\n      (without a daemon yet: sr5d");
    for (uint32_t i = 0; i < c->count; i++)
        printf(" --members %s", c->paths[i]);
    printf(")\n");
}

static void
print_result(const struct creation *c, const char *layout, const char *uuid)
{
    const struct create_result *r = &c->result;
    char size[FORMAT_BYTES], chunk[FORMAT_BYTES];
    struct table table;
    printf("%s %s: %s%s%s on %u member%s%s, %s usable, survives the loss of %u\n",
           c->how.dry_run ? "would create" : "created", c->how.name, level_name(c->how.level),
           layout[0] != '\0' ? " " : "", layout, c->member_count, c->member_count == 1 ? "" : "s",
           c->spare_count != 0 ? " with spares" : "", size_format(r->geometry.array_bytes, size),
           r->geometry.tolerance);
    if (!c->how.dry_run)
        printf("uuid %s\n", uuid);
    if (c->how.level != RAID1)
        printf("chunk %s\n", size_format(r->geometry.chunk_bytes, chunk));
    table_init(&table, 2);
    print_row(&table, " ", "raw", r->raw_bytes);
    print_row(&table, "-", r->geometry.parity_count != 0 ? "parity" : "copies", r->parity_bytes);
    print_row(&table, "-", "metadata", r->metadata_bytes);
    print_row(&table, "-", "log", r->log_bytes);
    print_row(&table, "-", "slack", r->slack_bytes);
    print_row(&table, "=", "usable", r->geometry.array_bytes);
    table_print(&table, stdout, "  ");
    table_destroy(&table);
    if (c->how.dry_run)
        printf("before: no array; after: as above; nothing was written\n");
    else
        print_next(c);
}

static int
report(const struct creation *c)
{
    char uuid[40], layout[32] = "";
    super_uuid_text(c->result.uuid, uuid);
    if (c->how.level != RAID1 && c->how.level != RAID4)
        layout_name(c->how.level, c->how.layout, layout, sizeof(layout));
    if (!call_json(c->call, result_json(c, layout, uuid)))
        print_result(c, layout, uuid);
    return 0;
}

int
cmd_create(struct call *call)
{
    struct creation c = {.call = call};
    struct diag diag;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* short, and all or nothing */
    int err = parse(&c, &diag);
    if (err == 0)
        err = parse_members(&c, &diag);
    if (err == 0)
        err = open_members(&c, &diag);
    struct create_members members = {c.blobs, c.zeroed, c.member_count, c.spare_count};
    if (err == 0)
        err = create_array(&c.how, &members, &c.result, &diag);
    int code = err < 0 ? call_fail(call, &diag) : report(&c);
    close_members(&c, err == 0);
    return code;
}
