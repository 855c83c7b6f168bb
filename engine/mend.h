/* What a start for writing puts right on the members, at once and by itself. */
#pragma once

#include "engine/assemble.h"

/* Of the members that are used: finish a creation that was cut off in its last step; write a
 * superblock that was found only as a copy into its place.  Blocking; when the array is open, so
 * that nothing can be refused any more and it holds their locks.  0, or -errno with *diag. */
MUST_CHECK int mend_members(const struct found_array *found, struct diag *diag);
