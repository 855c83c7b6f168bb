/* sr5d put together: loops, member I/O, the NBD server, the control socket and the arrays. */
#pragma once

#include "cli/config.h"

/* Run until a signal (or, with --stdio, the client) ends it.  0, or negative with *diag. */
MUST_CHECK int daemon_run(const struct config *config, struct diag *diag);
