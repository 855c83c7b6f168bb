#include <string.h>

#include "cli/cmd.h"

int
cmd_help(struct call *call)
{
    if (call->options.operand_count == 0) {
        if (!call->json) {
            verbs_usage(stdout);
            return 0;
        }
        json_t *list = json_array();
        const struct verb *verb;
        for (unsigned i = 0; (verb = verb_at(i)) != NULL; i++)
            if (!(verb->flags & VERB_HIDDEN))
                json_array_append_new(list,
                                      json_pack("{s:s, s:s, s:s}", "name", verb->name, "operands",
                                                verb->operands, "summary", verb->summary));
        call_json(call, json_pack("{s:o}", "verbs", list));
        return 0;
    }
    const struct verb *verb = verb_find(call_operand(call, 0));
    if (verb == NULL)
        return call_usage(call, "there is no verb \"%s\"", call_operand(call, 0));
    if (!call_json(call, json_pack("{s:s, s:s, s:s}", "name", verb->name, "operands",
                                   verb->operands, "summary", verb->summary)))
        verb_usage(verb, stdout);
    return 0;
}
