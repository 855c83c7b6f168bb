#include "engine/io/io_fault_rules.h"

#include <ctype.h>
#include <string.h>

#include "engine/base/units.h"

enum part { NEVER, MAY, MUST };

/* The grammar, a row a rule. */
static const struct grammar {
    const char *name;
    enum part range; /* @OFF+LEN */
    enum part value; /* =N */
    uint64_t default_value;
} grammar[FAULT_KIND_COUNT] = {
    [FAULT_EIO_READ] = {"eio-read", MAY, NEVER, 0},
    [FAULT_EIO_WRITE] = {"eio-write", MAY, NEVER, 0},
    [FAULT_EIO_FLUSH] = {"eio-flush", NEVER, NEVER, 0},
    [FAULT_DELAY] = {"delay", NEVER, MUST, 0},
    [FAULT_HANG] = {"hang", NEVER, NEVER, 0},
    [FAULT_GONE] = {"gone", NEVER, NEVER, 0},
    [FAULT_SHORT] = {"short", NEVER, MAY, MIB(1)},
    [FAULT_ENOSPC] = {"enospc", MAY, NEVER, 0},
    [FAULT_FLIP] = {"flip", MUST, NEVER, 0},
};

#define KNOWN                                                                                      \
    "eio-read[@OFF+LEN], eio-write[@OFF+LEN], eio-flush, delay=MS, hang, gone, short[=BYTES], "    \
    "enospc[@OFF+LEN], flip@OFF[+LEN]"

/* A delay of more than an hour is a hang. */
#define DELAY_MS_MAX UINT64_C(3600000)

static int
refuse(struct diag *diag, const char *rule, size_t len, const char *why)
{
    diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "fault rule \"%.*s\" %s", (int)MIN(len, 64),
             rule, why);
    diag_fix(diag, "rules are: " KNOWN);
    return -EINVAL;
}

/* K, M, G, T, P are binary, also with iB; with B alone they are decimal. */
static bool
parse_unit(const char **at, uint64_t *unit)
{
    static const char letters[] = "KMGTP";
    const char *letter = strchr(letters, toupper((unsigned char)**at));
    *unit = 1;
    if (**at == '\0' || letter == NULL)
        return true;
    ++*at;
    bool decimal = **at == 'B';
    if (decimal)
        ++*at;
    else if (strncmp(*at, "iB", 2) == 0)
        *at += 2;
    for (const char *l = letters; l <= letter; l++)
        *unit *= decimal ? 1000 : 1024;
    return true;
}

/* Takes a number with its unit from *at. */
static bool
parse_number(const char **at, uint64_t *number)
{
    if (!isdigit((unsigned char)**at))
        return false;
    char *end;
    errno = 0;
    uint64_t digits = strtoull(*at, &end, 0), unit;
    *at = end;
    return errno == 0 && parse_unit(at, &unit) && mul_ok(digits, unit, number);
}

static bool
parse_range(struct fault_rule *rule, const char **at)
{
    uint64_t end;
    if (!parse_number(at, &rule->off_bytes))
        return false;
    rule->len_bytes = 1;
    if (**at == '+') {
        ++*at;
        if (!parse_number(at, &rule->len_bytes))
            return false;
    }
    return rule->len_bytes > 0 && add_ok(rule->off_bytes, rule->len_bytes, &end);
}

static const struct grammar *
find_grammar(const char *name, size_t len)
{
    for (uint32_t i = 0; i < FAULT_KIND_COUNT; i++)
        if (strlen(grammar[i].name) == len && strncmp(grammar[i].name, name, len) == 0)
            return &grammar[i];
    return NULL;
}

static int
parse_rule(struct fault_rule *rule, const char *text, size_t len, struct diag *diag)
{
    size_t name_len = strcspn(text, "@=,");
    const struct grammar *g = find_grammar(text, name_len);
    if (g == NULL)
        return refuse(diag, text, len, "is not known");
    const char *at = text + name_len;
    *rule = (struct fault_rule){
        .kind = (enum fault_kind)(g - grammar), .value = g->default_value, .len_bytes = UINT64_MAX};
    bool has_range = *at == '@', has_value = *at == '=';
    if ((has_range && g->range == NEVER) || (has_value && g->value == NEVER))
        return refuse(diag, text, len, "takes no such argument");
    if ((!has_range && g->range == MUST) || (!has_value && g->value == MUST))
        return refuse(diag, text, len, "lacks its argument");
    at += has_range || has_value;
    bool fine = (!has_range || parse_range(rule, &at)) &&
                (!has_value || parse_number(&at, &rule->value)) && at == text + len;
    if (!fine || (rule->kind == FAULT_DELAY && rule->value > DELAY_MS_MAX))
        return refuse(diag, text, len, "has a bad number");
    return 0;
}

int
fault_rules_parse(struct fault_rules *out, const char *text, struct diag *diag)
{
    out->count = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        if (out->count == FAULT_RULES_MAX)
            return refuse(diag, text, len, "is one too many");
        int err = parse_rule(&out->rules[out->count], text, len, diag);
        if (err < 0)
            return err;
        out->count++;
        text += len;
        if (*text == ',' && *++text == '\0')
            return refuse(diag, text, 0, "is empty, after the last comma");
    }
    return 0;
}

const struct fault_rule *
fault_rules_find(const struct fault_rules *rules, enum fault_kind kind, uint64_t off_bytes,
                 uint64_t len_bytes)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct fault_rule *rule = &rules->rules[i];
        bool everywhere = rule->len_bytes == UINT64_MAX;
        if (rule->kind == kind &&
            (everywhere || ranges_overlap(rule->off_bytes, rule->len_bytes, off_bytes, len_bytes)))
            return rule;
    }
    return NULL;
}

const struct fault_rule *
fault_rules_first(const struct fault_rules *rules, enum fault_kind kind)
{
    for (uint32_t i = 0; i < rules->count; i++)
        if (rules->rules[i].kind == kind)
            return &rules->rules[i];
    return NULL;
}
