#include "engine/base/codes.h"

#include <string.h>

#include "engine/base/compiler.h"

#define CODE(name, summary, explanation) {#name, summary, explanation},
static const struct code_text codes[] = {
#include "engine/base/codes.def"
};
#undef CODE

const struct code_text *
code_find(const char *code)
{
    for (unsigned i = 0; i < ARRAY_LEN(codes); i++)
        if (strcmp(codes[i].code, code) == 0)
            return &codes[i];
    return NULL;
}

const struct code_text *
code_at(unsigned index)
{
    return index < ARRAY_LEN(codes) ? &codes[index] : NULL;
}
