/* What an open array reports, as JSON (cli.md 3). */
#pragma once

#include <jansson.h>

#include "engine/array_state.h"

json_t *array_status_json(const struct array_status *status);
/* `members` of it, with the counters of each. */
json_t *array_members_json(const struct array_status *status);
json_t *array_stats_json(const struct array_status *status, const struct array_stats *stats);
