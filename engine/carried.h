/* What would-be members of a new array carry already, and whether it may be overwritten. */
#pragma once

#include "engine/create.h"

/* Probe every blob (reads only) and refuse what carries something that the options do not name:
 * E_MEMBER_OF_ARRAY for a superblock that can be read, E_SIGNATURE for all else.  Remains of an
 * interrupted creation may go.  probes: zeroed, `count` of them, destroyed by the caller. */
MUST_CHECK int carried_check(const struct create_options *options, struct blob *const *blobs,
                             uint32_t count, struct probe *probes, struct diag *diag);
