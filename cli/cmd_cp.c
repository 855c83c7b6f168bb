/* sr5 cp: a range of an array to a file, or a file into an array, without any NBD client but this.
 *
 * One operand is NAME[:OFF[+LEN]] of an array the daemon knows, the other a file or - (stdin,
 * stdout).  Everything is checked before the first byte is written: that the range lies inside,
 * that the file fits, that the file is not a member in use. */
#include <fcntl.h>
#include <inttypes.h>
#include <libnbd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/units.h"

#include "cli/cmd.h"
#include "cli/format.h"
#include "cli/found_json.h"

#define COPY_BYTES MIB(4) /* more gains nothing on a unix socket */

struct side {
    const char *text;
    char name[256]; /* before the last ':', when a range follows it */
    uint64_t off_bytes, len_bytes;
    const json_t *array; /* the daemon's, when there is one of that name */
};

struct copy {
    struct call *call;
    json_t *list; /* the daemon's answer to `list`; holds what the sides borrow */
    struct side array;
    const char *file;
    bool to_array;
    struct nbd_handle *nbd;
    int fd;
    uint64_t done_bytes;
};

static const json_t *
known_array(const json_t *list, const char *name)
{
    size_t i;
    json_t *array;
    json_array_foreach (json_object_get(list, "arrays"), i, array) {
        if (strcmp(json_text(array, "name"), name) == 0 ||
            strcmp(json_text(array, "uuid"), name) == 0)
            return array;
    }
    return NULL;
}

static struct side
parse_side(const json_t *list, const char *text)
{
    struct side side = {.text = text, .len_bytes = UINT64_MAX};
    snprintf(side.name, sizeof(side.name), "%s", text);
    char *colon = strrchr(side.name, ':');
    if (colon != NULL && range_parse(colon + 1, &side.off_bytes, &side.len_bytes))
        *colon = '\0';
    if (strchr(text, '/') == NULL) /* ./tank is a file */
        side.array = known_array(list, side.name);
    return side;
}

static int
fail_nbd(struct diag *diag)
{
    int err = nbd_get_errno();
    return diag_set(diag, DIAG_FAILED, "E_IO", err > 0 ? -err : -EIO, "%s", nbd_get_error());
}

static int
fail_file(const struct copy *copy, struct diag *diag)
{
    int err = errno;
    return diag_set(diag, DIAG_FAILED, "E_IO", -err, "%s: %s", copy->file, strerror(err));
}

static int
choose_sides(struct copy *copy, struct diag *diag)
{
    struct side from = parse_side(copy->list, call_operand(copy->call, 0));
    struct side to = parse_side(copy->list, call_operand(copy->call, 1));
    if (from.array != NULL && to.array != NULL)
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL,
                        "%s and %s are both arrays; a file of that name is written ./%s", from.text,
                        to.text, to.text);
    if (from.array == NULL && to.array == NULL) {
        (void)diag_set(diag, DIAG_FAILED, "E_NO_SUCH_ARRAY", -ENOENT,
                       "neither %s nor %s is an array of this daemon", from.text, to.text);
        diag_fix(diag, "sr5 list");
        return -ENOENT;
    }
    copy->to_array = to.array != NULL;
    copy->array = copy->to_array ? to : from;
    copy->file = copy->to_array ? from.text : to.text;
    return 0;
}

static int
connect_array(struct copy *copy, struct diag *diag)
{
    const char *socket = json_text(copy->list, "socket");
    const char *export = json_text(copy->array.array, "export");
    if (export[0] == '\0') {
        (void)diag_set(diag, DIAG_OFFLINE, "E_NOT_SERVED", -ENOTCONN, "%s is %s: not served",
                       copy->array.name, json_text(copy->array.array, "state"));
        diag_fix(diag, "sr5 status %s", copy->array.name);
        return -ENOTCONN;
    }
    copy->nbd = nbd_create();
    if (copy->nbd == NULL || nbd_set_export_name(copy->nbd, export) < 0 ||
        nbd_connect_unix(copy->nbd, socket) < 0)
        return fail_nbd(diag);
    int64_t size = nbd_get_size(copy->nbd);
    if (size < 0)
        return fail_nbd(diag);
    uint64_t end, size_bytes = (uint64_t)size;
    struct side *side = &copy->array;
    if (side->len_bytes == UINT64_MAX && side->off_bytes <= size_bytes)
        side->len_bytes = size_bytes - side->off_bytes;
    if (!add_ok(side->off_bytes, side->len_bytes, &end) || end > size_bytes)
        return diag_set(diag, DIAG_USAGE, "E_RANGE", -ERANGE,
                        "%s ends beyond the array's %" PRIu64 " bytes", side->text, size_bytes);
    if (copy->to_array && nbd_is_read_only(copy->nbd) > 0)
        return diag_set(diag, DIAG_REFUSED, "E_READ_ONLY", -EROFS, "%s is read-only", side->name);
    return 0;
}

static int
open_source_file(struct copy *copy, struct diag *diag)
{
    struct stat st;
    if (strcmp(copy->file, "-") == 0) {
        copy->fd = STDIN_FILENO;
        return 0;
    }
    copy->fd = open(copy->file, O_RDONLY | O_CLOEXEC);
    if (copy->fd < 0 || fstat(copy->fd, &st) < 0)
        return fail_file(copy, diag);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > copy->array.len_bytes)
        return diag_set(diag, DIAG_USAGE, "E_RANGE", -EFBIG,
                        "%s has %" PRIu64 " bytes, the range only %" PRIu64, copy->file,
                        (uint64_t)st.st_size, copy->array.len_bytes);
    return 0;
}

static int
open_target_file(struct copy *copy, struct diag *diag)
{
    if (strcmp(copy->file, "-") == 0) {
        copy->fd = STDOUT_FILENO;
        return 0;
    }
    if (found_in_use(copy->file))
        return diag_set(diag, DIAG_REFUSED, "E_IN_USE", -EBUSY,
                        "%s is in use, perhaps as a member of an array", copy->file);
    copy->fd = open(copy->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return copy->fd < 0 ? fail_file(copy, diag) : 0;
}

/* ---- moving bytes -------------------------------------------------------------------------- */

/* As many bytes as there are, up to len: short only at the end. */
static ssize_t
read_full(int fd, char *to, size_t len)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = read(fd, to + got, len - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static int
write_full(int fd, const char *from, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, from, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        from += n;
        len -= (size_t)n;
    }
    return 0;
}

static int
copy_out(struct copy *copy, char *buf, struct diag *diag)
{
    while (copy->done_bytes < copy->array.len_bytes) {
        size_t len = MIN(COPY_BYTES, copy->array.len_bytes - copy->done_bytes);
        if (nbd_pread(copy->nbd, buf, len, copy->array.off_bytes + copy->done_bytes, 0) < 0)
            return fail_nbd(diag);
        if (write_full(copy->fd, buf, len) < 0)
            return fail_file(copy, diag);
        copy->done_bytes += len;
    }
    if (copy->fd != STDOUT_FILENO && fsync(copy->fd) < 0 && errno != EINVAL)
        return fail_file(copy, diag);
    return 0;
}

static int
copy_in(struct copy *copy, char *buf, struct diag *diag)
{
    for (;;) {
        uint64_t room = copy->array.len_bytes - copy->done_bytes;
        ssize_t got = read_full(copy->fd, buf, MIN(COPY_BYTES, room + 1));
        if (got < 0)
            return fail_file(copy, diag);
        if (got == 0)
            break;
        if ((uint64_t)got > room) /* only a stream can still surprise us here */
            return diag_set(diag, DIAG_FAILED, "E_RANGE", -EFBIG,
                            "%s goes on after the range's %" PRIu64 " bytes, which are written",
                            copy->file, copy->array.len_bytes - room);
        if (nbd_pwrite(copy->nbd, buf, (size_t)got, copy->array.off_bytes + copy->done_bytes, 0) <
            0)
            return fail_nbd(diag);
        copy->done_bytes += (uint64_t)got;
        copy->call->changed = true;
    }
    return nbd_can_flush(copy->nbd) > 0 && nbd_flush(copy->nbd, 0) < 0 ? fail_nbd(diag) : 0;
}

static int
run(struct copy *copy, struct diag *diag)
{
    int err = call_daemon(copy->call, "list", NULL, &copy->list, diag);
    if (err == 0)
        err = choose_sides(copy, diag);
    if (err == 0)
        err = connect_array(copy, diag);
    if (err == 0)
        err = copy->to_array ? open_source_file(copy, diag) : open_target_file(copy, diag);
    if (err < 0)
        return err;
    char *buf = malloc(COPY_BYTES);
    check(buf != NULL);
    err = copy->to_array ? copy_in(copy, buf, diag) : copy_out(copy, buf, diag);
    free(buf);
    nbd_shutdown(copy->nbd, 0);
    return err;
}

int
cmd_cp(struct call *call)
{
    struct copy copy = {.call = call, .fd = -1};
    struct diag diag;
    char size[FORMAT_BYTES];
    int err = run(&copy, &diag);
    nbd_close(copy.nbd);
    if (copy.fd > STDERR_FILENO && close(copy.fd) < 0 && err == 0)
        err = fail_file(&copy, &diag);
    json_decref(copy.list);
    if (err < 0)
        return call_fail(call, &diag);
    bool stdout_taken = copy.fd == STDOUT_FILENO;
    json_t *result = json_pack("{s:s, s:I, s:I, s:b}", "name", copy.array.name, "offset_bytes",
                               (json_int_t)copy.array.off_bytes, "copied_bytes",
                               (json_int_t)copy.done_bytes, "to_array", (int)copy.to_array);
    if (stdout_taken)
        json_decref(result);
    else if (!call_json(call, result))
        printf("copied %s %s %s\n", size_format(copy.done_bytes, size),
               copy.to_array ? "to" : "from", copy.array.name);
    return 0;
}
