/* Fields of JSON objects, read without fuss and written without fear. */
#pragma once

#include <jansson.h>

#include "engine/base/compiler.h"

/* Text and number fields of answers; "" and 0 when absent or of another type. */
const char *json_text(const json_t *object, const char *key);
uint64_t json_number(const json_t *object, const char *key);
/* A size field, for people; returns out. */
const char *json_size(const json_t *object, const char *key, char out[40]);

/* Any bytes as a string: names of files and what was read from a disk need not be UTF-8; bytes that
 * are not appear as \xNN. A new reference, never NULL. */
json_t *json_bytes(const char *text);
