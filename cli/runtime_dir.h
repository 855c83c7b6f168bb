/* Where the sockets live (cli.md 2): /run/sr5d for root, $XDG_RUNTIME_DIR/sr5d or /tmp/sr5d-UID for
 * others. */
#pragma once

#include "engine/base/diag.h"

#define RUNTIME_PATH_BYTES 108 /* as long as a unix socket's name may be */

/* Its path, whether it exists or not; static storage. */
const char *runtime_dir(void);
/* Make it, mode 0700.  Refused (E_OPEN) when someone else owns it: /tmp is everybody's. */
MUST_CHECK int runtime_dir_make(struct diag *diag);
/* runtime_dir()/name. */
void runtime_dir_path(const char *name, char out[RUNTIME_PATH_BYTES]);
/* The control socket: --control, else $SR5_CONTROL, else control.sock there. `given` may be NULL.
 */
void runtime_dir_control(const char *given, char out[RUNTIME_PATH_BYTES]);
