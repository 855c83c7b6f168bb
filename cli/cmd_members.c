#include <inttypes.h>
#include <stdio.h>

#include "cli/cmd.h"
#include "cli/format.h"

static void
print_member(struct table *table, const json_t *member)
{
    char read[FORMAT_BYTES], written[FORMAT_BYTES];
    json_int_t role = json_integer_value(json_object_get(member, "role"));
    table_cell(table, "%s", json_text(member, "state"));
    if (role >= 0)
        table_cell(table, "%" JSON_INTEGER_FORMAT, role);
    else
        table_cell(table, "-");
    table_cell(table, "%.8s", json_text(member, "id"));
    table_cell(table, "%" PRIu64 "/%" PRIu64 "/%" PRIu64, json_number(member, "reads"),
               json_number(member, "writes"), json_number(member, "flushes"));
    table_cell(table, "%s", json_size(member, "read_bytes", read));
    table_cell(table, "%s", json_size(member, "write_bytes", written));
    table_cell(table, "%" PRIu64 "/%" PRIu64 "/%" PRIu64, json_number(member, "read_errors"),
               json_number(member, "write_errors"), json_number(member, "repaired"));
    table_cell(table, "%s", json_text(member, "path"));
}

int
cmd_members(struct call *call)
{
    static const char *const titles[] = {
        "STATE", "ROLE", "ID", "R/W/F", "READ", "WRITTEN", "ERRORS R/W/FIXED", "PATH"};
    struct diag diag;
    json_t *result;
    if (call_daemon(call, "members", json_pack("{s:s}", "name", call_operand(call, 0)), &result,
                    &diag) < 0)
        return call_fail(call, &diag);
    if (call->json) {
        call_json(call, result);
        return 0;
    }
    struct table table;
    size_t i;
    json_t *member;
    table_init(&table, ARRAY_LEN(titles));
    for (size_t t = 0; t < ARRAY_LEN(titles); t++)
        table_cell(&table, "%s", titles[t]);
    json_array_foreach (json_object_get(result, "members"), i, member) {
        print_member(&table, member);
    }
    table_print(&table, stdout, "");
    table_destroy(&table);
    json_decref(result);
    return 0;
}
