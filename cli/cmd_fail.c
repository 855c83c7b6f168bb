#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/specs.h"

const struct option_spec cmd_fail_options[] = {
    {"confirm", "NAME", "the array's name, where nobody can be asked", 0},
    {"dry-run", NULL, "check and print before and after, change nothing", 0},
    {NULL, NULL, NULL, 0},
};

static void
print_failed(const json_t *result, bool dry_run)
{
    printf("%s %s: member %s of %s dropped\n",
           dry_run ? "would be degraded" : json_text(result, "after"), json_text(result, "name"),
           json_text(result, "path"), json_text(result, "name"));
    printf("  before: %s, survives %" PRIu64 " more failures\n", json_text(result, "before"),
           json_number(result, "survivable_before"));
    printf("  after:  %s, survives %" PRIu64 " more failures\n", json_text(result, "after"),
           json_number(result, "survivable_after"));
}

int
cmd_fail(struct call *call)
{
    struct diag diag;
    json_t *array, *result;
    const char *member = call_operand(call, 1);
    bool dry_run = options_have(&call->options, "dry-run");
    if (call_array(call, call_operand(call, 0), &array, &diag) < 0)
        return call_fail(call, &diag);
    char what[400];
    snprintf(what, sizeof(what),
             "drops member %s of %s for good; only a full rebuild brings it back", member,
             json_text(array, "name"));
    int err = dry_run ? 0 : call_confirm(call, json_text(array, "name"), what, &diag);
    char *uuid = strdup(json_text(array, "uuid"));
    json_decref(array);
    char *path = strchr(member, '/') != NULL || access(member, F_OK) == 0 ? specs_absolute(member)
                                                                          : strdup(member);
    if (err == 0)
        err = call_daemon(call, "fail",
                          json_pack("{s:s, s:s, s:s, s:b}", "name", uuid, "member", member, "path",
                                    path, "dry_run", (int)dry_run),
                          &result, &diag);
    free(uuid);
    free(path);
    if (err < 0)
        return call_fail(call, &diag);
    if (!call->json)
        print_failed(result, dry_run);
    call_json(call, result);
    return 0;
}
