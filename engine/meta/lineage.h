/* Did two members of an array go on without each other?  Pure. */
#pragma once

#include "engine/meta/decide.h"

/* m and f, both with a superblock and a data role, f the fresher: true when m has generations that
 * f never saw, as far as their tables and areas tell.  A member that was merely lost is not
 * diverged. */
bool members_diverged(const struct candidate *m, const struct candidate *f);
