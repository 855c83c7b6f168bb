#include "cli/format.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "engine/base/units.h"

static const char unit_letters[] = "KMGTP";

/* What follows the digits: "", "B", "K", "KiB", "KB"...  0 when it is nothing we know. */
static uint64_t
unit_factor(const char *suffix)
{
    if (*suffix == '\0' || strcasecmp(suffix, "B") == 0)
        return 1;
    const char *letter = strchr(unit_letters, toupper((unsigned char)*suffix));
    if (letter == NULL)
        return 0;
    uint64_t base;
    if (suffix[1] == '\0' || strcasecmp(suffix + 1, "iB") == 0)
        base = 1024;
    else if (strcasecmp(suffix + 1, "B") == 0)
        base = 1000;
    else
        return 0;
    uint64_t factor = 1;
    for (const char *l = unit_letters; l <= letter; l++)
        factor *= base;
    return factor;
}

bool
size_parse(const char *text, uint64_t *bytes)
{
    if (!isdigit((unsigned char)text[0]))
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    uint64_t factor = unit_factor(end);
    return errno == 0 && factor != 0 && mul_ok(number, factor, bytes);
}

bool
range_parse(const char *text, uint64_t *off_bytes, uint64_t *len_bytes)
{
    char off[32];
    const char *plus = strchr(text, '+');
    size_t off_len = plus != NULL ? (size_t)(plus - text) : strlen(text);
    if (off_len >= sizeof(off))
        return false;
    memcpy(off, text, off_len);
    off[off_len] = '\0';
    *len_bytes = UINT64_MAX;
    return size_parse(off, off_bytes) && (plus == NULL || size_parse(plus + 1, len_bytes));
}

const char *
size_format(uint64_t bytes, char out[FORMAT_BYTES])
{
    if (bytes < 1024) {
        snprintf(out, FORMAT_BYTES, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
        return out;
    }
    unsigned unit = 0;
    uint64_t scale = 1024;
    while (unit + 1 < strlen(unit_letters) && bytes / scale >= 1024) {
        scale *= 1024;
        unit++;
    }
    if (bytes % scale == 0)
        snprintf(out, FORMAT_BYTES, "%" PRIu64 " %ciB", bytes / scale, unit_letters[unit]);
    else /* rounded down: never promise what is not there */
        snprintf(out, FORMAT_BYTES, "%" PRIu64 ".%" PRIu64 " %ciB", bytes / scale,
                 (bytes % scale) / (scale / 1024) * 10 / 1024, unit_letters[unit]);
    return out;
}

const char *
time_format(uint64_t wall_s, char out[FORMAT_BYTES])
{
    time_t seconds = (time_t)wall_s;
    struct tm parts;
    out[0] = '\0';
    if (wall_s != 0 && gmtime_r(&seconds, &parts) != NULL)
        strftime(out, FORMAT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return out;
}

void
table_init(struct table *table, uint32_t column_count)
{
    check_le(column_count, TABLE_COLUMNS_MAX);
    *table = (struct table){.column_count = column_count};
}

void
table_cell(struct table *table, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    void *grown = realloc(table->cells, (table->cell_count + 1) * sizeof(char *));
    check(len >= 0 && grown != NULL);
    table->cells = grown;
    table->cells[table->cell_count++] = text;
}

void
table_print(const struct table *table, FILE *to, const char *indent)
{
    size_t width[TABLE_COLUMNS_MAX] = {0};
    uint32_t columns = table->column_count;
    for (uint32_t i = 0; i < table->cell_count; i++)
        width[i % columns] = MAX(width[i % columns], strlen(table->cells[i]));
    for (uint32_t i = 0; i < table->cell_count; i++) {
        bool last = i % columns == columns - 1;
        if (i % columns == 0)
            fputs(indent, to);
        if (last)
            fprintf(to, "%s\n", table->cells[i]);
        else
            fprintf(to, "%-*s  ", (int)width[i % columns], table->cells[i]);
    }
}

void
table_destroy(struct table *table)
{
    for (uint32_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){0};
}
