#include "engine/io/member_dev.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/iov.h"
#include "engine/base/msg.h"
#include "engine/base/units.h"

#include "engine/io/io_context.h"
#include "engine/io/io_fault.h"

static const char fault_prefix[] = "fault:";

const char *
member_spec_path(const char *spec)
{
    size_t prefix_len = strlen(fault_prefix);
    if (strncmp(spec, fault_prefix, prefix_len) != 0)
        return spec;
    const char *end = strchr(spec + prefix_len, ':');
    return end == NULL ? spec + strlen(spec) : end + 1;
}

static struct member *
to_member(struct dev *dev)
{
    return CONTAINER_OF(dev, struct member, dev);
}

/* What the caller owes us (req.h); a violation is a bug of ours, not of a client. */
static void
check_request(const struct member *member, const struct req *req)
{
    const struct dev_info *info = &member->file.info;
    check_eq(req->off_bytes % info->logical_bytes, 0);
    check_eq(req->len_bytes % info->logical_bytes, 0);
    check_le(req->len_bytes, info->size_bytes);
    check_le(req->off_bytes, info->size_bytes - req->len_bytes);
    check(!req_is_write(req) || !info->read_only);
    if (req->op == REQ_READ || req->op == REQ_WRITE) {
        check_eq(iov_bytes(req->iov, req->iov_count), req->len_bytes);
        check(iov_aligned(req->iov, req->iov_count, info->mem_align));
    }
}

static void
member_submit(struct dev *dev, struct req *req)
{
    struct member *member = to_member(dev);
    check_request(member, req);
    bool nothing_to_do = req->op == REQ_CACHE || (req->op != REQ_FLUSH && req->len_bytes == 0) ||
                         (req->op == REQ_FLUSH && member->file.in_memory);
    if (nothing_to_do)
        req_done(req, 0);
    else if ((req->flags & REQ_FAST_ZERO) != 0 && !member->file.info.can_zero)
        req_done(req, -ENOTSUP);
    else
        io_context_queue(member->context, member, req);
}

static void
member_info(const struct dev *dev, struct dev_info *info)
{
    *info = CONTAINER_OF(dev, const struct member, dev)->file.info;
}

static void
member_close(struct dev *dev)
{
    struct member *member = to_member(dev);
    check_eq(member->in_flight, 0);
    member->context->members--;
    close(member->file.fd);
    free(member);
}

static const struct dev_ops member_ops = {
    .submit = member_submit,
    .info = member_info,
    .close = member_close,
};

static int
open_plain(struct dev **out, struct io_context *context, const struct member_open *how,
           struct diag *diag)
{
    const char *path = member_spec_path(how->spec);
    struct member *member = calloc(1, sizeof(*member));
    if (member == NULL)
        return diag_set(diag, DIAG_FAILED, "E_OPEN", -ENOMEM, "no memory to open %s", path);
    uint32_t flags = MEMBER_FILE_DIRECT | (how->read_only ? MEMBER_FILE_READ_ONLY : 0) |
                     (how->no_lock ? MEMBER_FILE_NO_LOCK : 0);
    int err = member_file_open(&member->file, path, flags, diag);
    if (err < 0) {
        free(member);
        return err;
    }
    if (!member->file.direct)
        msg(MSG_NOTICE, "%s: no direct I/O on its file system, using the page cache", path);
    member->dev.ops = &member_ops;
    member->context = context;
    context->members++;
    *out = &member->dev;
    return 0;
}

int
member_dev_open(struct dev **out, struct io_context *context, const struct member_open *how,
                struct diag *diag)
{
    const char *path = member_spec_path(how->spec);
    if (*path == '\0') {
        diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "no path in the member \"%s\"", how->spec);
        diag_fix(diag, "write PATH or fault:RULE[,RULE]...:PATH");
        return -EINVAL;
    }
    struct dev *dev = NULL;
    int err = open_plain(&dev, context, how, diag);
    if (err < 0 || path == how->spec) {
        if (err == 0)
            *out = dev;
        return err;
    }
    const char *rules = how->spec + strlen(fault_prefix);
    CLEANUP_FREE char *copy = strndup(rules, (size_t)(path - 1 - rules));
    if (copy == NULL)
        err = diag_set(diag, DIAG_FAILED, "E_OPEN", -ENOMEM, "no memory to open %s", path);
    else
        err = io_fault_create(out, dev, context->loop, copy, diag);
    if (err < 0)
        dev_close(dev);
    return err;
}
