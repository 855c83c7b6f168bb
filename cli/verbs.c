#include "cli/verbs.h"

#include <string.h>

#include "cli/cmd.h"
#include "cli/format.h"

const struct option_spec common_options[] = {
    {"json", NULL, "one JSON object on stdout, for programs", 0},
    {"control", "PATH", "the daemon's control socket (else $SR5_CONTROL, else the usual place)", 0},
    {"help", NULL, "what this verb does and takes", 0},
    {NULL, NULL, NULL, 0},
};

#define MANY UINT32_MAX

static const struct verb verbs[] = {
    {"completion", "", "prints the completion for bash", VERB_HIDDEN, 0, 0, NULL, cmd_completion},
    {"cp", "FROM TO", "copies NAME[:OFF[+LEN]] to a file, or a file to it; - is stdin or stdout",
     VERB_DAEMON, 2, 2, NULL, cmd_cp},
    {"create", "NAME MEMBER...", "makes an array on member files or devices; all or nothing", 0, 2,
     MANY, cmd_create_options, cmd_create},
    {"explain", "[CODE]", "says more about an error or problem code", 0, 0, 1, NULL, cmd_explain},
    {"fail", "NAME MEMBER", "drops a member from an array, for good", VERB_DAEMON, 2, 2,
     cmd_fail_options, cmd_fail},
    {"fault", "NAME MEMBER RULES", "changes the fault rules of a fault: member (for tests)",
     VERB_DAEMON | VERB_HIDDEN, 3, 3, NULL, cmd_fault},
    {"help", "[VERB]", "this list, or what one verb does", 0, 0, 1, NULL, cmd_help},
    {"inspect", "MEMBER...", "prints everything the metadata of members says, damaged or not", 0, 1,
     MANY, NULL, cmd_inspect},
    {"list", "", "lists the arrays of the daemon, one line each", VERB_DAEMON, 0, 0, NULL,
     cmd_list},
    {"members", "NAME", "lists the members of an array with their counters", VERB_DAEMON, 1, 1,
     NULL, cmd_members},
    {"scan", "PATH...", "lists the arrays found among files, devices and folders", 0, 1, MANY, NULL,
     cmd_scan},
    {"start", "NAME|UUID|PATH...", "assembles arrays and serves them", VERB_DAEMON, 1, MANY,
     cmd_start_options, cmd_start},
    {"stats", "NAME", "prints counters and latencies since the array started", VERB_DAEMON, 1, 1,
     NULL, cmd_stats},
    {"status", "[NAME]", "says what is wrong and what to do", VERB_DAEMON, 0, 1, cmd_status_options,
     cmd_status},
    {"stop", "NAME", "drains an array, marks it clean and stops it", VERB_DAEMON, 1, 1,
     cmd_stop_options, cmd_stop},
    {"version", "", "prints the versions of sr5 and of the daemon", 0, 0, 0, NULL, cmd_version},
};

const struct verb *
verb_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

const struct verb *
verb_at(unsigned index)
{
    return index < ARRAY_LEN(verbs) ? &verbs[index] : NULL;
}

static void
print_options(const struct option_spec *specs, FILE *to)
{
    struct table table;
    table_init(&table, 2);
    for (; specs != NULL && specs->name != NULL; specs++) {
        if (specs->flags & OPTION_HIDDEN)
            continue;
        table_cell(&table, "--%s%s%s", specs->name, specs->arg != NULL ? " " : "",
                   specs->arg != NULL ? specs->arg : "");
        table_cell(&table, "%s", specs->help);
    }
    table_print(&table, to, "  ");
    table_destroy(&table);
}

void
verb_usage(const struct verb *verb, FILE *to)
{
    fprintf(to, "usage: sr5 %s %s%s[options]\n%s %s%s.\n", verb->name, verb->operands,
            verb->operands[0] != '\0' ? " " : "", verb->name, verb->summary,
            verb->flags & VERB_DAEMON ? " (needs a running sr5d)" : "");
    print_options(verb->options, to);
    print_options(common_options, to);
}

void
verbs_usage(FILE *to)
{
    struct table table;
    table_init(&table, 3);
    for (unsigned i = 0; i < ARRAY_LEN(verbs); i++) {
        if (verbs[i].flags & VERB_HIDDEN)
            continue;
        table_cell(&table, "%s", verbs[i].name);
        table_cell(&table, "%s", verbs[i].operands);
        table_cell(&table, "%s", verbs[i].summary);
    }
    fprintf(to, "usage: sr5 VERB [ARRAY] [MEMBER...] [options]\n");
    table_print(&table, to, "  ");
    fprintf(to, "`sr5 VERB --help` says more; sr5(8) says everything.\n");
    table_destroy(&table);
}
