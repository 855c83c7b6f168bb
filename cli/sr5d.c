/* sr5d: serves arrays over NBD.  daemon.c puts it together. */
#include <stdio.h>
#include <string.h>

#include "engine/base/msg.h"

#include "cli/daemon.h"
#include "cli/format.h"

static void
usage(void)
{
    struct table table;
    table_init(&table, 2);
    for (const struct option_spec *s = config_options; s->name != NULL; s++) {
        table_cell(&table, "--%s%s%s", s->name, s->arg != NULL ? " " : "",
                   s->arg != NULL ? s->arg : "");
        table_cell(&table, "%s", s->help);
    }
    printf("usage: sr5d [options]\n"
           "serves the arrays on --members as NBD exports; sr5(8) talks to it\n");
    table_print(&table, stdout, "  ");
    table_destroy(&table);
}

static int
fail(const struct diag *diag)
{
    fprintf(stderr, "sr5d: %s: %s\n", diag->code, diag->message);
    for (unsigned i = 0; i < DIAG_FIX_MAX && diag->fix[i][0] != '\0'; i++)
        fprintf(stderr, "fix: %s\n", diag->fix[i]);
    return (int)diag->class;
}

int
main(int argc, char **argv)
{
    struct config config;
    struct diag diag;
    int code = 0;
    if (argc < 1)
        return DIAG_USAGE;
    if (config_load(&config, argv + 1, (uint32_t)argc - 1, &diag) < 0)
        code = fail(&diag);
    else if (config.help)
        usage();
    else if (config.version)
        printf("sr5d %s\n", SR5_VERSION);
    else {
        msg_set_level(config.verbose ? MSG_DEBUG : MSG_INFO);
        if (daemon_run(&config, &diag) < 0)
            code = fail(&diag);
    }
    config_destroy(&config);
    return code;
}
