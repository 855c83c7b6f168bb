#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/base/units.h"

#include "cli/format.h"
#include "cli/json_fields.h"
#include "cli/options.h"
#include "tests/unit/suite.h"

static void
sizes_are_read_with_their_units(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"512", 512},
                {"64K", KIB(64)},
                {"64k", KIB(64)},
                {"64KiB", KIB(64)},
                {"64KB", 64000},
                {"1MB", 1000000},
                {"3G", GIB(3)},
                {"2T", TIB(2)},
                {"7B", 7},
                {"18446744073709551615", UINT64_MAX}};
    uint64_t bytes;
    for (unsigned i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT(size_parse(good[i].text, &bytes) && bytes == good[i].bytes);
    static const char *const bad[] = {"",
                                      "K",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 K",
                                      "1Q",
                                      "1KiBs",
                                      "1.5M",
                                      "0x10",
                                      "18446744073709551616",
                                      "16777216T"};
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(size_parse(bad[i], &bytes));
}

static void
sizes_are_printed_exactly_or_rounded_down(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0 bytes"},
                 {1, "1 byte"},
                 {1023, "1023 bytes"},
                 {KIB(64), "64 KiB"},
                 {MIB(1) - 1, "1023.9 KiB"},
                 {MIB(192), "192 MiB"},
                 {MIB(1536), "1.5 GiB"},
                 {TIB(3) - 1, "2.9 TiB"},
                 {UINT64_MAX, "16383.9 PiB"}};
    char out[FORMAT_BYTES];
    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++)
        CU_ASSERT_STRING_EQUAL(size_format(sizes[i].bytes, out), sizes[i].text);
}

static void
ranges_are_an_offset_and_perhaps_a_length(void)
{
    uint64_t off, len;
    CU_ASSERT(range_parse("1M+4K", &off, &len) && off == MIB(1) && len == KIB(4));
    CU_ASSERT(range_parse("7", &off, &len) && off == 7 && len == UINT64_MAX);
    CU_ASSERT_FALSE(range_parse("+5", &off, &len));
    CU_ASSERT_FALSE(range_parse("5+", &off, &len));
    CU_ASSERT_FALSE(range_parse("", &off, &len));
    CU_ASSERT_FALSE(range_parse("1+2+3", &off, &len));
    CU_ASSERT_FALSE(range_parse("11111111111111111111111111111111111111+1", &off, &len));
}

static void
times_are_rfc_3339(void)
{
    char out[FORMAT_BYTES];
    CU_ASSERT_STRING_EQUAL(time_format(0, out), "");
    CU_ASSERT_STRING_EQUAL(time_format(1000000000, out), "2001-09-09T01:46:40Z");
}

static void
any_bytes_become_a_json_string(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    json_t *text = json_bytes("caf\xe9");
    CU_ASSERT_STRING_EQUAL(json_string_value(text), "caf\\xe9");
    json_decref(text);
    text = json_bytes("caf\xc3\xa9");
    CU_ASSERT_STRING_EQUAL(json_string_value(text), "caf\xc3\xa9");
    json_decref(text);
    for (unsigned turn = 0; turn < 1000; turn++) {
        char bytes[40] = "";
        for (uint64_t i = 0, n = rng_below(&rng, 39); i < n; i++)
            bytes[i] = (char)rng_range(&rng, 1, 255);
        text = json_bytes(bytes);
        CU_ASSERT(json_is_string(text));
        json_decref(text);
    }
}

static const struct option_spec table[] = {
    {"size", "SIZE", "", 0},   {"many", "X", "", OPTION_REPEAT},
    {"mode", "on|off", "", 0}, {"switch", NULL, "", 0},
    {NULL, NULL, NULL, 0},
};

static int
parse(struct options *options, const char *const *args, uint32_t count)
{
    struct diag diag;
    char *copies[8] = {NULL};
    for (uint32_t i = 0; i < count; i++)
        copies[i] = strdup(args[i]);
    *options = (struct options){.tables = {table}};
    int err = options_parse(options, copies, count, &diag);
    options->operand_count = err == 0 ? options->operand_count : 0;
    for (uint32_t i = 0; i < count; i++)
        free(copies[i]);
    return err;
}

static void
options_are_taken_in_any_order_and_never_guessed(void)
{
    struct options options;
    const char *const good[] = {"a", "--size", "4K", "--many=1", "--switch", "--many", "-2", "-"};
    CU_ASSERT_EQUAL(parse(&options, good, 8), 0);
    CU_ASSERT_EQUAL(options.operand_count, 2);
    CU_ASSERT_STRING_EQUAL(options_get(&options, "size"), "4K");
    CU_ASSERT_STRING_EQUAL(options_nth(&options, "many", 1), "-2");
    CU_ASSERT_PTR_NULL(options_nth(&options, "many", 2));
    CU_ASSERT(options_have(&options, "switch"));
    options_destroy(&options);
    static const char *const bad[][2] = {{"--siz", "1"},      {"--size", "--"},  {"--switch=1", ""},
                                         {"--mode", "maybe"}, {"--mode=", ""},   {"-x", ""},
                                         {"--=", ""},         {"--nothing", "1"}};
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t bytes;
        int err = parse(&options, bad[i], 2);
        if (err == 0) /* a wrong size is found when it is read */
            err = options_size(&options, "size", 0, &bytes, NULL);
        CU_ASSERT(err < 0);
        options_destroy(&options);
    }
    const char *const last[] = {"--switch", "--size"};
    CU_ASSERT(parse(&options, last, 2) < 0);
    options_destroy(&options);
    const char *const twice[] = {"--size=1", "--size=2"};
    CU_ASSERT(parse(&options, twice, 2) < 0);
    options_destroy(&options);
    const char *const ended[] = {"--", "--size"};
    CU_ASSERT_EQUAL(parse(&options, ended, 2), 0);
    CU_ASSERT_EQUAL(options.operand_count, 1);
    options_destroy(&options);
}

SUITE_MAIN("cli_format", T(sizes_are_read_with_their_units),
           T(sizes_are_printed_exactly_or_rounded_down),
           T(ranges_are_an_offset_and_perhaps_a_length), T(times_are_rfc_3339),
           T(any_bytes_become_a_json_string), T(options_are_taken_in_any_order_and_never_guessed))
