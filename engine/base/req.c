#include "engine/base/req.h"

const char *
req_op_name(enum req_op op)
{
    switch (op) {
    case REQ_READ:
        return "read";
    case REQ_WRITE:
        return "write";
    case REQ_FLUSH:
        return "flush";
    case REQ_TRIM:
        return "trim";
    case REQ_ZERO:
        return "zero";
    case REQ_CACHE:
        return "cache";
    }
    return "unknown";
}
