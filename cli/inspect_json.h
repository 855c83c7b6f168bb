/* A member's metadata as JSON: an entry of sr5.inspect/1 `members`. */
#pragma once

#include <jansson.h>

#include "engine/assemble.h"

/* d: what the decision over its array made of it; NULL: none. */
json_t *inspect_json(const struct found_member *member, const struct decision_member *d);
