/* The daemon's side of the verbs: what sr5 asks over the control socket. */
#pragma once

#include "cli/arrays.h"
#include "cli/ctl_server.h"

/* Answers `call`, now or when the work is done.  arrays is a struct arrays: a ctl_handler's ctx. */
void ctl_verbs_handle(void *arrays, struct ctl_call *call, const char *verb, const json_t *args);
