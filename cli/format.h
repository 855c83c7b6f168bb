/* Sizes, times, uuids and tables as people read and write them (cli.md 1.9). */
#pragma once

#include <stdio.h>

#include "engine/base/compiler.h"

/* "65536", "64K", "64KiB" (binary), "64KB" (decimal); K M G T P, any case.  False when it is not a
 * size or does not fit 64 bits. */
MUST_CHECK bool size_parse(const char *text, uint64_t *bytes);
/* "OFF+LEN" or "OFF"; *len_bytes is UINT64_MAX when only an offset was given. */
MUST_CHECK bool range_parse(const char *text, uint64_t *off_bytes, uint64_t *len_bytes);

#define FORMAT_BYTES 40
/* "192 MiB", "1.5 GiB", "512 bytes"; returns out. */
const char *size_format(uint64_t bytes, char out[FORMAT_BYTES]);
/* RFC 3339, UTC, whole seconds; "" for 0.  Returns out. */
const char *time_format(uint64_t wall_s, char out[FORMAT_BYTES]);

/* A table with left-aligned columns as wide as their widest cell, two spaces apart. */
#define TABLE_COLUMNS_MAX 16
struct table {
    uint32_t column_count, cell_count;
    char **cells; /* row after row */
};
void table_init(struct table *table, uint32_t column_count);
/* One cell, going on to the next row after the last column. */
void table_cell(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);
void table_print(const struct table *table, FILE *to, const char *indent);
void table_destroy(struct table *table);
