#include "cli/json_fields.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/check.h"

#include "cli/format.h"

const char *
json_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

uint64_t
json_number(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

const char *
json_size(const json_t *object, const char *key, char out[40])
{
    return size_format(json_number(object, key), out);
}

json_t *
json_bytes(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL)
        return value;
    size_t len = strlen(text), at = 0;
    char *shown = malloc(4 * len + 1);
    check(shown != NULL);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x80)
            shown[at++] = text[i];
        else
            at += (size_t)snprintf(shown + at, 5, "\\x%02x", (unsigned char)text[i]);
    }
    value = json_stringn(shown, at);
    free(shown);
    check(value != NULL);
    return value;
}
