/* Do redundancy and data agree on the members themselves?  Read directly, past the engine. */
#pragma once

#include "tests/sim/sim_array.h"

/* Rows of which `claimed` says that they are in sync: parity is what the reference makes of the
 * data, copies are equal.  Only members in use count; what cannot be judged without a missing one
 * is passed over.  False: *why says where. */
bool image_check(const struct sim_array *sim,
                 bool (*claimed)(const struct sim_array *sim, uint64_t sync_off_bytes), char *why,
                 size_t why_bytes);
