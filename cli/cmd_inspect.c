/* sr5 inspect: everything the metadata of a member says, damaged or not, md's and sr5's.
 * Reads only; needs no daemon, no rights but to read, and no array that works. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/bitset.h"

#include "cli/cmd.h"
#include "cli/format.h"
#include "cli/inspect_json.h"
#include "cli/specs.h"
#include "engine/assemble.h"

/* The class of a member among the members given with it. */
static const struct decision_member *
decision_of(const struct scan *scan, const struct found_member *member)
{
    for (uint32_t a = 0; a < scan->array_count; a++) {
        const struct found_array *found = &scan->arrays[a];
        for (uint32_t i = 0; found->err == 0 && i < found->decision.member_count; i++)
            if (found->members[found->decision.members[i].candidate] == member)
                return &found->decision.members[i];
    }
    return NULL;
}

static void
print_value(struct table *table, const char *indent, const char *key, const json_t *value)
{
    char size[FORMAT_BYTES];
    size_t len = strlen(key);
    table_cell(table, "%s%s", indent, key);
    if (json_is_string(value)) {
        table_cell(table, "%s", json_string_value(value));
    } else if (json_is_boolean(value)) {
        table_cell(table, "%s", json_is_true(value) ? "yes" : "no");
    } else if (json_is_integer(value) && len > 6 && strcmp(key + len - 6, "_bytes") == 0) {
        table_cell(table, "%" JSON_INTEGER_FORMAT " (%s)", json_integer_value(value),
                   size_format((uint64_t)json_integer_value(value), size));
    } else {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        table_cell(table, "%s", text != NULL ? text : "");
        free(text);
    }
}

static void
print_section(struct table *table, const char *title, const json_t *section)
{
    if (!json_is_object(section))
        return;
    table_cell(table, "%s", title);
    table_cell(table, "%s", "");
    const char *key;
    json_t *value;
    json_t *mutable_section = json_deep_copy(section);
    json_object_foreach (mutable_section, key, value) {
        print_value(table, "  ", key, value);
    }
    json_decref(mutable_section);
}

static void
print_member(const json_t *member)
{
    struct table table;
    size_t i;
    json_t *damage;
    printf("%s %s", json_text(member, "state"), json_text(member, "path"));
    if (json_text(member, "class")[0] != '\0')
        printf(": %s", json_text(member, "class"));
    if (json_text(member, "why")[0] != '\0')
        printf(" (%s)", json_text(member, "why"));
    putchar('\n');
    json_array_foreach (json_object_get(member, "damage"), i, damage) {
        printf("  %s: %s\n", json_text(damage, "what"), json_text(damage, "message"));
    }
    table_init(&table, 2);
    print_section(&table, "superblock (md)", json_object_get(member, "super"));
    print_section(&table, "bitmap (md)", json_object_get(member, "bitmap"));
    print_section(&table, "sr5 area", json_object_get(member, "area"));
    table_print(&table, stdout, "  ");
    table_destroy(&table);
}

int
cmd_inspect(struct call *call)
{
    struct specs specs = {0};
    struct scan scan = {0};
    struct diag diag;
    for (uint32_t i = 0; i < call->options.operand_count; i++)
        specs_expand(&specs, call_operand(call, i));
    int err = scan_specs(&scan, (const char *const *)specs.list, specs.count, NULL);
    if (err < 0) {
        specs_destroy(&specs);
        (void)diag_set(&diag, DIAG_FAILED, "E_MEMORY", -ENOMEM, "not enough memory to inspect");
        return call_fail(call, &diag);
    }
    json_t *members = json_array();
    int code = 0;
    for (uint32_t i = 0; i < scan.member_count; i++) {
        json_t *member = inspect_json(&scan.members[i], decision_of(&scan, &scan.members[i]));
        if (strcmp(json_text(member, "state"), "unreadable") == 0)
            code = DIAG_FAILED;
        else if (strcmp(json_text(member, "state"), "damaged") == 0 && code == 0)
            code = DIAG_DEGRADED;
        if (!call->json)
            print_member(member);
        json_array_append_new(members, member);
    }
    if (scan.member_count == 1 && scan.members[0].err < 0)
        code = call_fail(call, &scan.members[0].diag);
    else
        call_json(call, json_pack("{s:O}", "members", members));
    json_decref(members);
    scan_destroy(&scan);
    specs_destroy(&specs);
    return code;
}
