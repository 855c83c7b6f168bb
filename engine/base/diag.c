#include "engine/base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/codes.h"
#include "engine/base/msg.h"

int
diag_set(struct diag *diag, enum diag_class class, const char *code, int err, const char *format,
         ...)
{
    check(err < 0);
    if (code_find(code) == NULL)
        msg(MSG_ERROR, "%s is not in the list of codes; please report this", code);
    if (diag == NULL)
        return err;
    *diag = (struct diag){.class = class, .code = code, .err = err};
    va_list args;
    va_start(args, format);
    vsnprintf(diag->message, sizeof(diag->message), format, args);
    va_end(args);
    return err;
}

void
diag_fix(struct diag *diag, const char *format, ...)
{
    if (diag == NULL)
        return;
    unsigned slot = 0;
    while (slot < DIAG_FIX_MAX && diag->fix[slot][0] != '\0')
        slot++;
    if (slot == DIAG_FIX_MAX)
        return;
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(diag->fix[slot], sizeof(diag->fix[slot]), format, args);
    va_end(args);
    if (bytes < 0 || (size_t)bytes >= sizeof(diag->fix[slot]))
        diag->fix[slot][0] = '\0';
}
