/* sr5: creates, watches and repairs arrays.  The verbs are in verbs.c, one file each. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/msg.h"

#include "cli/call.h"
#include "cli/runtime_dir.h"

static int
unknown_verb(struct call *call, const char *name)
{
    char known[400];
    size_t at = 0;
    const struct verb *verb;
    for (unsigned i = 0; (verb = verb_at(i)) != NULL; i++)
        if (!(verb->flags & VERB_HIDDEN) && at < sizeof(known))
            at += (size_t)snprintf(known + at, sizeof(known) - at, " %s", verb->name);
    return call_usage(call, "unknown verb \"%s\"; known are%s", name, known);
}

static int
run_verb(struct call *call, char **args, uint32_t count)
{
    struct diag diag;
    char control[RUNTIME_PATH_BYTES];
    call->options.tables[0] = call->verb->options;
    call->options.tables[1] = common_options;
    int err = options_parse(&call->options, args, count, &diag);
    if (err < 0) {
        diag_fix(&diag, "sr5 %s --help", call->verb->name);
        return call_fail(call, &diag);
    }
    if (options_have(&call->options, "help")) {
        verb_usage(call->verb, stdout);
        return 0;
    }
    uint32_t given = call->options.operand_count;
    if (given < call->verb->operands_min || given > call->verb->operands_max)
        return call_usage(call, "sr5 %s takes: %s", call->verb->name,
                          call->verb->operands[0] != '\0' ? call->verb->operands : "nothing");
    runtime_dir_control(options_get(&call->options, "control"), control);
    call->control = control;
    return call->verb->run(call);
}

/* An error in the options is answered in JSON too, when that was asked for. */
static bool
wants_json(char **argv)
{
    for (char **arg = argv; *arg != NULL && strcmp(*arg, "--") != 0; arg++)
        if (strcmp(*arg, "--json") == 0)
            return true;
    return false;
}

int
main(int argc, char **argv)
{
    struct call call = {.json = wants_json(argv + 1)};
    (void)argc;
    signal(SIGPIPE, SIG_IGN); /* `sr5 list | head` must not look like a crash */
    msg_set_level(MSG_WARNING);
    const char *name = argv[0] != NULL ? argv[1] : NULL;
    if (name == NULL) {
        verbs_usage(stderr);
        return DIAG_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    call.verb = verb_find(name);
    if (call.verb == NULL)
        return unknown_verb(&call, name);
    uint32_t count = 0;
    while (argv[2 + count] != NULL)
        count++;
    int code = run_verb(&call, argv + 2, count);
    if (fflush(stdout) != 0 && code == 0)
        code = DIAG_FAILED; /* what was asked for did not arrive */
    options_destroy(&call.options);
    return code;
}
