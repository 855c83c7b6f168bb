#include <string.h>

#include "engine/base/codes.h"
#include "engine/base/diag.h"
#include "engine/base/msg.h"

#include "tests/unit/suite.h"

static unsigned errors_logged;

static void
count_errors(enum msg_level level, const char *line, void *ctx)
{
    (void)line;
    (void)ctx;
    errors_logged += level == MSG_ERROR;
}

static void
a_diag_holds_what_was_set_and_returns_the_error(void)
{
    struct diag diag;
    memset(&diag, 0xff, sizeof(diag)); /* need not be cleared before */
    int err = diag_set(&diag, DIAG_USAGE, "E_USAGE", -EINVAL, "%s takes %d words", "create", 3);
    CU_ASSERT_EQUAL(err, -EINVAL);
    CU_ASSERT_EQUAL(diag.err, -EINVAL);
    CU_ASSERT_EQUAL(diag.class, DIAG_USAGE);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_USAGE");
    CU_ASSERT_STRING_EQUAL(diag.message, "create takes 3 words");
    for (unsigned i = 0; i < DIAG_FIX_MAX; i++)
        CU_ASSERT_STRING_EQUAL(diag.fix[i], "");
}

static void
a_long_message_is_cut(void)
{
    struct diag diag;
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CU_ASSERT_EQUAL(diag_set(&diag, DIAG_FAILED, "E_USAGE", -EIO, "%s", text), -EIO);
    CU_ASSERT_EQUAL(strlen(diag.message), sizeof(diag.message) - 1);
}

static void
fixes_are_kept_in_order_as_far_as_they_fit(void)
{
    struct diag diag;
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CU_ASSERT_EQUAL(diag_set(&diag, DIAG_FAILED, "E_USAGE", -EIO, "no"), -EIO);
    diag_fix(&diag, "sr5 %s", "first");
    diag_fix(&diag, "%s", text); /* half a command is worse than none */
    diag_fix(&diag, "sr5 second");
    diag_fix(&diag, "sr5 third");
    diag_fix(&diag, "sr5 fourth");
    CU_ASSERT_STRING_EQUAL(diag.fix[0], "sr5 first");
    CU_ASSERT_STRING_EQUAL(diag.fix[1], "sr5 second");
    CU_ASSERT_STRING_EQUAL(diag.fix[2], "sr5 third");
}

static void
a_fix_may_be_as_long_as_its_room_and_no_longer(void)
{
    struct diag diag;
    char text[sizeof(diag.fix[0]) + 1];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CU_ASSERT_EQUAL(diag_set(&diag, DIAG_FAILED, "E_USAGE", -EIO, "no"), -EIO);
    diag_fix(&diag, "%s", text);
    CU_ASSERT_STRING_EQUAL(diag.fix[0], "");
    text[sizeof(text) - 2] = '\0';
    diag_fix(&diag, "%s", text);
    CU_ASSERT_STRING_EQUAL(diag.fix[0], text);
}

static void
without_a_diag_only_the_error_is_returned(void)
{
    CU_ASSERT_EQUAL(diag_set(NULL, DIAG_FAILED, "E_USAGE", -EPERM, "no"), -EPERM);
    diag_fix(NULL, "sr5 help");
}

static void
a_code_that_is_not_listed_is_logged_as_our_bug(void)
{
    struct diag diag;
    errors_logged = 0;
    msg_set_sink(count_errors, NULL);
    CU_ASSERT_EQUAL(diag_set(&diag, DIAG_FAILED, "E_USAGE", -EIO, "known"), -EIO);
    CU_ASSERT_EQUAL(errors_logged, 0);
    CU_ASSERT_EQUAL(diag_set(&diag, DIAG_FAILED, "E_NO_SUCH_CODE", -EIO, "unknown"), -EIO);
    CU_ASSERT_EQUAL(errors_logged, 1);
    CU_ASSERT_STRING_EQUAL(diag.message, "unknown");
    msg_set_sink(NULL, NULL);
}

static void
codes_are_sorted_unique_and_explained(void)
{
    unsigned count = 0;
    for (const struct code_text *last = NULL, *code; (code = code_at(count)) != NULL; last = code) {
        if (last != NULL && strcmp(last->code, code->code) >= 0)
            CU_FAIL("codes.def is not sorted or names a code twice");
        CU_ASSERT_PTR_EQUAL(code_find(code->code), code);
        /* E_ for errors, without it problems of an array that is served all the same */
        CU_ASSERT_EQUAL(strspn(code->code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
                        strlen(code->code));
        CU_ASSERT(strlen(code->summary) > 0);
        CU_ASSERT(strlen(code->explanation) > 0);
        count++;
    }
    CU_ASSERT(count > 0);
    CU_ASSERT_PTR_NULL(code_at(count + 1));
    CU_ASSERT_PTR_NULL(code_find("E_NO_SUCH_CODE"));
}

SUITE_MAIN("diag", T(a_diag_holds_what_was_set_and_returns_the_error), T(a_long_message_is_cut),
           T(fixes_are_kept_in_order_as_far_as_they_fit),
           T(a_fix_may_be_as_long_as_its_room_and_no_longer),
           T(without_a_diag_only_the_error_is_returned),
           T(a_code_that_is_not_listed_is_logged_as_our_bug),
           T(codes_are_sorted_unique_and_explained))
