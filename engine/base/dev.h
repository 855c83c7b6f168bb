/* A device: the one interface of the data path.  Members, the array, the cache and the fault
 * wrapper are all devices and stack freely. */
#pragma once

#include "engine/base/req.h"

struct dev_info {
    uint64_t size_bytes;
    uint32_t logical_bytes;  /* smallest addressable unit; power of two, 1 for arrays */
    uint32_t physical_bytes; /* unit below which the device itself reads, modifies and writes */
    uint32_t mem_align;      /* memory of READ and WRITE must be aligned so; 1: any */
    uint64_t optimal_bytes;  /* a full stripe of an array; 0: no preference */
    bool read_only;
    bool rotational;
    bool can_zero;       /* REQ_ZERO is cheaper than writing */
    bool can_trim;       /* REQ_TRIM does something */
    bool volatile_cache; /* a completed write may be lost until a FLUSH */
};

struct dev;

struct dev_ops {
    /* Required.  Take the request; done() follows, perhaps from inside. */
    void (*submit)(struct dev *dev, struct req *req);
    /* Required.  Constant while the device is open, but for read_only. */
    void (*info)(const struct dev *dev, struct dev_info *info);
    /* Required.  No request may be in flight.  Frees the device. */
    void (*close)(struct dev *dev);
};

struct dev {
    const struct dev_ops *ops;
};

static inline void
dev_submit(struct dev *dev, struct req *req)
{
    dev->ops->submit(dev, req);
}

static inline struct dev_info
dev_info(const struct dev *dev)
{
    struct dev_info info = {0};
    dev->ops->info(dev, &info);
    return info;
}

static inline void
dev_close(struct dev *dev)
{
    if (dev != NULL)
        dev->ops->close(dev);
}
