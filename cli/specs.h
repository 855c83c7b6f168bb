/* Lists of member specs: what people write (files, devices, folders, globs, each perhaps behind
 * fault:RULES:) made into single members, in a fixed order and without repeats. */
#pragma once

#include "engine/base/diag.h"

struct specs {
    char **list; /* NULL-terminated once there is one */
    uint32_t count;
};

/* A folder stands for the files and block devices in it, sorted, not those below and not hidden
 * ones; a glob for what it matches (perhaps nothing).  A plain path is kept though it does not
 * exist: a missing member is for others to judge. */
void specs_expand(struct specs *specs, const char *text);
void specs_add(struct specs *specs, const char *spec); /* as it stands; ignored when there */
bool specs_have(const struct specs *specs, const char *spec);
/* Do two specs lead to one file or device, by whatever paths? */
bool specs_same_file(const char *a, const char *b);
/* The path part of a spec made absolute, so that another process understands it. malloc'ed. */
char *specs_absolute(const char *spec);
void specs_destroy(struct specs *specs); /* accepts a zeroed one */
