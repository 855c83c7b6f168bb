/* A device in front of a member that notes every request and answer in the trace, and passes them
 * on unchanged. */
#pragma once

#include "engine/base/dev.h"

#include "tests/sim/trace.h"

/* Called before the array hears of an error. */
struct tap_watch {
    void (*failed)(struct tap_watch *watch, uint32_t who, const struct req *req);
};

/* Takes `below` over.  `who` names it in the trace. */
struct dev *tap_create(struct dev *below, struct trace *trace, struct tap_watch *watch,
                       uint32_t who);
