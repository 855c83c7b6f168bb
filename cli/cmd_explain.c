#include <stdio.h>
#include <string.h>

#include "engine/base/codes.h"

#include "cli/cmd.h"
#include "cli/format.h"

/* Print text in lines of at most 78 columns. */
static void
print_wrapped(const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t word = strcspn(text, " ");
        if (column != 0 && column + 1 + word > 78) {
            putchar('\n');
            column = 0;
        }
        printf("%s%.*s", column != 0 ? " " : "", (int)word, text);
        column += word + (column != 0);
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static int
explain_all(struct call *call)
{
    json_t *list = json_array();
    struct table table;
    const struct code_text *code;
    table_init(&table, 2);
    for (unsigned i = 0; (code = code_at(i)) != NULL; i++) {
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "code", code->code, "summary", code->summary));
        table_cell(&table, "%s", code->code);
        table_cell(&table, "%s", code->summary);
    }
    if (!call_json(call, json_pack("{s:o}", "codes", list)))
        table_print(&table, stdout, "");
    table_destroy(&table);
    return 0;
}

int
cmd_explain(struct call *call)
{
    if (call->options.operand_count == 0)
        return explain_all(call);
    const struct code_text *code = code_find(call_operand(call, 0));
    if (code == NULL)
        return call_usage(call, "there is no code \"%s\"; `sr5 explain` lists them all",
                          call_operand(call, 0));
    if (call_json(call, json_pack("{s:s, s:s, s:s}", "code", code->code, "summary", code->summary,
                                  "explanation", code->explanation)))
        return 0;
    printf("%s: %s\n", code->code, code->summary);
    print_wrapped(code->explanation);
    return 0;
}
