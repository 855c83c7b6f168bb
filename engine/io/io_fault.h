/* A device in front of another that fails on demand, at run time.
 *
 * Rules (several, comma separated; sizes with suffix):
 *   eio-read[@OFF+LEN]    reads that touch the range (default: any) answer -EIO
 *   eio-write[@OFF+LEN]   the same for writes, zeroes and trims
 *   eio-flush             flushes answer -EIO
 *   delay=MS              every request takes that much longer
 *   hang                  requests are held until the rule goes
 *   gone                  everything answers -ENODEV until the rule goes
 *   short[=BYTES]         the device reports that many bytes less (default 1 MiB); set at open only
 *   enospc[@OFF+LEN]      writes answer -ENOSPC
 *   flip@OFF[+LEN]        reads return the bytes there inverted (silent corruption)
 */
#pragma once

#include "engine/base/dev.h"
#include "engine/base/diag.h"

#include "engine/loop/loop.h"

/* Takes `below` over (closed with it).  rules may be "". */
MUST_CHECK int io_fault_create(struct dev **out, struct dev *below, struct loop *loop,
                               const char *rules, struct diag *diag);
/* Replace the rules; held requests whose rule went are released. -EINVAL with *diag changes
 * nothing. -ENOTSUP when dev is not a fault device. */
MUST_CHECK int io_fault_set(struct dev *dev, const char *rules, struct diag *diag);
bool io_fault_is(const struct dev *dev);
