/* What the simulator lets pass that a perfect array would not do: all of it is here, each with its
 * reason.  The log (the next issue) takes most of this away. */
#pragma once

#include "tests/sim/run.h"

/* Right before the array dies: what may be inconsistent afterwards.  model_power_cut() or
 * model_kill() comes inside. */
void allow_death(struct run *run, bool power);
/* Right after it was opened. */
void allow_opened(struct run *run);
/* A member has just failed, or had an error: the array will go on without it, or look elsewhere. */
void allow_member_error(struct run *run, uint32_t role, bool lost);
/* A flush that was submitted when redundancy agreed with the data is done. */
void allow_flushed(struct run *run);
/* May it be open, or did the array forget to refuse (A1)? */
bool allow_start(const struct run *run, bool accepted);
/* May this error of array_open() be? */
bool allow_refusal(const struct run *run, const struct diag *diag);
/* Does redundancy agree with the data now, as far as the array knows? */
bool allow_synced(struct run *run);
