/* The completion for bash, out of the table; cli/sr5.bash-completion is its output. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

static void
print_values(const struct option_spec *specs)
{
    for (; specs != NULL && specs->name != NULL; specs++) {
        if (!option_is_choice(specs->arg))
            continue;
        printf("    --%s) words='", specs->name);
        for (const char *c = specs->arg; *c != '\0'; c++)
            putchar(*c == '|' ? ' ' : *c);
        printf("' ;;\n");
    }
}

static void
print_names(const struct option_spec *specs)
{
    for (; specs != NULL && specs->name != NULL; specs++)
        if (!(specs->flags & OPTION_HIDDEN))
            printf(" --%s", specs->name);
}

int
cmd_completion(struct call *call)
{
    const struct verb *verb;
    (void)call;
    printf("# bash completion for sr5; made by `sr5 completion`, do not edit\n"
           "_sr5()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=''\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        words='");
    for (unsigned i = 0; (verb = verb_at(i)) != NULL; i++)
        if (!(verb->flags & VERB_HIDDEN))
            printf("%s%s", i > 1 ? " " : "", verb->name);
    printf("'\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
           "        return\n"
           "    fi\n"
           "    case $prev in\n");
    for (unsigned i = 0; (verb = verb_at(i)) != NULL; i++)
        print_values(verb->options);
    printf("    *)\n"
           "        case ${COMP_WORDS[1]} in\n");
    for (unsigned i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (verb->flags & VERB_HIDDEN)
            continue;
        printf("        %s) words='", verb->name);
        print_names(verb->options);
        print_names(common_options);
        printf("' ;;\n");
    }
    printf(
        "        esac\n"
        "        ;;\n"
        "    esac\n"
        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"; compgen -f -- \"$cur\")\n"
        "}\n"
        "complete -o filenames -F _sr5 sr5\n");
    return 0;
}
