/* The registry of cache policies. */
#include "cache/policy.h"

#include <string.h>

static const struct policy *const policies[] = {
    &policy_writethrough,
    NULL,
};

const struct policy *
policy_find(const char *name)
{
    for (const struct policy *const *p = policies; *p != NULL; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    return NULL;
}

const struct policy *
policy_default(void)
{
    return &policy_writethrough;
}

const struct policy *const *
policy_all(void)
{
    return policies;
}
