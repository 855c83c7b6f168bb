/* What sr5d was told: its command line, and a file of `key = value` lines with the same names. */
#pragma once

#include "cli/options.h"
#include "cli/runtime_dir.h"
#include "cli/specs.h"
#include "engine/io/member_dev.h"

enum degraded_policy { DEGRADED_NOW, DEGRADED_WAIT, DEGRADED_NEVER };

struct config {
    struct options options; /* owns the texts below */
    struct specs members;   /* not expanded: folders and globs are looked at again and again */
    char socket[RUNTIME_PATH_BYTES], control[RUNTIME_PATH_BYTES];
    bool own_runtime_dir; /* one of the sockets lies in it */
    uint32_t threads;
    uint64_t cache_bytes;
    enum io_engine io;
    bool stdio, read_only, help, version, verbose;
    enum degraded_policy degraded;
    uint32_t degraded_wait_s;
};

extern const struct option_spec config_options[];

/* Command line first, then the --config file for what it did not say (repeatable ones add up).
 * 0 or -EINVAL with *diag. */
MUST_CHECK int config_load(struct config *config, char *const *args, uint32_t count,
                           struct diag *diag);
void config_destroy(struct config *config);
/* "now", "wait", "never" */
bool degraded_parse(const char *text, enum degraded_policy *policy);
