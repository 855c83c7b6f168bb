#include "engine/base/req.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

static struct req *done_req;

static void
note_done(struct req *req)
{
    done_req = req;
}

static void
done_carries_the_error_to_the_submitter(void)
{
    struct req req = {.op = REQ_READ, .err = 1, .done = note_done};
    done_req = NULL;
    req_done(&req, -EIO);
    CU_ASSERT_PTR_EQUAL(done_req, &req);
    CU_ASSERT_EQUAL(req.err, -EIO);
    req_done(&req, 0);
    CU_ASSERT_EQUAL(req.err, 0);
}

static void
finish_with_positive_errno(void)
{
    struct req req = {.done = note_done};
    req_done(&req, EIO);
}

static void
a_positive_error_is_a_bug(void)
{
    char text[256];
    CU_ASSERT(dies(finish_with_positive_errno, text, sizeof(text)));
}

static void
every_operation_has_a_name_and_is_a_write_or_not(void)
{
    static const struct {
        enum req_op op;
        const char *name;
        bool is_write;
    } cases[REQ_OP_COUNT] = {
        {REQ_READ, "read", false}, {REQ_WRITE, "write", true}, {REQ_FLUSH, "flush", false},
        {REQ_TRIM, "trim", true},  {REQ_ZERO, "zero", true},   {REQ_CACHE, "cache", false},
    };
    for (unsigned i = 0; i < REQ_OP_COUNT; i++) {
        struct req req = {.op = cases[i].op};
        CU_ASSERT_EQUAL(cases[i].op, i);
        CU_ASSERT_STRING_EQUAL(req_op_name(cases[i].op), cases[i].name);
        CU_ASSERT_EQUAL(req_is_write(&req), cases[i].is_write);
    }
}

SUITE_MAIN("req", T(done_carries_the_error_to_the_submitter), T(a_positive_error_is_a_bug),
           T(every_operation_has_a_name_and_is_a_write_or_not))
