#include <inttypes.h>
#include <stdio.h>

#include "cli/cmd.h"
#include "cli/format.h"

static void
print_latency(const json_t *latency)
{
    const char *op;
    json_t *numbers;
    struct table table;
    table_init(&table, 6);
    const char *const titles[] = {"LATENCY us", "COUNT", "P50", "P90", "P99", "P99.9"};
    for (size_t t = 0; t < ARRAY_LEN(titles); t++)
        table_cell(&table, "%s", titles[t]);
    void *iter = json_object_iter((json_t *)(uintptr_t)latency);
    for (; iter != NULL; iter = json_object_iter_next((json_t *)(uintptr_t)latency, iter)) {
        op = json_object_iter_key(iter);
        numbers = json_object_iter_value(iter);
        if (json_number(numbers, "count") == 0)
            continue;
        table_cell(&table, "%s", op);
        for (const char *const *key =
                 (const char *const[]){"count", "p50", "p90", "p99", "p99_9", NULL};
             *key != NULL; key++)
            table_cell(&table, "%" PRIu64, json_number(numbers, *key));
    }
    table_print(&table, stdout, "  ");
    table_destroy(&table);
}

int
cmd_stats(struct call *call)
{
    struct diag diag;
    json_t *stats;
    if (call_daemon(call, "stats", json_pack("{s:s}", "name", call_operand(call, 0)), &stats,
                    &diag) < 0)
        return call_fail(call, &diag);
    if (call->json) {
        call_json(call, stats);
        return 0;
    }
    struct table table;
    table_init(&table, 2);
    const char *key;
    json_t *value;
    json_object_foreach (stats, key, value) {
        if (!json_is_integer(value))
            continue;
        table_cell(&table, "%s", key);
        table_cell(&table, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    }
    printf("%s: %s, since it was started\n", json_text(stats, "state"), json_text(stats, "name"));
    table_print(&table, stdout, "  ");
    print_latency(json_object_get(stats, "latency_us"));
    table_destroy(&table);
    json_decref(stats);
    return 0;
}
