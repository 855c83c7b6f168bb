#include <stdio.h>

#include "cli/cmd.h"

int
cmd_version(struct call *call)
{
    struct diag diag;
    json_t *daemon;
    if (call_daemon(call, "version", NULL, &daemon, &diag) < 0)
        daemon = json_null(); /* no daemon is no error here */
    if (call_json(call, json_pack("{s:s, s:O}", "version", SR5_VERSION, "daemon", daemon))) {
        json_decref(daemon);
        return 0;
    }
    printf("sr5 %s\n", SR5_VERSION);
    if (json_is_object(daemon))
        printf("sr5d %s on %s\n", json_text(daemon, "version"), call->control);
    json_decref(daemon);
    return 0;
}
