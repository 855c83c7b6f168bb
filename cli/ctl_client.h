/* Asking the daemon: one JSON object out, one back, over its control socket. */
#pragma once

#include <jansson.h>

#include "engine/base/diag.h"

/* Blocks until the daemon has answered.  0 and *result (a new reference); else negative with *diag:
 * E_NO_DAEMON, E_PROTOCOL, or what the daemon refused.  Takes args over (NULL: none). */
MUST_CHECK int ctl_client_ask(const char *path, const char *verb, json_t *args, json_t **result,
                              struct diag *diag);
