/* Make a freshly created member small, and perhaps one as md would make it. */
#pragma once

#include "tests/sim/sim_array.h"

MUST_CHECK int sim_shrink(const struct sim_plan *plan, struct blob *blob, uint32_t role,
                          struct diag *diag);
