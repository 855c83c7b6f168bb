#include "cli/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/check.h"

#include "cli/format.h"

static const struct option_spec *
find(const struct options *options, const char *name, size_t name_len)
{
    for (unsigned t = 0; t < ARRAY_LEN(options->tables); t++)
        for (const struct option_spec *s = options->tables[t]; s != NULL && s->name != NULL; s++)
            if (strlen(s->name) == name_len && memcmp(s->name, name, name_len) == 0)
                return s;
    return NULL;
}

static void
list_known(const struct options *options, char *out, size_t out_bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (unsigned t = 0; t < ARRAY_LEN(options->tables); t++)
        for (const struct option_spec *s = options->tables[t]; s != NULL && s->name != NULL; s++)
            if (!(s->flags & OPTION_HIDDEN) && at < out_bytes)
                at += (size_t)snprintf(out + at, out_bytes - at, " --%s", s->name);
}

bool
option_is_choice(const char *arg)
{
    return arg != NULL && islower((unsigned char)arg[0]) && strchr(arg, '|') != NULL;
}

/* Is `value` one of "now|wait|never"?  Anything goes where arg is not such a list. */
static bool
value_allowed(const char *arg, const char *value)
{
    if (!option_is_choice(arg))
        return true;
    size_t len = strlen(value);
    for (const char *word = arg;; word++) {
        size_t word_len = strcspn(word, "|");
        if (word_len == len && memcmp(word, value, len) == 0)
            return true;
        word += word_len;
        if (*word == '\0')
            return false;
    }
}

static int
add_value(struct options *options, const struct option_spec *spec, const char *value,
          const char *where, struct diag *diag)
{
    if (!(spec->flags & OPTION_REPEAT) && options_have(options, spec->name))
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "%s%s is given twice", where,
                        spec->name);
    if (spec->arg != NULL && !value_allowed(spec->arg, value))
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "%s%s is one of %s, not \"%s\"",
                        where, spec->name, spec->arg, value);
    char *copy = strdup(value);
    void *grown = realloc(options->values, (options->value_count + 1) * sizeof(*options->values));
    check(copy != NULL && grown != NULL);
    options->values = grown;
    options->values[options->value_count++] = (struct option_value){spec, copy};
    return 0;
}

static int
unknown(const struct options *options, const char *what, struct diag *diag)
{
    char known[400];
    list_known(options, known, sizeof(known));
    return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "unknown option %s; known are%s", what,
                    known);
}

/* One argument that starts with "--".  *next is the argument after it (NULL: none); *used_next is
 * set when it was taken as the value. */
static int
parse_option(struct options *options, const char *text, const char *next, bool *used_next,
             struct diag *diag)
{
    const char *equals = strchr(text, '=');
    size_t name_len = equals != NULL ? (size_t)(equals - text) - 2 : strlen(text) - 2;
    const struct option_spec *spec = find(options, text + 2, name_len);
    if (spec == NULL)
        return unknown(options, text, diag);
    if (spec->arg == NULL && equals != NULL)
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "--%s takes no value", spec->name);
    if (spec->arg == NULL)
        return add_value(options, spec, "", "--", diag);
    if (equals == NULL && next == NULL)
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "--%s needs a value: %s", spec->name,
                        spec->arg);
    *used_next = equals == NULL;
    return add_value(options, spec, equals != NULL ? equals + 1 : next, "--", diag);
}

int
options_parse(struct options *options, char *const *args, uint32_t count, struct diag *diag)
{
    bool only_operands = false;
    options->operands = calloc(count + 1, sizeof(*options->operands));
    check(options->operands != NULL);
    for (uint32_t i = 0; i < count; i++) {
        const char *text = strcmp(args[i], "-h") == 0 ? "--help" : args[i];
        if (only_operands || text[0] != '-' || text[1] == '\0') {
            options->operands[options->operand_count++] = args[i];
        } else if (strcmp(text, "--") == 0) {
            only_operands = true;
        } else if (text[1] != '-') {
            return unknown(options, text, diag);
        } else {
            bool used_next = false;
            int err =
                parse_option(options, text, i + 1 < count ? args[i + 1] : NULL, &used_next, diag);
            if (err < 0)
                return err;
            i += used_next;
        }
    }
    return 0;
}

int
options_add(struct options *options, const char *name, const char *value, const char *where,
            struct diag *diag)
{
    const struct option_spec *spec = find(options, name, strlen(name));
    if (spec == NULL) {
        char known[400];
        list_known(options, known, sizeof(known));
        return diag_set(diag, DIAG_USAGE, "E_CONFIG", -EINVAL, "%sunknown key \"%s\"; known are%s",
                        where, name, known);
    }
    if (spec->arg == NULL) { /* a switch in a file: yes or no */
        if (strcmp(value, "no") == 0)
            return 0;
        if (strcmp(value, "yes") != 0)
            return diag_set(diag, DIAG_USAGE, "E_CONFIG", -EINVAL, "%s%s is yes or no, not \"%s\"",
                            where, name, value);
        value = "";
    }
    return add_value(options, spec, value, where, diag);
}

void
options_destroy(struct options *options)
{
    for (uint32_t i = 0; i < options->value_count; i++)
        free(options->values[i].value);
    free(options->values);
    free(options->operands);
    *options = (struct options){0};
}

const char *
options_nth(const struct options *options, const char *name, uint32_t n)
{
    check(find(options, name, strlen(name)) != NULL);
    for (uint32_t i = 0; i < options->value_count; i++)
        if (strcmp(options->values[i].spec->name, name) == 0 && n-- == 0)
            return options->values[i].value;
    return NULL;
}

const char *
options_get(const struct options *options, const char *name)
{
    return options_nth(options, name, 0);
}

bool
options_have(const struct options *options, const char *name)
{
    return options_get(options, name) != NULL;
}

int
options_size(const struct options *options, const char *name, uint64_t otherwise, uint64_t *bytes,
             struct diag *diag)
{
    const char *text = options_get(options, name);
    *bytes = otherwise;
    if (text == NULL || size_parse(text, bytes))
        return 0;
    return diag_set(
        diag, DIAG_USAGE, "E_USAGE", -EINVAL,
        "--%s: \"%s\" is not a size; write 65536, 64K, 64KiB (binary) or 64KB (decimal)", name,
        text);
}

int
options_number(const struct options *options, const char *name, uint64_t low, uint64_t high,
               uint64_t *number, struct diag *diag)
{
    const char *text = options_get(options, name);
    if (text == NULL)
        return 0;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low || value > high)
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL,
                        "--%s is a number from %llu to %llu, not \"%s\"", name,
                        (unsigned long long)low, (unsigned long long)high, text);
    *number = value;
    return 0;
}
