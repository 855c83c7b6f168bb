/* What a seed makes of an array: level, layout, sizes, habits of its members. */
#pragma once

#include "tests/sim/sim_array.h"

void sim_plan_choose(struct sim_plan *plan, struct rng *rng);
