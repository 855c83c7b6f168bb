/* sr5 status: the state, what is wrong, what to do next.  Read at three in the morning, so: the
 * word that matters first, one line where all is well, a command to type where it is not. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/format.h"

const struct option_spec cmd_status_options[] = {
    {"problems", NULL, "only what is wrong", 0},
    {"watch", NULL, "again every two seconds, until Ctrl-C", 0},
    {NULL, NULL, NULL, 0},
};

static bool
is_problem(const json_t *problem)
{
    return strcmp(json_text(problem, "severity"), "info") != 0;
}

static bool
has_problems(const json_t *array)
{
    size_t i;
    json_t *problem;
    json_array_foreach (json_object_get(array, "problems"), i, problem) {
        if (is_problem(problem))
            return true;
    }
    return false;
}

static int
state_exit(const char *state, bool problems)
{
    if (strcmp(state, "failed") == 0 || strcmp(state, "waiting") == 0 ||
        strcmp(state, "stopped") == 0)
        return DIAG_OFFLINE;
    if (strcmp(state, "degraded") == 0 || strcmp(state, "rebuilding") == 0 || problems)
        return DIAG_DEGRADED;
    return 0;
}

static void
print_headline(const json_t *array)
{
    char size[FORMAT_BYTES];
    const char *state = json_text(array, "state");
    uint64_t online = json_number(array, "members_online");
    uint64_t total = json_number(array, "members_total");
    uint64_t survives = json_number(array, "failures_survivable");
    printf("%s %s: %s, %s, %" PRIu64 " of %" PRIu64 " members", state, json_text(array, "name"),
           json_text(array, "level"), json_size(array, "size_bytes", size), online, total);
    if (strcmp(state, "waiting") == 0 || strcmp(state, "stopped") == 0 ||
        strcmp(state, "failed") == 0)
        printf("; nobody is served\n");
    else if (survives == 0 && strcmp(json_text(array, "level"), "raid0") == 0)
        printf("; no redundancy\n");
    else if (survives == 0)
        printf("; THE NEXT FAILURE LOSES DATA\n");
    else
        printf("; survives %" PRIu64 " more failure%s\n", survives, survives == 1 ? "" : "s");
}

static void
print_problem(const json_t *problem)
{
    size_t i;
    json_t *fix;
    const char *member = json_text(problem, "member"), *text = json_text(problem, "text");
    if (strncmp(text, member, strlen(member)) == 0)
        member = ""; /* the text begins with it */
    printf("  %s %s%s%s: %s\n", json_text(problem, "severity"), json_text(problem, "code"),
           member[0] != '\0' ? " " : "", member, text);
    json_array_foreach (json_object_get(problem, "fix"), i, fix) {
        printf("    do: %s\n", json_string_value(fix) != NULL ? json_string_value(fix) : "");
    }
}

static void
print_jobs(const json_t *array)
{
    size_t i;
    json_t *job;
    json_array_foreach (json_object_get(array, "jobs"), i, job) {
        char rate[FORMAT_BYTES];
        printf("  %s %.1f%%, %s/s, %" PRIu64 " s to go\n", json_text(job, "kind"),
               json_number_value(json_object_get(job, "percent")),
               json_size(job, "rate_bytes_s", rate), json_number(job, "eta_s"));
    }
}

static void
print_array(const json_t *array, bool problems_only)
{
    size_t i;
    json_t *problem;
    if (problems_only && state_exit(json_text(array, "state"), has_problems(array)) == 0)
        return;
    print_headline(array);
    json_array_foreach (json_object_get(array, "problems"), i, problem) {
        if (is_problem(problem) || !problems_only)
            print_problem(problem);
    }
    if (!problems_only)
        print_jobs(array);
}

/* The status of everything or of one array; the exit code says how bad it is. */
static int
show(struct call *call)
{
    struct diag diag;
    json_t *args = json_object(), *result;
    if (call->options.operand_count == 1)
        json_object_set_new(args, "name", json_string(call_operand(call, 0)));
    if (call_daemon(call, "status", args, &result, &diag) < 0)
        return call_fail(call, &diag);
    bool problems = false;
    size_t i;
    json_t *array;
    json_array_foreach (json_object_get(result, "arrays"), i, array) {
        problems = problems || has_problems(array);
        if (!call->json)
            print_array(array, options_have(&call->options, "problems"));
    }
    const char *worst = json_text(result, "worst");
    int code = state_exit(worst, problems);
    if (!call->json && json_array_size(json_object_get(result, "arrays")) == 0)
        printf("stopped: the daemon serves no array\n"
               "    do: sr5 scan PATH, then sr5 start NAME, or give sr5d --members PATH\n");
    else if (!call->json && options_have(&call->options, "problems") && code == 0)
        printf("%s: no problems\n", worst);
    call_json(call, result);
    return code;
}

int
cmd_status(struct call *call)
{
    if (!options_have(&call->options, "watch"))
        return show(call);
    if (call->json)
        return call_usage(call, "--watch and --json do not go together: repeat the command");
    for (;;) {
        if (isatty(STDOUT_FILENO))
            printf("\033[H\033[2J");
        int code = show(call);
        if (fflush(stdout) != 0 || code == DIAG_NO_DAEMON)
            return code;
        sleep(2);
    }
}
