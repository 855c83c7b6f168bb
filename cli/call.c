#include "cli/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/check.h"

#include "cli/ctl_client.h"

const char *
call_operand(const struct call *call, uint32_t index)
{
    check_lt(index, call->options.operand_count);
    return call->options.operands[index];
}

json_t *
diag_json(const struct diag *diag, bool changed)
{
    json_t *fix = json_array();
    for (unsigned i = 0; i < DIAG_FIX_MAX && diag->fix[i][0] != '\0'; i++)
        json_array_append_new(fix, json_bytes(diag->fix[i]));
    json_t *error = json_pack("{s:s, s:o, s:o, s:b}", "code", diag->code, "message",
                              json_bytes(diag->message), "fix", fix, "changed", (int)changed);
    check(error != NULL);
    return error;
}

int
call_fail(const struct call *call, const struct diag *diag)
{
    check_ge(diag->class, DIAG_FAILED);
    if (call->json) {
        json_t *error = diag_json(diag, call->changed);
        json_object_set_new(error, "schema", json_string("sr5.error/1"));
        json_dumpf(error, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(error);
    }
    fprintf(stderr, "sr5: %s: %s\n", diag->code, diag->message);
    for (unsigned i = 0; i < DIAG_FIX_MAX && diag->fix[i][0] != '\0'; i++)
        fprintf(stderr, "fix: %s\n", diag->fix[i]);
    return (int)diag->class;
}

int
call_usage(const struct call *call, const char *format, ...)
{
    struct diag diag;
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)diag_set(&diag, DIAG_USAGE, "E_USAGE", -EINVAL, "%s", text);
    diag_fix(&diag, "sr5 %s%s--help", call->verb != NULL ? call->verb->name : "",
             call->verb != NULL ? " " : "");
    return call_fail(call, &diag);
}

bool
call_json(const struct call *call, json_t *result)
{
    if (!call->json) {
        json_decref(result);
        return false;
    }
    char schema[64];
    snprintf(schema, sizeof(schema), "sr5.%s/1", call->verb->name);
    json_t *answer = json_pack("{s:s}", "schema", schema);
    json_object_update(answer, result);
    json_dumpf(answer, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(answer);
    json_decref(result);
    return true;
}

int
call_daemon(const struct call *call, const char *verb, json_t *args, json_t **result,
            struct diag *diag)
{
    return ctl_client_ask(call->control, verb, args, result, diag);
}

int
call_array(const struct call *call, const char *name, json_t **array, struct diag *diag)
{
    json_t *status;
    int err = call_daemon(call, "status", json_pack("{s:s}", "name", name), &status, diag);
    if (err < 0)
        return err;
    *array = json_incref(json_array_get(json_object_get(status, "arrays"), 0));
    json_decref(status);
    if (*array == NULL)
        return diag_set(diag, DIAG_FAILED, "E_PROTOCOL", -EPROTO,
                        "the daemon's answer names no array");
    return 0;
}

int
call_confirm(const struct call *call, const char *name, const char *what, struct diag *diag)
{
    const char *given = options_get(&call->options, "confirm");
    char line[256] = "";
    if (given == NULL && isatty(STDIN_FILENO)) {
        fprintf(stderr, "This %s.\nType the array's name to go on: ", what);
        if (fgets(line, sizeof(line), stdin) != NULL)
            line[strcspn(line, "\n")] = '\0';
        given = line;
    }
    if (given != NULL && strcmp(given, name) == 0)
        return 0;
    int err = diag_set(diag, DIAG_REFUSED, "E_CONFIRM", -EPERM,
                       given == NULL ? "this %s; it needs --confirm %s"
                                     : "this %s; the name given is not %s",
                       what, name);
    diag_fix(diag, "repeat the command with --confirm %s", name);
    return err;
}
