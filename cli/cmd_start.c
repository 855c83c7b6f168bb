#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/specs.h"

const struct option_spec cmd_start_options[] = {
    {"degraded", "now|wait|never", "with a member missing: at once, after the daemon's wait, never",
     0},
    {"read-only", NULL, "serve for reading only; nothing is written to a member", 0},
    {"keep", "MEMBER", "when two sides have diverged: the one whose contents win", 0},
    {"dry-run", NULL, "say what would be started, start nothing", 0},
    {NULL, NULL, NULL, 0},
};

/* What could be a name goes as it is, and as the path it could also be. */
static json_t *
operands_json(const struct call *call)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < call->options.operand_count; i++) {
        const char *text = call_operand(call, i);
        char *path = specs_absolute(text);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:b}", "text", text, "path", path, "is_path",
                            strchr(text, '/') != NULL || strncmp(text, "fault:", 6) == 0));
        free(path);
    }
    return list;
}

static void
print_started(const json_t *arrays)
{
    size_t i;
    json_t *array;
    json_array_foreach (arrays, i, array) {
        const char *state = json_text(array, "state");
        printf("%s %s: %s\n", state, json_text(array, "name"), json_text(array, "text"));
        if (json_text(array, "next")[0] != '\0')
            printf("  next: %s\n", json_text(array, "next"));
    }
}

int
cmd_start(struct call *call)
{
    struct diag diag;
    json_t *result;
    const struct options *options = &call->options;
    json_t *args = json_pack("{s:o, s:b, s:b, s:s*}", "what", operands_json(call), "read_only",
                             (int)options_have(options, "read-only"), "dry_run",
                             (int)options_have(options, "dry-run"), "degraded",
                             options_get(options, "degraded"));
    if (options_have(options, "keep")) {
        char *keep = specs_absolute(options_get(options, "keep"));
        json_object_set_new(args, "keep", json_string(keep));
        free(keep);
    }
    if (call_daemon(call, "start", args, &result, &diag) < 0)
        return call_fail(call, &diag);
    const json_t *arrays = json_object_get(result, "arrays");
    int code = 0;
    size_t i;
    json_t *array;
    json_array_foreach (arrays, i, array) {
        const char *state = json_text(array, "state");
        bool open = strcmp(state, "waiting") != 0 && strcmp(state, "failed") != 0;
        if (!open)
            code = DIAG_OFFLINE;
        else if (code == 0 && strcmp(state, "degraded") == 0)
            code = DIAG_DEGRADED;
    }
    if (!call->json)
        print_started(arrays);
    call_json(call, result);
    return options_have(options, "dry-run") ? 0 : code;
}
