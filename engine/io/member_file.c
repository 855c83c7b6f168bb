#include "engine/io/member_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "engine/base/units.h"

/* ---- the kernel's view of the disk under it: /sys/dev/block/MAJOR:MINOR/queue -----------------
 */

/* 0 when there is no such file. */
static size_t
sysfs_read(dev_t device, const char *name, char *text, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/%s", major(device), minor(device),
             name);
    if (access(path, R_OK) != 0) /* a partition: its disk has the queue */
        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../queue/%s", major(device),
                 minor(device), name);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, bytes - 1);
    text[MAX(got, 0)] = '\0';
    return (size_t)MAX(got, 0);
}

static uint64_t
sysfs_u64(dev_t device, const char *name)
{
    char text[64];
    return sysfs_read(device, name, text, sizeof(text)) == 0 ? 0 : strtoull(text, NULL, 10);
}

static bool
sysfs_is(dev_t device, const char *name, const char *value)
{
    char text[64];
    return sysfs_read(device, name, text, sizeof(text)) != 0 &&
           strncmp(text, value, strlen(value)) == 0;
}

/* ---- geometry -------------------------------------------------------------------------------- */

static int
probe_block(struct member_file *file, dev_t device)
{
    uint64_t size_bytes;
    int logical_bytes;
    unsigned physical_bytes;
    if (ioctl(file->fd, BLKGETSIZE64, &size_bytes) != 0 ||
        ioctl(file->fd, BLKSSZGET, &logical_bytes) != 0 ||
        ioctl(file->fd, BLKPBSZGET, &physical_bytes) != 0)
        return -errno;
    struct dev_info *info = &file->info;
    info->size_bytes = size_bytes;
    info->logical_bytes = (uint32_t)logical_bytes;
    info->physical_bytes = MAX((uint32_t)physical_bytes, info->logical_bytes);
    info->mem_align = file->direct ? info->logical_bytes : 1;
    info->rotational = sysfs_u64(device, "rotational") != 0;
    info->volatile_cache = !sysfs_is(device, "write_cache", "write through");
    /* Holes on a device are zeroes written by the device itself. */
    info->can_zero = !info->read_only && sysfs_u64(device, "write_zeroes_max_bytes") != 0;
    info->can_trim = info->can_zero;
    return 0;
}

/* Does a direct read at this alignment work?  (A file of less than one block says yes.) */
static bool
direct_read_works(int fd, uint32_t align)
{
    char *page =
        mmap(NULL, 2 * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool works = pread(fd, page + align, align, align) >= 0;
    munmap(page, 2 * BLOCK_BYTES);
    return works;
}

/* What direct I/O on a regular file needs of offset, length and memory; 0: there is none. */
static uint32_t
direct_align(int fd)
{
#ifdef STATX_DIOALIGN
    struct statx stx;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
        (stx.stx_mask & STATX_DIOALIGN) != 0)
        return MAX(stx.stx_dio_offset_align, stx.stx_dio_mem_align);
#endif
    return direct_read_works(fd, SECTOR_BYTES)  ? SECTOR_BYTES
           : direct_read_works(fd, BLOCK_BYTES) ? BLOCK_BYTES
                                                : 0;
}

/* Beyond the end of the file there is nothing to lose. */
static bool
hole_works(int fd, uint64_t size_bytes)
{
    uint64_t off_bytes = round_up(size_bytes, BLOCK_BYTES);
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off_bytes,
                     BLOCK_BYTES) == 0;
}

static bool
clear_direct(struct member_file *file)
{
    int flags = fcntl(file->fd, F_GETFL);
    file->direct = false;
    return flags >= 0 && fcntl(file->fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

static int
probe_regular(struct member_file *file, const struct stat *st)
{
    struct dev_info *info = &file->info;
    uint32_t align = file->direct ? direct_align(file->fd) : 0;
    if (file->direct && (!is_pow2(align) || align > BLOCK_BYTES) && !clear_direct(file))
        return -errno;
    info->logical_bytes = file->direct ? MAX(align, SECTOR_BYTES) : SECTOR_BYTES;
    info->mem_align = file->direct ? info->logical_bytes : 1;
    info->physical_bytes = MAX(info->logical_bytes, BLOCK_BYTES);
    info->size_bytes = round_down((uint64_t)st->st_size, info->logical_bytes);
    info->rotational = sysfs_u64(st->st_dev, "rotational") != 0;
    info->volatile_cache = true;
    return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int
refuse_in_use(const char *path, bool is_block, struct diag *diag)
{
    const char *by = is_block ? "mounted, or held by another array, LVM or sr5d"
                              : "locked by another process, perhaps a running sr5d";
    diag_set(diag, DIAG_BUSY, "E_IN_USE", -EBUSY, "%s is in use: %s", path, by);
    diag_fix(diag, "sr5 list");
    diag_fix(diag, is_block ? "lsblk %s" : "fuser -v %s", path);
    return -EBUSY;
}

static int
refuse_open(const char *path, int err, struct diag *diag)
{
    return diag_set(diag, DIAG_FAILED, "E_OPEN", err, "cannot open %s: %s", path, strerror(-err));
}

/* An open file description lock: it excludes other descriptions of the file, by whatever name and
 * in whatever process, and goes with this one. */
static int
lock_regular(int fd, bool read_only)
{
    struct flock lock = {.l_type = read_only ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

static int
open_path(struct member_file *file, const char *path, const struct stat *st, uint32_t flags)
{
    bool exclusive = file->is_block && (flags & MEMBER_FILE_NO_LOCK) == 0;
    int how = (flags & MEMBER_FILE_READ_ONLY ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY |
              (exclusive ? O_EXCL : 0);
    file->direct = (flags & MEMBER_FILE_DIRECT) != 0 && !file->in_memory;
    file->fd = open(path, how | (file->direct ? O_DIRECT : 0));
    if (file->fd < 0 && errno == EINVAL && file->direct) {
        file->direct = false;
        file->fd = open(path, how);
    }
    struct stat now;
    if (file->fd < 0 || fstat(file->fd, &now) != 0)
        return -errno;
    bool same = now.st_ino == st->st_ino && now.st_dev == st->st_dev && now.st_mode == st->st_mode;
    return same ? 0 : -ESTALE; /* replaced between stat() and open() */
}

static int
open_and_probe(struct member_file *file, const char *path, uint32_t flags, struct diag *diag)
{
    struct stat st;
    struct statfs fs;
    if (stat(path, &st) != 0 || statfs(path, &fs) != 0)
        return refuse_open(path, -errno, diag);
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        return diag_set(diag, DIAG_FAILED, "E_OPEN", -ENOTBLK,
                        "cannot use %s: it is neither a regular file nor a block device", path);
    file->is_block = S_ISBLK(st.st_mode);
    file->in_memory = !file->is_block && fs.f_type == TMPFS_MAGIC;
    file->info.read_only = (flags & MEMBER_FILE_READ_ONLY) != 0;
    int err = open_path(file, path, &st, flags);
    bool in_use = err == -EBUSY; /* O_EXCL */
    if (err == 0 && !file->is_block && (flags & MEMBER_FILE_NO_LOCK) == 0) {
        err = lock_regular(file->fd, file->info.read_only);
        in_use = err == -EAGAIN || err == -EACCES;
    }
    if (in_use)
        return refuse_in_use(path, file->is_block, diag);
    if (err == 0)
        err = file->is_block ? probe_block(file, st.st_rdev) : probe_regular(file, &st);
    if (err < 0)
        return refuse_open(path, err, diag);
    bool for_data = (flags & MEMBER_FILE_DIRECT) != 0 && !file->info.read_only;
    if (!file->is_block && for_data)
        file->info.can_zero = file->info.can_trim = hole_works(file->fd, (uint64_t)st.st_size);
    return 0;
}

int
member_file_open(struct member_file *file, const char *path, uint32_t flags, struct diag *diag)
{
    *file = (struct member_file){.fd = -1};
    int err = open_and_probe(file, path, flags, diag);
    if (err < 0 && file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
    return err;
}

int
member_file_from_fd(struct member_file *file, int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fstat(fd, &st) != 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        return -ENOTBLK;
    *file = (struct member_file){.fd = fd, .is_block = S_ISBLK(st.st_mode)};
    file->info.read_only = (flags & O_ACCMODE) == O_RDONLY;
    return file->is_block ? probe_block(file, st.st_rdev) : probe_regular(file, &st);
}
