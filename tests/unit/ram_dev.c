#include "tests/unit/ram_dev.h"

#include <string.h>
#include <sys/mman.h>

#include "engine/base/iov.h"

static void
carry_out(struct ram_dev *ram, struct req *req)
{
    int err = ram->fail_err;
    if (err == 0 && req->op == REQ_READ)
        iov_copy_in(req->iov, req->iov_count, 0, ram->memory + req->off_bytes, req->len_bytes);
    if (err == 0 && req->op == REQ_WRITE)
        iov_copy_out(ram->memory + req->off_bytes, req->iov, req->iov_count, 0, req->len_bytes);
    if (err == 0 && req->op == REQ_ZERO && ram->slow_zero && (req->flags & REQ_FAST_ZERO) != 0)
        err = -ENOTSUP;
    else if (err == 0 && req->op == REQ_ZERO)
        memset(ram->memory + req->off_bytes, 0, req->len_bytes);
    req_done(req, err);
}

static void
ram_submit(struct dev *dev, struct req *req)
{
    struct ram_dev *ram = CONTAINER_OF(dev, struct ram_dev, dev);
    check_le(req->off_bytes, ram->size_bytes);
    check_le(req->len_bytes, ram->size_bytes - req->off_bytes);
    ram->op_count[req->op]++;
    ram->last_flags = req->flags;
    ram->last_len_bytes = req->len_bytes;
    if (!ram->hold) {
        carry_out(ram, req);
        return;
    }
    list_push_back(&ram->held, &req->dev_node);
    ram->held_count++;
}

void
ram_dev_release(struct ram_dev *ram, bool reversed)
{
    ram->hold = false;
    while (!list_empty(&ram->held)) {
        struct list_node *node = reversed ? ram->held.head.prev : ram->held.head.next;
        list_remove(node);
        ram->held_count--;
        carry_out(ram, CONTAINER_OF(node, struct req, dev_node));
    }
}

static void
ram_info(const struct dev *dev, struct dev_info *info)
{
    const struct ram_dev *ram = CONTAINER_OF(dev, const struct ram_dev, dev);
    *info = (struct dev_info){
        .size_bytes = ram->size_bytes, .logical_bytes = 1, .physical_bytes = 1, .mem_align = 1};
}

static void
ram_close(struct dev *dev)
{
    ram_dev_destroy(CONTAINER_OF(dev, struct ram_dev, dev));
}

static const struct dev_ops ram_ops = {ram_submit, ram_info, ram_close};

void
ram_dev_init(struct ram_dev *ram, uint64_t size_bytes)
{
    *ram = (struct ram_dev){.dev.ops = &ram_ops, .size_bytes = size_bytes};
    list_init(&ram->held);
    ram->memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(ram->memory != MAP_FAILED);
}

void
ram_dev_destroy(struct ram_dev *ram)
{
    check(list_empty(&ram->held));
    munmap(ram->memory, ram->size_bytes);
}
