/* What a scan found, as JSON: for `sr5 scan`, and for the status of arrays that are not open. */
#pragma once

#include <jansson.h>

#include "engine/assemble.h"

/* An entry of sr5.scan/1 `arrays`. */
json_t *found_array_json(const struct found_array *found);
/* An entry of sr5.status/1 `arrays` for an array that waits, failed to start or is stopped.
 * problem: why (NULL: what is missing says it); since_s: wall clock. */
json_t *found_status_json(const struct found_array *found, const char *state,
                          const struct diag *problem, uint64_t since_s);
/* complete, degraded, stale, diverged, orphan, in use, refused */
const char *found_class(const struct found_array *found);
/* Is the file or device held by a process that writes it? */
bool found_in_use(const char *path);
