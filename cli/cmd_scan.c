/* sr5 scan: which arrays lie among these files, devices and folders, and what would come of them.
 * Reads only, takes no locks; nothing is started. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cmd.h"
#include "cli/format.h"
#include "cli/found_json.h"
#include "cli/specs.h"

static void
print_array(const json_t *array)
{
    char size[FORMAT_BYTES];
    struct table table;
    size_t i;
    json_t *member;
    printf("%s %s: %s, %s, %s, uuid %s\n", json_text(array, "class"), json_text(array, "name"),
           json_text(array, "level"), json_size(array, "size_bytes", size),
           json_text(array, "format"), json_text(array, "uuid"));
    const json_t *error = json_object_get(array, "error");
    if (json_is_object(error))
        printf("  %s: %s\n", json_text(error, "code"), json_text(error, "message"));
    table_init(&table, 4);
    json_array_foreach (json_object_get(array, "members"), i, member) {
        json_int_t role = json_integer_value(json_object_get(member, "role"));
        table_cell(&table, "%s", json_text(member, "class"));
        if (role >= 0)
            table_cell(&table, "role %" JSON_INTEGER_FORMAT, role);
        else
            table_cell(&table, "-");
        table_cell(&table, "%s", json_text(member, "path"));
        table_cell(&table, "%s%s", json_text(member, "why"),
                   json_is_true(json_object_get(member, "in_use")) ? " (in use)" : "");
    }
    table_print(&table, stdout, "  ");
    table_destroy(&table);
    if (json_text(array, "next")[0] != '\0')
        printf("  next: %s\n", json_text(array, "next"));
}

static void
print_scan(const json_t *arrays, const json_t *unreadable)
{
    size_t i;
    json_t *entry;
    json_array_foreach (arrays, i, entry) {
        print_array(entry);
    }
    if (json_array_size(arrays) == 0)
        printf("nothing found: no member of any array is there\n");
    json_array_foreach (unreadable, i, entry) {
        printf("unreadable %s: %s\n", json_text(entry, "path"), json_text(entry, "message"));
    }
}

int
cmd_scan(struct call *call)
{
    struct specs specs = {0};
    struct scan scan = {0};
    struct diag diag;
    for (uint32_t i = 0; i < call->options.operand_count; i++)
        specs_expand(&specs, call_operand(call, i));
    if (scan_specs(&scan, (const char *const *)specs.list, specs.count, NULL) < 0) {
        specs_destroy(&specs);
        (void)diag_set(&diag, DIAG_FAILED, "E_MEMORY", -ENOMEM, "not enough memory to scan");
        return call_fail(call, &diag);
    }
    json_t *arrays = json_array(), *unreadable = json_array();
    for (uint32_t i = 0; i < scan.array_count; i++)
        json_array_append_new(arrays, found_array_json(&scan.arrays[i]));
    for (uint32_t i = 0; i < scan.member_count; i++)
        if (scan.members[i].err < 0)
            json_array_append_new(unreadable, json_pack("{s:o, s:s, s:o}", "path",
                                                        json_bytes(scan.members[i].spec), "code",
                                                        scan.members[i].diag.code, "message",
                                                        json_bytes(scan.members[i].diag.message)));
    if (!call->json)
        print_scan(arrays, unreadable);
    int code = json_array_size(unreadable) != 0 && scan.array_count == 0 ? DIAG_FAILED : 0;
    call_json(call, json_pack("{s:o, s:o}", "arrays", arrays, "unreadable", unreadable));
    scan_destroy(&scan);
    specs_destroy(&specs);
    return code;
}
