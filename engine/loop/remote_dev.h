/* A device that lives on another loop, as a device of this one.
 *
 * submit() here posts the request to the owner's loop, where it is submitted to the real device;
 * its done() is posted back.  Requests of one turn cross as one batch, and so do their answers.
 * When both loops are the same, use the device itself.  dev_info is the target's as of creation. */
#pragma once

#include "engine/base/dev.h"

#include "engine/loop/mailbox.h"

/* `there` is a mailbox of target's loop, `here` one of the caller's.  request_max bounds how many
 * may be on the way; more wait here, in order.  close() does not close the target.  0 or -ENOMEM.
 */
MUST_CHECK int remote_dev_create(struct dev **out, struct dev *target, struct mailbox *there,
                                 struct mailbox *here, uint32_t request_max);
