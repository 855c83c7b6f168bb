/* Metadata access to a file or device: plain pread and pwrite through the page cache, which the
 * kernel keeps coherent with direct I/O to the same file, so any alignment will do.  The cached
 * copy of what is read is dropped first: what counts is what is on the device. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/blob.h"
#include "engine/base/units.h"

#include "engine/io/io_context.h"

struct blob_file {
    struct blob blob;
    int fd;
    bool fd_is_ours;
};

static int
blob_fd(struct blob *blob)
{
    return CONTAINER_OF(blob, struct blob_file, blob)->fd;
}

static bool
inside(const struct blob *blob, size_t len, uint64_t off_bytes)
{
    return off_bytes <= blob->size_bytes && len <= blob->size_bytes - off_bytes;
}

/* Of one pread or pwrite: how far to go on, or an error when there is no going on. */
static ssize_t
progress(ssize_t result)
{
    if (result > 0)
        return result;
    if (result < 0 && errno == EINTR)
        return 0;
    return result < 0 ? io_error(-errno) : -EIO;
}

static int
blob_file_read(struct blob *blob, void *to, size_t len, uint64_t off_bytes)
{
    int fd = blob_fd(blob);
    if (!inside(blob, len, off_bytes))
        return -EIO;
    posix_fadvise(fd, (off_t)off_bytes, (off_t)len, POSIX_FADV_DONTNEED);
    for (size_t done = 0; done < len;) {
        ssize_t more =
            progress(pread(fd, (char *)to + done, len - done, (off_t)(off_bytes + done)));
        if (more < 0)
            return (int)more;
        done += (size_t)more;
    }
    return 0;
}

static int
blob_file_write(struct blob *blob, const void *from, size_t len, uint64_t off_bytes)
{
    int fd = blob_fd(blob);
    if (!inside(blob, len, off_bytes))
        return -EIO;
    for (size_t done = 0; done < len;) {
        ssize_t more =
            progress(pwrite(fd, (const char *)from + done, len - done, (off_t)(off_bytes + done)));
        if (more < 0)
            return (int)more;
        done += (size_t)more;
    }
    return 0;
}

static int
blob_file_flush(struct blob *blob)
{
    int err;
    do
        err = fdatasync(blob_fd(blob));
    while (err != 0 && errno == EINTR);
    return err == 0 ? 0 : io_error(-errno);
}

static void
blob_file_close(struct blob *blob)
{
    struct blob_file *file = CONTAINER_OF(blob, struct blob_file, blob);
    if (file->fd_is_ours)
        close(file->fd);
    free(file);
}

static const struct blob_ops blob_file_ops = {
    .read = blob_file_read,
    .write = blob_file_write,
    .flush = blob_file_flush,
    .close = blob_file_close,
};

static int
blob_make(struct blob **out, const struct member_file *from, bool fd_is_ours, const char *path)
{
    struct blob_file *file = calloc(1, sizeof(*file));
    if (file == NULL)
        return -ENOMEM;
    file->fd = from->fd;
    file->fd_is_ours = fd_is_ours;
    file->blob.ops = &blob_file_ops;
    file->blob.size_bytes = from->info.size_bytes;
    file->blob.logical_bytes = from->info.logical_bytes;
    file->blob.physical_bytes = from->info.physical_bytes;
    snprintf(file->blob.path, sizeof(file->blob.path), "%s", path);
    *out = &file->blob;
    return 0;
}

int
blob_file_open(struct blob **out, const char *path, bool read_only, struct diag *diag)
{
    struct member_file file;
    uint32_t flags = read_only ? MEMBER_FILE_READ_ONLY | MEMBER_FILE_NO_LOCK : 0;
    int err = member_file_open(&file, path, flags, diag);
    if (err < 0)
        return err;
    err = blob_make(out, &file, true, path);
    if (err < 0) {
        close(file.fd);
        return diag_set(diag, DIAG_FAILED, "E_OPEN", err, "no memory to open %s", path);
    }
    return 0;
}

int
blob_fd_open(struct blob **out, int fd, const char *path, struct diag *diag)
{
    struct member_file file;
    int err = member_file_from_fd(&file, fd);
    if (err == 0)
        err = blob_make(out, &file, false, path);
    if (err < 0)
        return diag_set(diag, DIAG_FAILED, "E_OPEN", err, "cannot use %s: %s", path,
                        strerror(-err));
    return 0;
}
