#include <stdio.h>

#include "cli/cmd.h"

const struct option_spec cmd_stop_options[] = {
    {"dry-run", NULL, "say what would happen, do nothing", 0},
    {NULL, NULL, NULL, 0},
};

int
cmd_stop(struct call *call)
{
    struct diag diag;
    json_t *result;
    bool dry_run = options_have(&call->options, "dry-run");
    json_t *args = json_pack("{s:s, s:b}", "name", call_operand(call, 0), "dry_run", (int)dry_run);
    call->changed = !dry_run; /* a stop that failed may have stopped something */
    if (call_daemon(call, "stop", args, &result, &diag) < 0) {
        call->changed = call->changed && diag.class == DIAG_FAILED;
        return call_fail(call, &diag);
    }
    if (!call->json)
        printf("%s %s: before: %s, after: stopped%s\n", dry_run ? "would stop" : "stopped",
               json_text(result, "name"), json_text(result, "before"),
               dry_run ? "" : " and marked clean");
    call_json(call, result);
    return 0;
}
