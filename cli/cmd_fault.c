#include <stdio.h>

#include "cli/cmd.h"

int
cmd_fault(struct call *call)
{
    struct diag diag;
    json_t *result;
    json_t *args = json_pack("{s:s, s:s, s:s}", "name", call_operand(call, 0), "member",
                             call_operand(call, 1), "rules", call_operand(call, 2));
    if (call_daemon(call, "fault", args, &result, &diag) < 0)
        return call_fail(call, &diag);
    if (!call_json(call, result))
        printf("done\n");
    return 0;
}
