#include <string.h>

#include "engine/base/msg.h"
#include "engine/base/units.h"

#include "tests/unit/suite.h"

static char last_line[2048];
static enum msg_level last_level;
static unsigned line_count;

static void
keep(enum msg_level level, const char *line, void *ctx)
{
    unsigned *count = ctx;
    (*count)++;
    last_level = level;
    strncpy(last_line, line, sizeof(last_line) - 1);
}

static void
start(void)
{
    line_count = 0;
    last_line[0] = '\0';
    msg_set_level(MSG_INFO);
    msg_set_sink(keep, &line_count);
}

static void
messages_up_to_the_level_get_through(void)
{
    start();
    msg(MSG_INFO, "%d members", 4);
    CU_ASSERT_EQUAL(line_count, 1);
    CU_ASSERT_EQUAL(last_level, MSG_INFO);
    CU_ASSERT_STRING_EQUAL(last_line, "4 members");
    msg(MSG_DEBUG, "too much");
    CU_ASSERT_EQUAL(line_count, 1);
    msg_set_level(MSG_ERROR);
    msg(MSG_WARNING, "too much");
    msg(MSG_ERROR, "important");
    CU_ASSERT_EQUAL(line_count, 2);
    CU_ASSERT_STRING_EQUAL(last_line, "important");
    msg_set_level(MSG_INFO);
    msg_set_sink(NULL, NULL);
}

static void
a_message_is_one_bounded_line_whatever_a_client_named(void)
{
    char text[4000];
    start();
    msg(MSG_INFO, "export \"%s\"", "a\nerror: forged\x1b[2J\x7f");
    CU_ASSERT_STRING_EQUAL(last_line, "export \"a?error: forged?[2J?\"");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    msg(MSG_INFO, "%s", text);
    CU_ASSERT_EQUAL(strlen(last_line), 1023);
    msg_set_sink(NULL, NULL);
}

static void
errno_survives_a_message(void)
{
    start();
    errno = EXDEV;
    msg(MSG_ERROR, "something");
    CU_ASSERT_EQUAL(errno, EXDEV);
    msg_set_sink(NULL, NULL);
}

/* stderr as the daemon has it. */
static void
stderr_says(const char *journal_stream, const char *expected)
{
    int ends[2];
    char text[256];
    int saved = dup(STDERR_FILENO);
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    if (journal_stream != NULL)
        setenv("JOURNAL_STREAM", journal_stream, 1);
    else
        unsetenv("JOURNAL_STREAM");
    msg_set_level(MSG_INFO);
    msg(MSG_WARNING, "disk is slow");
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t bytes = read(ends[0], text, sizeof(text) - 1);
    CU_ASSERT_FATAL(bytes >= 0);
    text[bytes] = '\0';
    CU_ASSERT_STRING_EQUAL(text, expected);
    close(ends[0]);
    unsetenv("JOURNAL_STREAM");
}

static void
stderr_gets_a_level_that_its_reader_understands(void)
{
    stderr_says(NULL, "warning: disk is slow\n");
    stderr_says("8:1234", "<4>disk is slow\n");
}

static void
a_limiter_lets_a_burst_through_and_reports_what_it_dropped(void)
{
    struct msg_limit limit = {0};
    unsigned allowed = 0;
    start();
    for (unsigned i = 0; i < 100; i++)
        allowed += msg_allowed(&limit, 5 * SECOND_NS, 3);
    CU_ASSERT_EQUAL(allowed, 3);
    CU_ASSERT(!msg_allowed(&limit, 15 * SECOND_NS - 1, 3));
    CU_ASSERT_EQUAL(line_count, 0);
    CU_ASSERT(msg_allowed(&limit, 15 * SECOND_NS, 3)); /* the next window */
    CU_ASSERT_EQUAL(line_count, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(last_line, "98 "));
    CU_ASSERT(msg_allowed(&limit, 16 * SECOND_NS, 3));
    CU_ASSERT(msg_allowed(&limit, 40 * SECOND_NS, 3)); /* nothing was dropped: nothing to say */
    CU_ASSERT_EQUAL(line_count, 1);
    msg_set_sink(NULL, NULL);
}

SUITE_MAIN("msg", T(messages_up_to_the_level_get_through),
           T(a_message_is_one_bounded_line_whatever_a_client_named), T(errno_survives_a_message),
           T(stderr_gets_a_level_that_its_reader_understands),
           T(a_limiter_lets_a_burst_through_and_reports_what_it_dropped))
