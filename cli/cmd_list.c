#include <stdio.h>

#include "cli/cmd.h"
#include "cli/format.h"

int
cmd_list(struct call *call)
{
    struct diag diag;
    json_t *result;
    if (call_daemon(call, "list", NULL, &result, &diag) < 0)
        return call_fail(call, &diag);
    if (call->json) {
        call_json(call, result);
        return 0;
    }
    size_t i;
    json_t *array;
    struct table table;
    table_init(&table, 6);
    json_array_foreach (json_object_get(result, "arrays"), i, array) {
        char size[FORMAT_BYTES];
        table_cell(&table, "%s", json_text(array, "state"));
        table_cell(&table, "%s", json_text(array, "name"));
        table_cell(&table, "%s", json_text(array, "level"));
        table_cell(&table, "%s", json_size(array, "size_bytes", size));
        table_cell(&table, "%llu/%llu members",
                   (unsigned long long)json_number(array, "members_online"),
                   (unsigned long long)json_number(array, "members_total"));
        table_cell(&table, "%s", json_text(array, "uuid"));
    }
    if (table.cell_count == 0)
        printf(
            "stopped: the daemon knows no array; `sr5 scan PATH` looks, `sr5 start PATH` serves\n");
    table_print(&table, stdout, "");
    table_destroy(&table);
    json_decref(result);
    return 0;
}
