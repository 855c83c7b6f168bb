/* The verbs' functions and options; each is in the file of its name, verbs.c lists them. */
#pragma once

#include "cli/call.h"

extern const struct option_spec cmd_create_options[], cmd_start_options[], cmd_stop_options[],
    cmd_status_options[], cmd_fail_options[];

int cmd_completion(struct call *call);
int cmd_cp(struct call *call);
int cmd_create(struct call *call);
int cmd_explain(struct call *call);
int cmd_fail(struct call *call);
int cmd_fault(struct call *call);
int cmd_help(struct call *call);
int cmd_inspect(struct call *call);
int cmd_list(struct call *call);
int cmd_members(struct call *call);
int cmd_scan(struct call *call);
int cmd_start(struct call *call);
int cmd_stats(struct call *call);
int cmd_status(struct call *call);
int cmd_stop(struct call *call);
int cmd_version(struct call *call);
